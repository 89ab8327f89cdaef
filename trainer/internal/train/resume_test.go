package train

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// outcome is all that a run leaves, without what tells the time.
type outcome struct {
	weights, moments [8]float64
	last, best, rows string
	record           Record
}

func outcomeOf(t *testing.T, r *rig) outcome {
	t.Helper()
	rec, found, err := OpenCheckpoint(r.run, r.saver.Identity)
	if err != nil || !found {
		t.Fatalf("checkpoint found %v: %v", found, err)
	}
	rec.Seconds = 0
	var rows []string
	for line := range strings.Lines(fileText(t, r.run, HistoryName)) {
		rows = append(rows, line[:strings.LastIndex(line, ",")])
	}
	return outcome{
		weights: r.model.W, moments: r.model.M,
		last: fileText(t, r.run, LastDir, "model.safetensors"), best: fileText(t, r.run, BestDir, "model.safetensors"),
		rows: strings.Join(rows, "\n"), record: rec,
	}
}

func (o outcome) differs(t *testing.T, want outcome) {
	t.Helper()
	if o.weights != want.weights || o.moments != want.moments || o.last != want.last || o.best != want.best {
		t.Error("other weights, moments or files")
	}
	if o.rows != want.rows {
		t.Errorf("history\n%s\nwant\n%s", o.rows, want.rows)
	}
	if got, want := toJSON(t, o.record), toJSON(t, want.record); got != want {
		t.Errorf("record\n%s\nwant\n%s", got, want)
	}
}

func TestKilledAtAnyStepAndResumedEqualsUndisturbed(t *testing.T) {
	cfg := testConfig()
	cfg.Accumulation = 2
	for _, save := range []int{0, 3} {
		whole := newRig(t, t.TempDir(), cfg).open(t)
		if _, err := whole.train(t.Context(), save); err != nil {
			t.Fatal(err)
		}
		want := outcomeOf(t, whole)
		for kill := 1; kill <= cfg.MaxIters; kill++ {
			dir := t.TempDir()
			first := newRig(t, dir, cfg).open(t)
			first.killAt(kill)
			if _, err := first.train(t.Context(), save); !errors.Is(err, errKilled) {
				t.Fatalf("kill at %d: %v", kill, err)
			}
			second := newRig(t, dir, cfg).open(t)
			if _, err := second.train(t.Context(), save); err != nil {
				t.Fatalf("resume after %d: %v", kill, err)
			}
			outcomeOf(t, second).differs(t, want)
			if t.Failed() {
				t.Fatalf("save interval %d, killed at step %d", save, kill)
			}
		}
	}
}

func TestFinishedRunIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	first := newRig(t, dir, testConfig()).open(t)
	mustRun(t, first)
	want := outcomeOf(t, first)
	again := newRig(t, dir, testConfig()).open(t)
	mustRun(t, again)
	outcomeOf(t, again).differs(t, want)
	if again.model.trains != 0 || again.model.losses != 0 {
		t.Errorf("%d batches trained and %d evaluated", again.model.trains, again.model.losses)
	}
}

func TestCheckpointOfAnotherRunIsRefused(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, newRig(t, dir, testConfig()).open(t))
	cfg := testConfig()
	cfg.LearningRate = 0.07
	for name, c := range map[string]struct {
		identity []Fact
		want     string
	}{
		"configuration": {append(cfg.Identity(), fact("tokenizer", "sha256:1"), fact("train.bin", "sha256:2")), "lr was 0.05 and is 0.07 now"},
		"vocabulary":    {append(testConfig().Identity(), fact("tokenizer", "sha256:9"), fact("train.bin", "sha256:2")), "tokenizer was sha256:1 and is sha256:9 now"},
		"corpus":        {append(testConfig().Identity(), fact("tokenizer", "sha256:1"), fact("train.bin", "sha256:9")), "train.bin was sha256:2 and is sha256:9 now"},
		"a new setting": {append(newRig(t, dir, testConfig()).saver.Identity, fact("shiny", true)), "shiny is true now and was not recorded"},
		"a lost one":    {append(testConfig().Identity(), fact("tokenizer", "sha256:1")), "train.bin was sha256:2 and is not known now"},
	} {
		_, _, err := OpenCheckpoint(dir, c.identity)
		if !errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", name, err, c.want)
		}
	}
}

func TestDamagedCheckpointIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(last string) error
		want  error
		text  string
	}{
		"a changed byte": {func(last string) error {
			return os.WriteFile(filepath.Join(last, "state.safetensors"), []byte("[0]"), 0o644)
		}, ErrIntegrity, "state.safetensors is sha256:"},
		"a missing file": {func(last string) error { return os.Remove(filepath.Join(last, "model.safetensors")) }, ErrIntegrity, "model.safetensors is missing"},
		"no record":      {func(last string) error { return os.Remove(filepath.Join(last, RecordName)) }, ErrCheckpoint, "trainer_state.json is missing"},
		"a cut record":   {func(last string) error { return os.Truncate(filepath.Join(last, RecordName), 40) }, ErrCheckpoint, "unexpected end of JSON"},
		"an old schema": {func(last string) error {
			return os.WriteFile(filepath.Join(last, RecordName), []byte(`{"schema_version": 99}`), 0o644)
		}, ErrCheckpoint, "schema_version is 99"},
		"a path out of the directory": {func(last string) error {
			b, err := os.ReadFile(filepath.Join(last, RecordName))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(last, RecordName), []byte(strings.Replace(string(b), `"model.safetensors"`, `"../model.safetensors"`, 1)), 0o644)
		}, ErrCheckpoint, `"../model.safetensors" outside`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, t.TempDir(), testConfig())
			mustRun(t, r)
			if err := c.spoil(filepath.Join(r.run, LastDir)); err != nil {
				t.Fatal(err)
			}
			_, _, err := OpenCheckpoint(r.run, r.saver.Identity)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %v with %q", err, c.want, c.text)
			}
		})
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add([]byte(`{"schema_version":1,"step":3,"total_steps":5,"evals":[{"step":0,"loss":8.4}],"files":{"a":"sha256:0"}}`))
	f.Add([]byte(`{"schema_version":1,"step":-1}`))
	f.Add([]byte(`{"schema_version":1,"total_steps":5,"seconds":1e300}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRecord(b)
		if err != nil {
			return
		}
		if s := r.State(); s.Step < 0 || s.Step > s.Total || s.Elapsed < 0 {
			t.Errorf("state %+v of an accepted record", s)
		}
	})
}
