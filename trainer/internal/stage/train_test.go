package stage

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/bpe"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/generate"
	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/hf"
	"github.com/trainyard/trainyard/trainer/internal/progress"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

const factsFile = "../../../examples/qa/facts.txt"

// smallModel is enough to see whether bits are equal.
func smallModel() gpt.Config {
	return gpt.Config{Layers: 2, Heads: 2, Channels: 32, Inner: 128, BlockSize: 32, Activation: gpt.GELUTanh, Epsilon: 1e-5}
}

// prepareFacts makes a run directory of the example facts.
func prepareFacts(t *testing.T) string {
	t.Helper()
	p := DefaultPrepareQA()
	p.Inputs, p.RunDir, p.Memorize, p.VocabSize, p.Workers = []string{factsFile}, t.TempDir(), true, 512, 1
	if _, err := Prepare(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p.RunDir
}

// prepareText makes a run directory of a text that a small model can learn from.
func prepareText(t *testing.T) string {
	t.Helper()
	in := filepath.Join(t.TempDir(), "text.txt")
	var b strings.Builder
	for i := range 400 {
		b.WriteString("Train " + strings.Repeat("number ", i%5) + "has " + string(rune('a'+i%26)) + string(rune('a'+i/26)) + " wagons and leaves at noon.\n\n")
	}
	if err := os.WriteFile(in, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	p := DefaultPrepare()
	p.Inputs, p.RunDir, p.VocabSize, p.Workers, p.Separator, p.DropNear = []string{in}, t.TempDir(), 300, 1, "blank-line", false
	p.Filter.MinChars, p.Sensitivity = 0, nil
	if _, err := Prepare(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p.RunDir
}

// copyRun copies the data of a run directory into a new one.
func copyRun(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func quickTrain(dir string) TrainOptions {
	o := DefaultTrain()
	o.RunDir, o.Model, o.Threads = dir, smallModel(), 2
	o.Config.MaxIters, o.Config.EvalInterval, o.Config.BatchSize, o.Config.BlockSize = 12, 5, 4, 32
	o.Config.Warmup, o.Config.Dropout, o.Config.Accumulation = 2, 0.1, 2
	o.LogInterval = 1
	return o
}

func mustTrain(t *testing.T, o TrainOptions) TrainReport {
	t.Helper()
	r, err := Train(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// trained returns digests of all that a training leaves, but for what tells time.
func trained(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range []string{"last/model.safetensors", "last/state.safetensors", "last/config.json", "last/tokenizer.json", "best/model.safetensors"} {
		sum, err := train.FileDigest(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = sum
	}
	f, err := os.Open(filepath.Join(dir, train.HistoryName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		rows[i] = row[:len(row)-1]
	}
	b, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	out["history"] = string(b)
	return out
}

func sameRun(t *testing.T, name string, got, want map[string]string) {
	t.Helper()
	for k, w := range want {
		if got[k] != w {
			t.Errorf("%s: %s is %.300s, want %.300s", name, k, got[k], w)
		}
	}
}

// stopAfter ends a training as a signal does, after so many steps.
type stopAfter struct {
	step   int
	cancel context.CancelCauseFunc
}

func (s *stopAfter) Report(_ context.Context, p progress.Status) {
	if p.Step == s.step {
		s.cancel(exitcode.SignalError{Signal: 15})
	}
}
func (s *stopAfter) Close() {}

func TestStoppedAndResumedTrainingHasTheSameBits(t *testing.T) {
	for name, data := range map[string]string{"text": prepareText(t), "question-answer": prepareFacts(t)} {
		whole := copyRun(t, data)
		mustTrain(t, quickTrain(whole))
		want := trained(t, whole)
		for _, step := range []int{1, 4, 5, 11} {
			o := quickTrain(copyRun(t, data))
			ctx, cancel := context.WithCancelCause(t.Context())
			o.Progress = &stopAfter{step, cancel}
			_, err := Train(ctx, o)
			var signal exitcode.SignalError
			if !errors.Is(err, train.ErrInterrupted) || !errors.As(err, &signal) {
				t.Fatalf("%s stopped at %d: %v", name, step, err)
			}
			o.Progress, o.Threads = nil, 1 // threads decide no bit
			if r := mustTrain(t, o); r.Resumed != step {
				t.Errorf("%s: resumed at %d, want %d", name, r.Resumed, step)
			}
			sameRun(t, name, trained(t, o.RunDir), want)
		}
	}
}

func TestObservingAndThreadsChangeNoWeight(t *testing.T) {
	data := prepareText(t)
	o := quickTrain(copyRun(t, data))
	mustTrain(t, o)
	want := trained(t, o.RunDir)["last/model.safetensors"]
	for name, change := range map[string]func(*TrainOptions){
		"again":              func(*TrainOptions) {},
		"one thread":         func(o *TrainOptions) { o.Threads = 1 },
		"three threads":      func(o *TrainOptions) { o.Threads = 3 },
		"other evaluations":  func(o *TrainOptions) { o.Config.EvalInterval, o.EvalBatches = 3, 1 },
		"more checkpoints":   func(o *TrainOptions) { o.Config.SaveInterval = 1 },
		"no history rows":    func(o *TrainOptions) { o.LogInterval = 0 },
		"a second one on it": func(o *TrainOptions) { o.Resume = ResumeNever; mustTrain(t, *o) },
	} {
		o := quickTrain(copyRun(t, data))
		change(&o)
		mustTrain(t, o)
		if got := trained(t, o.RunDir)["last/model.safetensors"]; got != want {
			t.Errorf("%s: weights %s, want %s", name, got, want)
		}
	}
	o = quickTrain(copyRun(t, data))
	o.Config.Seed++
	mustTrain(t, o)
	if got := trained(t, o.RunDir)["last/model.safetensors"]; got == want {
		t.Error("another seed has the same weights: this test sees nothing")
	}
}

func TestAccumulationEqualsOneBatch(t *testing.T) {
	data := prepareFacts(t)
	params := func(batch, accumulation int) []gpt.Param {
		o := quickTrain(copyRun(t, data))
		o.Config.Dropout, o.Config.BatchSize, o.Config.Accumulation, o.Config.Global = 0, batch, accumulation, 4
		mustTrain(t, o)
		m, _, _, err := loadSampleModel(filepath.Join(o.RunDir, train.LastDir))
		if err != nil {
			t.Fatal(err)
		}
		return m.Params()
	}
	one, four := params(4, 1), params(1, 4)
	for i, p := range one {
		for j, x := range p.Data {
			if d := x - four[i].Data[j]; d > 2e-4 || d < -2e-4 {
				t.Fatalf("%s[%d]: %v in one batch, %v in four", p.Name, j, x, four[i].Data[j])
			}
		}
	}
}

func TestFinishedTrainingDoesNothing(t *testing.T) {
	o := quickTrain(prepareText(t))
	first := mustTrain(t, o)
	before, err := os.Stat(filepath.Join(o.RunDir, train.LastDir))
	if err != nil {
		t.Fatal(err)
	}
	second := mustTrain(t, o)
	after, err := os.Stat(filepath.Join(o.RunDir, train.LastDir))
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the checkpoint was written again: %v", err)
	}
	if !second.Finished || second.LastDigest != first.LastDigest || second.Step != 12 || *second.EvalLoss != *first.EvalLoss {
		t.Errorf("second report %+v, first %+v", second, first)
	}
}

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

func TestFineTuningGoesOnFromAModelDirectory(t *testing.T) {
	o := quickTrain(prepareText(t))
	first := mustTrain(t, o)
	tuned := quickTrain(copyRun(t, o.RunDir))
	for _, name := range []string{train.LastDir, train.BestDir} {
		if err := os.RemoveAll(filepath.Join(tuned.RunDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	tuned.From = filepath.Join(o.RunDir, train.LastDir)
	second := mustTrain(t, tuned)
	f, err := os.Open(filepath.Join(tuned.RunDir, train.HistoryName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	begins, err := strconv.ParseFloat(rows[1][2], 64)
	if err != nil || rows[1][0] != "0" || math.Abs(begins-*first.EvalLoss) > 1e-6 {
		t.Errorf("begins with the loss %v, %v; the model ended with %v", begins, err, *first.EvalLoss)
	}
	if second.LastDigest == first.LastDigest {
		t.Error("nothing was learnt")
	}
}

func TestUntrainedLossIsThatOfGuessing(t *testing.T) {
	o := quickTrain(prepareText(t))
	o.Config.MaxIters, o.Config.Warmup = 1, 0
	o.Config.LearningRate, o.Config.MinLearningRate = 1e-9, 0
	r := mustTrain(t, o)
	const lnV = 5.703782 // ln 300
	if *r.EvalLoss < lnV*0.99 || *r.EvalLoss > lnV*1.01 {
		t.Errorf("loss %v, want ln 300 = %v", *r.EvalLoss, lnV)
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

func TestFactsAreLearntByHeart(t *testing.T) {
	dir := prepareFacts(t)
	o := DefaultTrain()
	o.RunDir, o.Threads, o.Log = dir, 2, slog.New(slog.DiscardHandler)
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
	for name, c := range map[string]struct {
		change func(*SampleOptions)
		want   string
	}{
		"no prompt":         {func(s *SampleOptions) { s.Prompts = nil }, "no prompt"},
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

func TestCheckpointIsAModelDirectory(t *testing.T) {
	o := quickTrain(prepareText(t))
	o.Now = func() time.Time { return time.Unix(1, 0) }
	mustTrain(t, o)
	for _, name := range []string{train.LastDir, train.BestDir} {
		dir := filepath.Join(o.RunDir, name)
		if _, err := bpe.Load(dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_, statErr := os.Stat(filepath.Join(dir, train.RecordName))
		if has := statErr == nil; has != (name == train.LastDir) {
			t.Errorf("%s: has a %s: %v", name, train.RecordName, has)
		}
	}
	r, err := train.ReadRecord(filepath.Join(o.RunDir, train.LastDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"isa", "threads", "gomaxprocs", "go", "platform", "seed", "train.bin", "tokenizer.json"} {
		if v, ok := r.Fact(name); !ok || v == "" {
			t.Errorf("the record does not tell %s", name)
		}
	}
}
