package commitstatus

import (
	"encoding/json"
	"fmt"

	"github.com/trainyard/trainyard/internal/pushrun"
)

// State is how a run fares, in our own words. Those of a forge are in its dialect.
type State string

// The states. A run only ever goes down this list, and ends in one of the last four.
const (
	Pending   State = "pending"   // it waits for its turn
	Running   State = "running"   // it runs
	Success   State = "success"   // it succeeded, and no gate blocked the model
	Failure   State = "failure"   // the gate blocked the model, or a task failed
	Error     State = "error"     // nothing is known of the model: it timed out, or could not start
	Cancelled State = "cancelled" // the same, because somebody or a newer push cancelled it
)

// Final tells whether a run stays in this state.
func (s State) Final() bool {
	switch s {
	case Success, Failure, Error, Cancelled:
		return true
	}
	return false
}

// before tells whether a run leaves this state for the other, and never the other
// way round.
func (s State) before(other State) bool {
	return s == Pending && other != Pending || s == Running && other.Final()
}

// Status is what a forge is told of a run.
type Status struct {
	State       State  `json:"state"`
	Description string `json:"description"`
	TargetURL   string `json:"targetURL,omitempty"` // http or https, or empty
	Context     string `json:"context"`             // tells it from the statuses of others
}

// read is the inverse of what write keeps in the annotation. Of an annotation that it
// cannot understand nothing was told: to tell once too often does no harm.
func read(annotations map[string]string) (Status, bool) {
	var s Status
	if err := json.Unmarshal([]byte(annotations[pushrun.ReportedAnnotation]), &s); err != nil {
		return Status{}, false
	}
	switch s.State {
	case Pending, Running, Success, Failure, Error, Cancelled:
		return s, true
	}
	return Status{}, false
}

// write is a merge patch of a run that keeps the status. It names the run's uid, so
// that the API server refuses it for another run of the same name.
func (s Status) write(uid string) ([]byte, error) {
	value, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write a status: %w", err)
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         uid,
		"annotations": map[string]string{pushrun.ReportedAnnotation: string(value)},
	}})
}
