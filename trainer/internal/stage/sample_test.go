package stage

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/generate"
)

func TestFactsAreLearntByHeart(t *testing.T) {
	dir := prepareFacts(t)
	o := DefaultTrain()
	o.RunDir, o.Threads = dir, 2
	o.Config.MaxIters, o.Config.EvalInterval, o.Config.BatchSize, o.Config.Warmup = 120, 40, 32, 12
	o.Config.LearningRate, o.Config.MinLearningRate = 3e-3, 3e-4
	mustTrain(t, o)
	s := DefaultSample()
	s.RunDir, s.QA, s.Threads = dir, factsFile, 2
	r, err := GenerateSamples(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if r.Exact.Of < 30 || r.Exact.Tuned*30 < 28*r.Exact.Of || r.Exact.Base != 0 {
		t.Errorf("exact before %d, after %d of %d; want none, 28 of 30", r.Exact.Base, r.Exact.Tuned, r.Exact.Of)
	}
	b, err := os.ReadFile(filepath.Join(dir, SamplesFile))
	if err != nil {
		t.Fatal(err)
	}
	var written SampleReport
	if err := json.Unmarshal(b, &written); err != nil || len(written.Samples) != r.Exact.Of || *written.Exact != *r.Exact {
		t.Errorf("%s does not hold the report: %v", SamplesFile, err)
	}
	// The same question by hand, without the bar.
	s.QA, s.Prompts, s.Base = "", []string{"How far is the sun?"}, BaseNone
	if r, err = GenerateSamples(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got := r.Samples[0]; got.Prompt != "How far is the sun? |" || strings.TrimSpace(got.Tuned.Text) != "150 million kilometers away." || got.Base != nil {
		t.Errorf("sample %+v", got)
	}
}

func TestSampleRefuses(t *testing.T) {
	o := quickTrain(prepareText(t))
	mustTrain(t, o)
	ok := DefaultSample()
	ok.RunDir, ok.Prompts, ok.Base = o.RunDir, []string{"Train"}, BaseNone
	if _, err := GenerateSamples(t.Context(), ok); err != nil {
		t.Fatal(err)
	}
	bare := ok
	bare.Prompts = nil
	if r, err := GenerateSamples(t.Context(), bare); err != nil || len(r.Samples) == 0 || r.Samples[0].Prompt == "" {
		t.Errorf("without a prompt: %+v, %v, want prompts of the test split", r.Samples, err)
	}
	for name, c := range map[string]struct {
		change func(*SampleOptions)
		want   string
	}{
		"no prompt":         {func(s *SampleOptions) { s.Prompts, s.RunDir, s.Model = nil, "", filepath.Join(o.RunDir, "best") }, "no prompt"},
		"no model":          {func(s *SampleOptions) { s.RunDir = "" }, "no model"},
		"a missing one":     {func(s *SampleOptions) { s.Model = "/missing" }, "/missing"},
		"a missing base":    {func(s *SampleOptions) { s.Base = "/missing" }, "/missing"},
		"missing questions": {func(s *SampleOptions) { s.QA = "/missing" }, "/missing"},
		"no tokens":         {func(s *SampleOptions) { s.Sampling = generate.Options{} }, "max_tokens is 0"},
	} {
		s := ok
		s.Prompts = slices.Clone(ok.Prompts)
		c.change(&s)
		if _, err := GenerateSamples(t.Context(), s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
