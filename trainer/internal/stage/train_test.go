package stage

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/bpe"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gpt"
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

func TestFineTuningRefusesAnotherTokenizer(t *testing.T) {
	base := quickTrain(prepareText(t))
	mustTrain(t, base)
	// As many tokens, learnt from another text.
	p := DefaultPrepareQA()
	p.Inputs, p.RunDir, p.Memorize, p.VocabSize, p.Workers = []string{factsFile}, t.TempDir(), true, 300, 1
	if _, err := Prepare(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	o := quickTrain(p.RunDir)
	o.From = filepath.Join(base.RunDir, train.LastDir)
	_, err := Train(t.Context(), o)
	var coded *exitcode.Error
	if !errors.As(err, &coded) || coded.Code != exitcode.BadInput || !strings.Contains(err.Error(), "token 2") || !strings.Contains(err.Error(), o.From) {
		t.Errorf("%v, want bad input that names the token and the model", err)
	}
	if _, err := os.Stat(filepath.Join(p.RunDir, train.LastDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was saved: %v", err)
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
