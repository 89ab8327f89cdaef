package doctor

import (
	"fmt"

	"github.com/trainyard/trainyard/internal/schedule"
)

// Level is how bad a finding is.
type Level string

// The levels, from good to bad.
const (
	OK      Level = "ok"
	Warning Level = "warning" // works, or could not be looked at
	Problem Level = "problem" // the run does not start, hangs or failed because of this
)

// Finding is one sentence about one thing, and what to do about it.
type Finding struct {
	Check   string   `json:"check"` // what was looked at: claim, registry, pod …
	Level   Level    `json:"level"`
	Message string   `json:"message"`
	Details []string `json:"details,omitempty"`
	Remedy  string   `json:"remedy,omitempty"`
	// Scheduling is the arithmetic behind a pod that waits for a node.
	Scheduling *schedule.Verdict `json:"scheduling,omitempty"`
}

// Report is all that was found.
type Report struct {
	Subject  string    `json:"subject"`
	Findings []Finding `json:"findings"`
}

// Count returns the number of findings of a level.
func (r *Report) Count(l Level) int {
	n := 0
	for _, f := range r.Findings {
		if f.Level == l {
			n++
		}
	}
	return n
}

func (r *Report) add(f Finding) {
	for _, old := range r.Findings {
		if old.Check == f.Check && old.Message == f.Message {
			return // two ways led to the same thing
		}
	}
	r.Findings = append(r.Findings, f)
}

func (e *exam) ok(check, format string, args ...any) {
	e.report.add(Finding{Check: check, Level: OK, Message: fmt.Sprintf(format, args...)})
}

func (e *exam) warn(check, remedy, format string, args ...any) {
	e.report.add(Finding{Check: check, Level: Warning, Message: fmt.Sprintf(format, args...), Remedy: remedy})
}

func (e *exam) problem(check, remedy, format string, args ...any) {
	e.report.add(Finding{Check: check, Level: Problem, Message: fmt.Sprintf(format, args...), Remedy: remedy})
}
