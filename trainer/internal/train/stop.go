package train

import (
	"context"
	"fmt"
	"math"
	"time"
)

// The policies that end a run early. Those that look at losses are
// functions of the evaluations alone, so a resumed run stops where the
// undisturbed one would.

// StopWhenFlat ends the run when the last n evaluations lie within delta nats of
// each other: the model no longer learns. n counts from 2.
func StopWhenFlat(l *Loop, n int, delta float64) {
	l.OnEval("flat loss policy", PriorityPolicy, func(_ context.Context, s *State) error {
		if n < 2 || len(s.Evals) < n {
			return nil
		}
		low, high := math.Inf(1), math.Inf(-1)
		for _, e := range s.Evals[len(s.Evals)-n:] {
			low, high = min(low, e.Loss), max(high, e.Loss)
		}
		if high-low <= delta {
			s.Stop(fmt.Sprintf("flat: the last %d evaluations lie between %.4f and %.4f", n, low, high))
		}
		return nil
	})
}

// StopWithoutImprovement ends the run when the best of all evaluations is n
// evaluations old.
func StopWithoutImprovement(l *Loop, n int) {
	l.OnEval("no improvement policy", PriorityPolicy, func(_ context.Context, s *State) error {
		since := 0
		for _, e := range s.Evals {
			if s.BestStep > 0 && e.Step > s.BestStep {
				since++
			}
		}
		if n > 0 && since >= n {
			s.Stop(fmt.Sprintf("no improvement: the best loss %.4f of step %d is %d evaluations old", s.BestLoss, s.BestStep, since))
		}
		return nil
	})
}

// StopAfter ends the run when this process has trained for limit, measured by
// the loop's clock. The next process goes on from there.
func StopAfter(l *Loop, limit time.Duration) {
	l.OnStep("wall time policy", PriorityPolicy, func(_ context.Context, s *State) error {
		if limit > 0 && s.Session >= limit && s.Step < s.Total {
			s.Pause(fmt.Sprintf("time: %v reached at step %d of %d", limit, s.Step, s.Total))
		}
		return nil
	})
}
