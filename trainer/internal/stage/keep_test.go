package stage

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/hf"
	"github.com/trainyard/trainyard/trainer/internal/rng"
	"github.com/trainyard/trainyard/trainer/internal/store"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// stopped trains until a signal comes after a step.
func stopped(t *testing.T, o TrainOptions, step int) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	o.Progress = &stopAfter{step, cancel}
	var signal exitcode.SignalError
	if _, err := Train(ctx, o); !errors.As(err, &signal) {
		t.Fatalf("training ended with %v, want the signal", err)
	}
}

// A run whose volume is gone goes on from the store, to the bits of one that was
// never interrupted.
func TestTrainGoesOnFromTheStore(t *testing.T) {
	data := prepareText(t)
	whole := quickTrain(copyRun(t, data))
	mustTrain(t, whole)
	want := trained(t, whole.RunDir)
	s := fileStore(t)
	for i, steps := range [][]int{{1}, {6}, {5, 11}} {
		id := "run-" + string(rune('a'+i))
		keep := func() TrainOptions {
			o := quickTrain(copyRun(t, data)) // a new volume each time
			o.RunID, o.Keep = id, Keep{Store: s, Every: time.Hour}
			return o
		}
		for _, step := range steps {
			stopped(t, keep(), step)
		}
		o := keep()
		r := mustTrain(t, o)
		if r.Resumed != steps[len(steps)-1] {
			t.Errorf("stopped at %v: went on from %d", steps, r.Resumed)
		}
		sameRun(t, "from the store", trained(t, o.RunDir), want)
		// And once more: the run is finished, there is nothing to train.
		again := keep()
		if r := mustTrain(t, again); r.Resumed != r.Step || r.BestDigest != want["best/model.safetensors"] {
			t.Errorf("a finished run: %+v", r)
		}
	}
}

// A signal is all that a cancelled pipeline leaves time for: no report comes after it.
func TestTrainThatIsStoppedTellsTheStore(t *testing.T) {
	s := fileStore(t)
	o := quickTrain(prepareText(t))
	o.RunID, o.Keep = "run", Keep{Store: s, Every: time.Hour}
	writeLog(t, o.RunDir, "train", "step 3\n")
	stopped(t, o, 3)
	if keys := keysBelow(t, s, "runs/run/"); !slices.Contains(keys, "logs/train.log") || !slices.Contains(keys, train.HistoryName) {
		t.Errorf("the store has %v", keys)
	}
}

// What is on the volume wins: it is never older than the copy.
func TestTrainTakesTheVolumeBeforeTheStore(t *testing.T) {
	s := fileStore(t)
	o := quickTrain(prepareText(t))
	o.RunID, o.Keep = "run", Keep{Store: s, Every: time.Hour}
	o.Now = ticking()
	stopped(t, o, 2)
	o.Keep = Keep{}
	stopped(t, o, 7)
	o.Keep = Keep{Store: s, Every: time.Hour}
	if r := mustTrain(t, o); r.Resumed != 7 {
		t.Errorf("went on from %d, want 7", r.Resumed)
	}
}

func TestTrainBeginsAnewWhenAsked(t *testing.T) {
	s := fileStore(t)
	data := prepareText(t)
	o := quickTrain(copyRun(t, data))
	o.RunID, o.Keep = "run", Keep{Store: s, Every: time.Hour}
	stopped(t, o, 7)
	o.RunDir, o.Resume = copyRun(t, data), ResumeNever
	if r := mustTrain(t, o); r.Resumed != 0 {
		t.Errorf("went on from %d", r.Resumed)
	}
	o.RunDir, o.Resume = copyRun(t, data), ResumeRequire
	if r := mustTrain(t, o); r.Resumed != 12 {
		t.Errorf("the new training did not replace what was kept: %d", r.Resumed)
	}
}

// A store that fails at any call in the middle costs no step; what it holds stays of
// use. One that fails at the beginning stops the run before it throws away what is
// kept.
func TestTrainWithAFaultyStore(t *testing.T) {
	data := prepareText(t)
	s := fileStore(t)
	kept := quickTrain(copyRun(t, data))
	kept.RunID, kept.Keep = "run", Keep{Store: s, Every: time.Nanosecond}
	stopped(t, kept, 6)
	for name, c := range storeFaults() {
		t.Run(name, func(t *testing.T) {
			o := quickTrain(copyRun(t, data))
			o.RunID, o.Keep = "run", Keep{Store: &faulty{Store: s, nth: 1, err: c.err}, Every: time.Hour}
			_, err := Train(t.Context(), o)
			oneClearLine(t, err, c.err)
			var coded *exitcode.Error
			if !errors.As(err, &coded) || coded.Code != c.code {
				t.Errorf("%v, want exit code %d", err, c.code)
			}
			if _, err := os.Stat(filepath.Join(o.RunDir, train.LastDir)); !os.IsNotExist(err) {
				t.Errorf("trained: %v", err)
			}
		})
	}
	count := &faulty{Store: s}
	all := quickTrain(copyRun(t, data))
	all.RunID, all.Keep = "count", Keep{Store: count, Every: time.Nanosecond}
	mustTrain(t, all)
	want := trained(t, all.RunDir)
	for nth := 2; nth <= count.calls; nth += 7 {
		var log bytes.Buffer
		o := quickTrain(copyRun(t, data))
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		id := "nth" + string(rune('a'+nth%26)) + string(rune('a'+nth/26))
		o.RunID, o.Keep = id, Keep{Store: &faulty{Store: s, nth: nth, err: errors.New("500")}, Every: time.Nanosecond}
		mustTrain(t, o)
		sameRun(t, "faulty store", trained(t, o.RunDir), want)
		if !strings.Contains(log.String(), "checkpoint not copied to the store") {
			t.Errorf("call %d failed and nobody said so:\n%s", nth, log.String())
		}
		// What an index names is whole.
		next := quickTrain(copyRun(t, data))
		next.RunID, next.Keep = id, Keep{Store: s, Every: time.Hour}
		mustTrain(t, next)
		sameRun(t, "after a faulty store", trained(t, next.RunDir), want)
	}
}

func TestTrainRefusesAKeptCheckpointThatWasChanged(t *testing.T) {
	data := prepareText(t)
	s := fileStore(t)
	o := quickTrain(copyRun(t, data))
	o.RunID, o.Keep = "run", Keep{Store: s, Every: time.Hour}
	stopped(t, o, 6)
	key := "runs/run/checkpoint/b/last/model.safetensors" // a has the one of step 5
	if !slices.Contains(keysBelow(t, s, ""), key) {
		t.Fatalf("nothing at %s: %v", key, keysBelow(t, s, ""))
	}
	if _, err := s.Put(t.Context(), key, strings.NewReader("other weights")); err != nil {
		t.Fatal(err)
	}
	o.RunDir = copyRun(t, data)
	if _, err := Train(t.Context(), o); code(err) != exitcode.Integrity || !strings.Contains(err.Error(), key) {
		t.Errorf("%v, want an integrity error that names the file", err)
	}
	// A run with other settings is another run.
	o = quickTrain(copyRun(t, data))
	o.RunID, o.Keep, o.Config.Seed = "other", Keep{Store: s, Every: time.Hour}, 7
	stopped(t, o, 6)
	o.RunDir, o.Config.Seed = copyRun(t, data), 8
	if _, err := Train(t.Context(), o); !errors.Is(err, train.ErrMismatch) {
		t.Errorf("%v, want the settings refused", err)
	}
}

// putCounter notes when copies are made.
type putCounter struct {
	store.Store
	indexes int
}

func (p *putCounter) PutIf(ctx context.Context, key string, body []byte, prev string) (store.Info, error) {
	p.indexes++
	return p.Store.PutIf(ctx, key, body, prev)
}

func TestCheckpointsAreCopiedNoMoreOftenThanAsked(t *testing.T) {
	data := prepareText(t)
	for name, c := range map[string]struct {
		every time.Duration
		want  int
	}{
		"each":               {time.Nanosecond, 3}, // steps 5, 10 and the last, 12
		"the first and last": {24 * time.Hour, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := &putCounter{Store: fileStore(t)}
			o := quickTrain(copyRun(t, data))
			o.RunID, o.Keep = "run", Keep{Store: s, Every: c.every}
			mustTrain(t, o)
			if s.indexes != c.want {
				t.Errorf("%d copies, want %d", s.indexes, c.want)
			}
		})
	}
}

func FuzzParseKept(f *testing.F) {
	f.Add([]byte(`{"schema":"trainyard.checkpoint/v1","step":3,"place":"a","files":[{"name":"last/trainer_state.json","sha256":"` + strings.Repeat("a", 64) + `"}]}`))
	f.Add([]byte(`{"place":"../b"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		i, err := parseKept(raw)
		if err != nil {
			return
		}
		for _, file := range i.Files {
			if !filepath.IsLocal(filepath.FromSlash(file.Name)) || strings.Contains(file.Name, "..") {
				t.Errorf("%q", file.Name)
			}
		}
	})
}

func TestParseKeptRefuses(t *testing.T) {
	ok := `{"name":"last/trainer_state.json","sha256":"` + strings.Repeat("a", 64) + `"}`
	index := func(place, files string) string {
		return `{"schema":"trainyard.checkpoint/v1","step":3,"place":"` + place + `","files":[` + files + `]}`
	}
	if _, err := parseKept([]byte(index("a", ok))); err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string]string{
		"no JSON": "{", "another schema": `{"schema":"x"}`, "another place": index("c", ok), "no state": index("a", ""),
		"out of the folder": index("a", ok+`,{"name":"last/../../x","sha256":"`+strings.Repeat("a", 64)+`"}`),
		"another folder":    index("a", ok+`,{"name":"lineage/train.json","sha256":"`+strings.Repeat("a", 64)+`"}`),
		"no digest":         index("a", `{"name":"last/trainer_state.json","sha256":""}`),
	} {
		if _, err := parseKept([]byte(raw)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// baseModel puts a model with the tokenizer of a run into the store.
func baseModel(t *testing.T, s store.Store, run, key string, seed uint64) {
	t.Helper()
	d, err := openTrainData(run)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	c := smallModel()
	c.VocabSize = d.meta.VocabSize
	m, err := gpt.New(c)
	if err != nil {
		t.Fatal(err)
	}
	m.Init(rng.New(seed, rng.Init))
	dir := t.TempDir()
	if _, err := hf.Save(dir, m, hf.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, tokenizerFile), d.tokenizer, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pytorch_model.bin"), []byte("not asked for"), 0o644); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, err := store.Upload(t.Context(), s, filepath.Join(dir, e.Name()), key+"/"+e.Name()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFetchModelOfTheStore(t *testing.T) {
	s := fileStore(t)
	run := prepareText(t)
	baseModel(t, s, run, "base/gpt2", 1)
	baseModel(t, s, run, "base/gpt2-large", 2) // begins with the same key
	counted := &faulty{Store: s}
	dir, origins, err := FetchModel(t.Context(), counted, "store:base/gpt2", run)
	if err != nil {
		t.Fatal(err)
	}
	first := counted.calls
	if got, err := os.ReadDir(dir); err != nil || len(got) != 3 {
		t.Errorf("fetched %v, %v, want config, weights and tokenizer", got, err)
	}
	if o := origins[filepath.Join(dir, hf.WeightsFile)]; o != s.URL()+"/base/gpt2/model.safetensors" {
		t.Errorf("origin %q of %v", o, origins)
	}
	sum, err := modelDigest(dir)
	if err != nil {
		t.Fatal(err)
	}
	// Again: it is there. With a trailing slash it is the same folder.
	counted.calls = 0
	if _, _, err := FetchModel(t.Context(), counted, "store:base/gpt2/", run); err != nil || counted.calls > first {
		t.Errorf("again: %v, %d calls", err, counted.calls)
	}
	// Another one, or a damaged copy, is fetched anew.
	flip(t, run, "base/model.safetensors")
	if _, _, err := FetchModel(t.Context(), s, "store:base/gpt2", run); err != nil {
		t.Fatal(err)
	}
	if got, _ := modelDigest(dir); got != sum {
		t.Error("a damaged copy was taken")
	}
	if _, _, err := FetchModel(t.Context(), s, "store:base/gpt2-large", run); err != nil {
		t.Fatal(err)
	}
	if got, _ := modelDigest(dir); got == sum {
		t.Error("the copy is still of the first model")
	}
	for name, c := range map[string]struct {
		s    store.Store
		from string
		code int
	}{
		"nothing there": {s, "store:base/gpt", exitcode.BadInput},
		"no store":      {nil, "store:base/gpt2", exitcode.Usage},
		"a store down":  {&faulty{Store: s, nth: 1, err: errors.New("500")}, "store:base/gpt2", exitcode.IO},
	} {
		if _, _, err := FetchModel(t.Context(), c.s, c.from, run); code(err) != c.code {
			t.Errorf("%s: %v, want exit code %d", name, err, c.code)
		}
	}
	if dir, _, err := FetchModel(t.Context(), nil, "./gpt2", run); err != nil || dir != "./gpt2" {
		t.Errorf("a directory: %q, %v", dir, err)
	}
}

// The whole of a fine-tuning from the store: tokenizer, base model, lineage that names
// where they are from, and a comparison with the base.
func TestFineTuneAModelOfTheStore(t *testing.T) {
	s := fileStore(t)
	first := prepareText(t)
	baseModel(t, s, first, "base/gpt2", 1)
	o := life(t, corpusFile(t), s)
	fetched, err := FetchInputs(t.Context(), s, o.Prepare.Inputs, o.RunDir)
	if err != nil {
		t.Fatal(err)
	}
	defer fetched.Close()
	p := o.Prepare
	p.RunDir = o.RunDir
	if p.Tokenizer, err = fetched.Tokenizer(t.Context(), s, "store:base/gpt2", o.RunDir); err != nil {
		t.Fatal(err)
	}
	rec := o.Recording
	rec.Origins = fetched.Origins
	if _, err := RecordedPrepare(t.Context(), rec, p); err != nil {
		t.Fatal(err)
	}
	fetched.Close()
	tr := o.Train
	if tr.From, rec.Origins, err = FetchModel(t.Context(), s, "store:base/gpt2", o.RunDir); err != nil {
		t.Fatal(err)
	}
	results := t.TempDir()
	rep, err := TrainWithResults(t.Context(), rec, tr, o.Target, results)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(results, artifactOutputs))
	if want := `{"digest":"` + rep.BestDigest + `","uri":"` + s.URL() + "/models/llm/" + hexDigest(rep.BestDigest) + `"}`; err != nil || string(b) != want {
		t.Errorf("%s, %v, want %s", b, err, want)
	}
	for _, c := range []struct{ stage, want string }{
		{"prepare", s.URL() + "/base/gpt2/tokenizer.json"}, {"train", s.URL() + "/base/gpt2/model.safetensors"},
	} {
		if b := readFile(t, o, "lineage/"+c.stage+".json"); !bytes.Contains(b, []byte(c.want)) {
			t.Errorf("the record of %s does not name %s", c.stage, c.want)
		}
	}
	if _, err := Lineage(t.Context(), LineageOptions{Target: o.Target, RunDir: o.RunDir, Checkpoint: o.Checkpoint}); err != nil {
		t.Errorf("lineage: %v", err)
	}
	if b := readFile(t, o, "lineage/prepare.json"); !bytes.Contains(b, []byte(`"`+s.URL()+`/base/gpt2"`)) || bytes.Contains(b, []byte(inputsTemp)) {
		t.Errorf("the record of prepare names a folder that is gone:\n%s", b)
	}
	sample := o.Sample
	sample.RunDir = o.RunDir
	if r, err := GenerateSamples(t.Context(), sample); err != nil || r.Base == nil || r.Base.Source != BaseDir {
		t.Errorf("samples compare with %+v, %v", r.Base, err)
	}
}
