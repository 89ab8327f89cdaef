package generate

import (
	"errors"
	"math"
	"testing"
)

// draw counts how often each token is picked.
func draw(o Options, logits []float32, n int) []float64 {
	s := newSampler(o)
	freq := make([]float64, len(logits))
	for range n {
		freq[s.pick(logits)] += 1 / float64(n)
	}
	return freq
}

func TestFrequenciesFollowTheProbabilities(t *testing.T) {
	// exp of the logits is 8:4:2:1:1.
	logits := []float32{float32(math.Log(1)), float32(math.Log(8)), float32(math.Log(2)), float32(math.Log(4)), float32(math.Log(1))}
	for name, c := range map[string]struct {
		opts Options
		want []float64
	}{
		"greedy":                 {Options{}, []float64{0, 1, 0, 0, 0}},
		"temperature 1":          {Options{Temperature: 1}, []float64{1. / 16, 8. / 16, 2. / 16, 4. / 16, 1. / 16}},
		"temperature 1/2":        {Options{Temperature: .5}, []float64{1. / 86, 64. / 86, 4. / 86, 16. / 86, 1. / 86}},
		"top-k 2":                {Options{Temperature: 1, TopK: 2}, []float64{0, 8. / 12, 0, 4. / 12, 0}},
		"top-k 1 is greedy":      {Options{Temperature: 1, TopK: 1}, []float64{0, 1, 0, 0, 0}},
		"top-k above V":          {Options{Temperature: 1, TopK: 9}, []float64{1. / 16, 8. / 16, 2. / 16, 4. / 16, 1. / 16}},
		"top-p on the line":      {Options{Temperature: 1, TopP: .75}, []float64{0, 8. / 12, 0, 4. / 12, 0}},
		"top-p past the line":    {Options{Temperature: 1, TopP: .76}, []float64{0, 8. / 14, 2. / 14, 4. / 14, 0}},
		"top-p tiny is greedy":   {Options{Temperature: 1, TopP: 1e-9}, []float64{0, 1, 0, 0, 0}},
		"top-p 1 keeps all":      {Options{Temperature: 1, TopP: 1}, []float64{1. / 16, 8. / 16, 2. / 16, 4. / 16, 1. / 16}},
		"top-p within top-k":     {Options{Temperature: 1, TopK: 2, TopP: .6}, []float64{0, 1, 0, 0, 0}},
		"a temperature near nil": {Options{Temperature: 1e-300}, []float64{0, 1, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			got := draw(c.opts, logits, 20000)
			for i := range c.want {
				// Four standard deviations of a share of 1/2 are 0.014.
				if math.Abs(got[i]-c.want[i]) > .015 || (c.want[i] == 0) != (got[i] == 0) {
					t.Errorf("token %d: share %.3f, want %.3f", i, got[i], c.want[i])
				}
			}
		})
	}
}

func TestSeedDecidesTheTokens(t *testing.T) {
	logits := make([]float32, 50)
	seq := func(seed uint64) (out [20]int32) {
		s := newSampler(Options{Temperature: 1, Seed: seed})
		for i := range out {
			out[i] = s.pick(logits)
		}
		return out
	}
	first := seq(1)
	if again := seq(1); again != first {
		t.Error("one seed gave two sequences")
	}
	if seq(2) == first {
		t.Error("two seeds gave one sequence")
	}
}

func TestGreedyTakesTheFirstOfEqualLogits(t *testing.T) {
	if got := argmax([]float32{1, 3, 3, 2}); got != 1 {
		t.Errorf("token %d, want 1", got)
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for name, o := range map[string]Options{
		"no tokens":            {},
		"negative temperature": {MaxTokens: 1, Temperature: -1},
		"NaN temperature":      {MaxTokens: 1, Temperature: math.NaN()},
		"infinite temperature": {MaxTokens: 1, Temperature: math.Inf(1)},
		"negative top-k":       {MaxTokens: 1, TopK: -1},
		"top-p above 1":        {MaxTokens: 1, TopP: 1.1},
		"NaN top-p":            {MaxTokens: 1, TopP: math.NaN()},
		"empty stop":           {MaxTokens: 1, Stop: []string{""}},
		"too many stops":       {MaxTokens: 1, Stop: make([]string, 17)},
	} {
		if err := o.Validate(); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v, want ErrOptions", name, err)
		}
	}
	if err := (Options{MaxTokens: 1}).Validate(); err != nil {
		t.Errorf("the plain greedy options: %v", err)
	}
}
