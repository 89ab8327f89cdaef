package gate

import (
	"fmt"
	"math"

	"github.com/trainyard/trainyard/trainer/internal/evaluate"
)

// Verdicts of a rule and of the gate.
const (
	Pass    = "pass"
	Blocked = "blocked"
	Noise   = "within noise" // of a rule only: the data do not tell
)

// Result is the outcome of one rule.
type Result struct {
	Rule      string      `json:"rule"`
	Value     *float64    `json:"value,omitempty"`
	Interval  *[2]float64 `json:"interval,omitempty"` // 95 %
	Threshold *float64    `json:"threshold,omitempty"`
	Verdict   string      `json:"verdict"`
	// Blocks says whether this result alone keeps the candidate out.
	Blocks   bool   `json:"blocks"`
	Sentence string `json:"sentence"`
}

func passed(rule, format string, args ...any) Result {
	return Result{Rule: rule, Verdict: Pass, Sentence: fmt.Sprintf(format, args...)}
}

func blocked(rule, format string, args ...any) Result {
	return Result{Rule: rule, Verdict: Blocked, Blocks: true, Sentence: fmt.Sprintf(format, args...)}
}

// atMost judges an estimate against the largest value allowed, by its interval:
// it passes when the whole interval is within, and is blocked when the whole
// interval is beyond. In between the data do not tell, and onNoise decides.
func atMost(rule, what string, e evaluate.Estimate, limit float64, onNoise string) Result {
	r := Result{Rule: rule, Threshold: &limit, Verdict: Blocked, Blocks: true}
	if !finite(e.Value) {
		r.Sentence = fmt.Sprintf("%s is %v, not a number to judge by", what, e.Value)
		return r
	}
	r.Value = &e.Value
	if e.Interval == nil {
		r.Sentence = fmt.Sprintf("%s %s has no interval: the split needs at least two documents", what, num(e.Value))
		return r
	}
	lo, hi := e.Interval[0], e.Interval[1]
	if !finite(lo) || !finite(hi) || lo > e.Value || e.Value > hi {
		r.Sentence = fmt.Sprintf("%s %s has the impossible interval %v to %v", what, num(e.Value), lo, hi)
		return r
	}
	r.Interval = e.Interval
	span := fmt.Sprintf("%s (95 %% interval %s to %s)", num(e.Value), num(lo), num(hi))
	switch {
	case hi <= limit:
		r.Verdict, r.Blocks = Pass, false
		r.Sentence = fmt.Sprintf("%s %s is at most %s", what, span, num(limit))
	case lo > limit:
		r.Sentence = fmt.Sprintf("%s %s is more than %s", what, span, num(limit))
	default:
		r.Verdict, r.Blocks = Noise, onNoise != NoisePasses
		r.Sentence = fmt.Sprintf("%s %s is within noise of %s: more held-out documents or a margin would tell", what, span, num(limit))
	}
	return r
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// num prints a figure with the digits that matter in a sentence.
func num(x float64) string { return fmt.Sprintf("%.4f", x) }
