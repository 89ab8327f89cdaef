package stage

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
)

func owned(t *testing.T, o RunOptions, owner string) RunOptions {
	t.Helper()
	o.Owner = owner
	o.Prepare.RunDir, o.Train.RunDir = o.RunDir, o.RunDir
	return o
}

func mustPrepareAs(t *testing.T, o RunOptions) {
	t.Helper()
	if _, err := PrepareWithResults(t.Context(), o.Recording, o.Prepare, ""); err != nil {
		t.Fatal(err)
	}
}

// Between two stages no process holds a lock, yet the directory is taken.
func TestAnotherOwnerIsRefusedBetweenStages(t *testing.T) {
	o := life(t, corpusFile(t), fileStore(t))
	a, b := owned(t, o, "trainyard/run-a"), owned(t, o, "trainyard/run-b")
	mustPrepareAs(t, a)
	before, err := os.Stat(filepath.Join(o.RunDir, "meta.json"))
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error) {
		t.Helper()
		if code(err) != exitcode.Conflict || !strings.Contains(err.Error(), "in use by trainyard/run-a since 20") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want it refused in a sentence that names the owner", what, err)
		}
	}
	_, err = PrepareWithResults(t.Context(), b.Recording, b.Prepare, "")
	refused("prepare", err)
	_, err = TrainWithResults(t.Context(), b.Recording, b.Train, b.Target, "")
	refused("train", err)
	after, err := os.Stat(filepath.Join(o.RunDir, "meta.json"))
	if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("the refused one changed the data: %v", err)
	}
	// The first goes on, and so does one on this machine that owns nothing.
	if _, err := TrainWithResults(t.Context(), a.Recording, a.Train, a.Target, ""); err != nil {
		t.Error(err)
	}
	_, err = Evaluate(t.Context(), evaluateOf(b))
	refused("evaluate", err)
	if _, err := Evaluate(t.Context(), evaluateOf(o)); err != nil {
		t.Error(err)
	}
	// The report of the pipeline of b must not give away what is a's.
	r := reportOf(t, b)
	r.Statuses = []string{"prepare=Failed"}
	var said bytes.Buffer
	r.Out = &said
	if page, err := Report(t.Context(), r); err != nil || page != "" || !strings.Contains(said.String(), "in use by trainyard/run-a; failed: prepare") {
		t.Errorf("the report of the other one: page %q, %v, %q", page, err, said.String())
	}
	if got := resultsOf(t, r); got["verdict"] != NoVerdict || got["report-uri"] != "" || len(keysBelow(t, o.Store, "runs/")) > 0 {
		t.Errorf("the other one published, results %v", got)
	}
	_, err = PrepareWithResults(t.Context(), b.Recording, b.Prepare, "")
	refused("prepare again", err)
	r = reportOf(t, a)
	r.Statuses = []string{"prepare=Succeeded"}
	if _, err := Report(t.Context(), r); err != nil {
		t.Error(err)
	}
	mustPrepareAs(t, b)
}

func TestOwnerIsGivenBackByWhatFails(t *testing.T) {
	o := life(t, corpusFile(t), fileStore(t))
	a, b := owned(t, o, "a"), owned(t, o, "b")
	mustPrepareAs(t, a)
	a.Train.Config.MaxIters = -1
	if _, err := TrainWithResults(t.Context(), a.Recording, a.Train, a.Target, ""); err == nil {
		t.Fatal("trained")
	}
	mustPrepareAs(t, b)
	b.Prepare.Inputs = []string{"/none"}
	if _, err := PrepareWithResults(t.Context(), b.Recording, b.Prepare, ""); err == nil {
		t.Fatal("prepared")
	}
	mustPrepareAs(t, a)
}

func TestOwnerIsTakenOverWhenAsked(t *testing.T) {
	o := life(t, corpusFile(t), fileStore(t))
	a, b := owned(t, o, "a"), owned(t, o, "b")
	mustPrepareAs(t, a)
	b.TakeOver = true
	mustPrepareAs(t, b)
	if _, err := TrainWithResults(t.Context(), a.Recording, a.Train, a.Target, ""); code(err) != exitcode.Conflict {
		t.Errorf("the old owner: %v, want a conflict", err)
	}
	// Taking over is for the beginning: two runs that both ask must not take turns.
	a.TakeOver = true
	if _, err := TrainWithResults(t.Context(), a.Recording, a.Train, a.Target, ""); code(err) != exitcode.Conflict {
		t.Errorf("the old owner in the middle: %v, want a conflict", err)
	}
}

func TestOneOfManyOwnersSucceeds(t *testing.T) {
	dir := t.TempDir()
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if own(dir, "run-"+string(rune('a'+i)), false, time.Unix(1e9, 0)) == nil {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d owners", won.Load())
	}
}

func TestOwnerFilesThatAreNone(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "no JSON": "a", "another schema": `{"schema":"x","owner":"a"}`, "no owner": `{"schema":"trainyard.owner/v1"}`} {
		dir := t.TempDir()
		path := filepath.Join(dir, OwnerFile)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := own(dir, "a", false, time.Now()); code(err) != exitcode.BadInput || !strings.Contains(err.Error(), "remove the file") {
			t.Errorf("%s: %v", name, err)
		}
		if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, []byte(text)) {
			t.Errorf("%s: the file was changed: %v", name, err)
		}
	}
	if err := own(t.TempDir(), "a\nb", false, time.Now()); code(err) != exitcode.Usage {
		t.Errorf("a name with a line break: %v", err)
	}
}

func FuzzReadOwner(f *testing.F) {
	f.Add([]byte(`{"schema":"trainyard.owner/v1","owner":"a/b","since":"2026-01-02T03:04:05Z"}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), OwnerFile)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if o, err := readOwner(path); err == nil && !ownerPattern.MatchString(o.Owner) {
			t.Errorf("%q", o.Owner)
		}
	})
}
