package stage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/hf"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

func TestTrainRefuses(t *testing.T) {
	data := prepareText(t)
	done := copyRun(t, data)
	mustTrain(t, quickTrain(done))
	other := prepareFacts(t)
	for name, c := range map[string]struct {
		change func(*TrainOptions)
		code   int
		want   string
	}{
		"no run directory":        {func(o *TrainOptions) { o.RunDir = "" }, exitcode.Usage, "run-dir"},
		"a missing one":           {func(o *TrainOptions) { o.RunDir += "/x" }, exitcode.BadInput, "does not exist"},
		"an empty one":            {func(o *TrainOptions) { o.RunDir = t.TempDir() }, exitcode.BadInput, "run prepare first"},
		"a missing model":         {func(o *TrainOptions) { o.From = "/missing" }, exitcode.BadInput, "/missing"},
		"a model of another kind": {func(o *TrainOptions) { o.From = data }, exitcode.BadInput, "config.json"},
		"nothing to resume":       {func(o *TrainOptions) { o.Resume = ResumeRequire }, exitcode.BadInput, "no checkpoint"},
		"another resume":          {func(o *TrainOptions) { o.Resume = "maybe" }, exitcode.Usage, `resume is "maybe"`},
		"two workers":             {func(o *TrainOptions) { o.Config.Workers = 2 }, exitcode.Usage, "workers is 2"},
		"no threads":              {func(o *TrainOptions) { o.Threads = 0 }, exitcode.Usage, "threads is 0"},
		"one flat evaluation":     {func(o *TrainOptions) { o.FlatEvals = 1 }, exitcode.Usage, "stop-flat is 1"},
		"a corpus below a block":  {func(o *TrainOptions) { o.Config.BlockSize = 100_000 }, exitcode.BadInput, "a block of 100000 needs 100001"},
		"changed data": {func(o *TrainOptions) {
			o.RunDir = copyRun(t, data)
			b, err := os.ReadFile(filepath.Join(o.RunDir, "train.bin"))
			if err != nil {
				t.Fatal(err)
			}
			b[7] ^= 1
			if err := os.WriteFile(filepath.Join(o.RunDir, "train.bin"), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}, exitcode.Integrity, "train.bin is sha256:"},
		"a changed vocabulary": {func(o *TrainOptions) {
			o.RunDir = copyRun(t, data)
			b, err := os.ReadFile(filepath.Join(other, "tokenizer.json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(o.RunDir, "tokenizer.json"), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}, exitcode.BadInput, "the files are of two runs"},
	} {
		o := quickTrain(copyRun(t, data))
		c.change(&o)
		_, err := Train(t.Context(), o)
		var coded *exitcode.Error
		if !errors.As(err, &coded) || coded.Code != c.code || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q and code %d", name, err, c.want, c.code)
		}
	}
	o := quickTrain(done)
	o.Config.LearningRate = 2e-3
	if _, err := Train(t.Context(), o); !errors.Is(err, train.ErrMismatch) || !strings.Contains(err.Error(), "lr was 0.001 and is 0.002 now") {
		t.Errorf("another rate: %v", err)
	}
	o = quickTrain(done)
	o.Model.Layers = 1
	if _, err := Train(t.Context(), o); !errors.Is(err, train.ErrMismatch) || !strings.Contains(err.Error(), "layers was 2 and is 1 now") {
		t.Errorf("another model: %v", err)
	}
}

func TestSecondTrainingInARunDirectoryIsRefused(t *testing.T) {
	o := quickTrain(prepareText(t))
	lock, err := lockRun(o.RunDir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.release()
	var coded *exitcode.Error
	if _, err := Train(t.Context(), o); !errors.As(err, &coded) || coded.Code != exitcode.Conflict {
		t.Errorf("%v, want a conflict", err)
	}
}

func TestModelThatOverflowsIsDivergence(t *testing.T) {
	o := quickTrain(prepareText(t))
	m, err := gpt.New(gpt.Config{VocabSize: 300, Layers: 1, Heads: 1, Channels: 8, Inner: 32, BlockSize: 32, Activation: gpt.GELUTanh, Epsilon: 1e-5})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.Params() {
		for i := range p.Data {
			p.Data[i] = float32(i%3-1) * 1e30 // finite, but not what comes of it
		}
	}
	o.From = t.TempDir()
	if _, err := hf.Save(o.From, m, hf.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Train(t.Context(), o); !errors.Is(err, train.ErrDiverged) || !strings.Contains(err.Error(), "at step ") {
		t.Errorf("%v, want ErrDiverged with the step", err)
	}
	if _, err := os.Stat(filepath.Join(o.RunDir, train.LastDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a checkpoint was saved: %v", err)
	}
}
