package progress

import (
	"math"
	"strconv"
	"time"
)

// Status is what a sink is told.
type Status struct {
	Step, TotalSteps int
	Resumed          int // step at which this process began
	Evaluated        bool
	Final            bool // nothing follows
	StopReason       string
	Time             time.Time

	HasLoss      bool
	Loss         float64 // of the last step, nats per target
	LearningRate float64
	GradNorm     float64

	HasEval  bool
	EvalLoss float64 // of the latest evaluation, nats per target
	BestLoss float64
	BestStep int // 0: there is no best yet

	Tokens         int64 // input tokens since the run began
	StepTokens     int
	TokensPerEpoch int64 // 0: unknown

	Session       time.Duration // time in the loop since this process began it
	SessionTokens int64
}

// Percent returns how much is done, 0 to 100; 100 only when all steps are.
func (s Status) Percent() int {
	if s.TotalSteps <= 0 {
		return 0
	}
	return min(100, max(0, int(int64(s.Step)*100/int64(s.TotalSteps))))
}

// TokensPerSecond returns the mean of this process, or 0 before its first step.
func (s Status) TokensPerSecond() float64 {
	if s.Session <= 0 {
		return 0
	}
	return float64(s.SessionTokens) / s.Session.Seconds()
}

// Remaining estimates the time to the last step from the mean of this process;
// ok is false before its first step.
func (s Status) Remaining() (d time.Duration, ok bool) {
	left, done := s.TotalSteps-s.Step, s.Step-s.Resumed
	switch {
	case s.Final || left <= 0:
		return 0, true
	case done <= 0 || s.Session <= 0:
		return 0, false
	}
	seconds := s.Session.Seconds() / float64(done) * float64(left)
	return time.Duration(min(seconds, maxSeconds) * float64(time.Second)), true
}

const maxSeconds = math.MaxInt32 // of estimatedRemainingSeconds, an int32

// Document is status.trainerStatus of KEP-2779.
type Document struct {
	ProgressPercentage        int      `json:"progressPercentage"`
	EstimatedRemainingSeconds *int     `json:"estimatedRemainingSeconds,omitempty"`
	Metrics                   []Metric `json:"metrics,omitempty"`
	LastUpdatedTime           string   `json:"lastUpdatedTime"` // RFC 3339, UTC
}

// Metric is one named value; both strings have at most 64 characters.
type Metric struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Limits of the KEP.
const (
	maxText    = 64
	maxMetrics = 256
)

// Document renders a status.
func (s Status) Document() Document {
	d := Document{ProgressPercentage: s.Percent(), LastUpdatedTime: s.Time.UTC().Format(time.RFC3339)}
	if left, ok := s.Remaining(); ok {
		n := int(math.Ceil(left.Seconds()))
		d.EstimatedRemainingSeconds = &n
	}
	add := func(name, value string) {
		if len(d.Metrics) < maxMetrics {
			d.Metrics = append(d.Metrics, Metric{clip(name), clip(value)})
		}
	}
	add("step", strconv.Itoa(s.Step))
	add("total_steps", strconv.Itoa(s.TotalSteps))
	if s.HasLoss {
		add("loss", number(s.Loss))
	}
	if s.HasEval {
		add("eval_loss", number(s.EvalLoss))
	}
	if s.BestStep > 0 {
		add("best_eval_loss", number(s.BestLoss))
	}
	if s.TokensPerEpoch > 0 {
		total := float64(s.Tokens)
		if s.Step < s.TotalSteps {
			total += float64(s.StepTokens) * float64(s.TotalSteps-s.Step)
		}
		add("currentEpoch", number(float64(s.Tokens)/float64(s.TokensPerEpoch)))
		if s.StepTokens > 0 || s.Step >= s.TotalSteps {
			add("totalEpochs", number(total/float64(s.TokensPerEpoch)))
		}
	}
	if s.HasLoss {
		add("learning_rate", number(s.LearningRate))
		add("grad_norm", number(s.GradNorm))
	}
	if r := s.TokensPerSecond(); r > 0 {
		add("tokens_per_second", strconv.FormatFloat(r, 'f', 0, 64))
	}
	if s.StopReason != "" {
		add("stop_reason", s.StopReason)
	}
	return d
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// clip cuts at a rune, so that the text stays valid.
func clip(s string) string {
	n := 0
	for i := range s {
		if n == maxText {
			return s[:i]
		}
		n++
	}
	return s
}
