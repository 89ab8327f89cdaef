package stage

import (
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
)

// What Tekton says of a task of a pipeline.
const (
	statusSucceeded = "Succeeded"
	statusFailed    = "Failed"
	statusNone      = "None" // it did not run
)

// statuses is what became of the tasks of a pipeline, in their order.
type statuses []taskStatus

type taskStatus struct{ name, status string }

func parseStatuses(in []string) (statuses, error) {
	var out statuses
	for _, s := range in {
		name, status, ok := strings.Cut(s, "=")
		if !ok || name == "" || (status != statusSucceeded && status != statusFailed && status != statusNone) {
			return nil, exitcode.Errorf(exitcode.Usage, "task status %q: want NAME=%s, %s or %s", s, statusSucceeded, statusFailed, statusNone)
		}
		out = append(out, taskStatus{name, status})
	}
	return out, nil
}

// with lists the tasks that have a status.
func (s statuses) with(status string) []string {
	var names []string
	for _, t := range s {
		if t.status == status {
			names = append(names, t.name)
		}
	}
	return names
}

// skipped reports whether a task is known not to have run.
func (s statuses) skipped(name string) bool {
	for _, t := range s {
		if t.name == name {
			return t.status == statusNone
		}
	}
	return false
}

// mayHave reports whether a task succeeded, as far as anybody said.
func (s statuses) mayHave(name string) bool {
	for _, t := range s {
		if t.name == name {
			return t.status == statusSucceeded
		}
	}
	return true
}

// String says how far a run came.
func (s statuses) String() string {
	var parts []string
	for _, x := range []struct{ status, word string }{{statusSucceeded, "succeeded"}, {statusFailed, "failed"}, {statusNone, "did not run"}} {
		if names := s.with(x.status); len(names) > 0 {
			parts = append(parts, x.word+": "+strings.Join(names, ", "))
		}
	}
	return strings.Join(parts, "; ")
}
