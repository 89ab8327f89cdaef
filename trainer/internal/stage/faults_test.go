package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gate"
	"github.com/trainyard/trainyard/trainer/internal/registry"
	"github.com/trainyard/trainyard/trainer/internal/store"
)

// faulty is a store whose nth call fails, and every call after it.
type faulty struct {
	store.Store
	calls int
	nth   int
	err   error
}

// next counts a call and says whether it fails.
func (f *faulty) next() error {
	f.calls++
	if f.nth > 0 && f.calls >= f.nth {
		return f.err
	}
	return nil
}

func (f *faulty) Put(ctx context.Context, key string, r io.ReadSeeker) (store.Info, error) {
	if err := f.next(); err != nil {
		return store.Info{}, fmt.Errorf("put %s: %w", key, err)
	}
	return f.Store.Put(ctx, key, r)
}

func (f *faulty) PutIf(ctx context.Context, key string, body []byte, prev string) (store.Info, error) {
	if err := f.next(); err != nil {
		return store.Info{}, fmt.Errorf("put %s: %w", key, err)
	}
	return f.Store.PutIf(ctx, key, body, prev)
}

// Get writes half of the object before it fails, as a body that is cut does.
func (f *faulty) Get(ctx context.Context, key string, w io.Writer) (store.Info, error) {
	if err := f.next(); err != nil {
		var whole bytes.Buffer
		if _, getErr := f.Store.Get(ctx, key, &whole); getErr == nil {
			_, _ = w.Write(whole.Bytes()[:whole.Len()/2])
		}
		return store.Info{}, fmt.Errorf("get %s: %w", key, err)
	}
	return f.Store.Get(ctx, key, w)
}

func (f *faulty) Stat(ctx context.Context, key string) (store.Info, error) {
	if err := f.next(); err != nil {
		return store.Info{}, fmt.Errorf("stat %s: %w", key, err)
	}
	return f.Store.Stat(ctx, key)
}

func (f *faulty) List(ctx context.Context, prefix string) ([]store.Info, error) {
	if err := f.next(); err != nil {
		return nil, fmt.Errorf("list %s: %w", prefix, err)
	}
	return f.Store.List(ctx, prefix)
}

// storeFaults are what a store can do to us, with the exit code that each has.
func storeFaults() map[string]struct {
	err  error
	code int
} {
	return map[string]struct {
		err  error
		code int
	}{
		"timeout":        {fmt.Errorf("dial tcp: %w", context.DeadlineExceeded), exitcode.IO},
		"status 500":     {errors.New("500 Internal Server Error"), exitcode.IO},
		"truncated body": {io.ErrUnexpectedEOF, exitcode.IO},
		"wrong checksum": {store.ErrIntegrity, exitcode.Integrity},
		"bucket missing": {store.ErrNoBucket, exitcode.IO},
		"denied":         {store.ErrDenied, exitcode.IO},
	}
}

// ready is a run that is trained, evaluated and judged, with a model promoted
// before it, so that every stage has something to ask the store.
func ready(t *testing.T) (RunOptions, store.Store) {
	t.Helper()
	s := fileStore(t)
	corpus := corpusFile(t)
	mustRun(t, life(t, corpus, s))
	o := life(t, corpus, s)
	o.Train.Config.MaxIters = 20
	if err := (&running{o: o}).prepareAndTrain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := Evaluate(t.Context(), evaluateOf(o)); err != nil {
		t.Fatal(err)
	}
	if _, err := Gate(t.Context(), gateOf(o)); err != nil {
		t.Fatal(err)
	}
	return o, s
}

// leftovers are files that a stage should have removed.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && (strings.HasPrefix(d.Name(), ".baseline-") || strings.Contains(d.Name(), ".tmp-")) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func oneClearLine(t *testing.T, err error, wrapped error) {
	t.Helper()
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), wrapped.Error()) {
		t.Errorf("error %q, want one line with %q", err, wrapped)
	}
}

// A store that fails at any of its calls fails the evaluation: an old report
// stays whole, a new one is not written, no file is left over.
func TestEvaluateWithAFaultyStore(t *testing.T) {
	o, s := ready(t)
	before := readFile(t, o, EvalReportFile)
	probe := &faulty{Store: s}
	o.Store = probe
	if _, err := Evaluate(t.Context(), evaluateOf(o)); err != nil {
		t.Fatal(err)
	}
	calls := probe.calls
	if calls < 5 {
		t.Fatalf("%d calls of the store: the test reaches too little", calls)
	}
	for name, fault := range storeFaults() {
		t.Run(name, func(t *testing.T) {
			for _, nth := range []int{1, calls / 2, calls} {
				o.Store = &faulty{Store: s, nth: nth, err: fault.err}
				_, err := Evaluate(t.Context(), evaluateOf(o))
				oneClearLine(t, err, fault.err)
				if code(err) != fault.code {
					t.Errorf("call %d: exit code %d, want %d: %v", nth, code(err), fault.code, err)
				}
			}
			if !bytes.Equal(before, readFile(t, o, EvalReportFile)) {
				t.Error("the report changed")
			}
			if left := leftovers(t, o.RunDir); len(left) != 0 {
				t.Errorf("left over: %v", left)
			}
		})
	}
}

// The gate must block whatever the store does but answer: an outage once turned
// the comparison of such a pipeline off.
func TestGateWithAFaultyStoreBlocks(t *testing.T) {
	o, s := ready(t)
	for name, fault := range storeFaults() {
		t.Run(name, func(t *testing.T) {
			for _, nth := range []int{1, 2} {
				o.Store = &faulty{Store: s, nth: nth, err: fault.err}
				g := gateOf(o)
				var out bytes.Buffer
				g.Out, g.ResultsDir = &out, t.TempDir()
				rep, err := Gate(t.Context(), g)
				if code(err) != exitcode.Failed || !errors.Is(err, ErrBlocked) {
					t.Fatalf("call %d: error %v, want blocked", nth, err)
				}
				if len(rep.Reasons) != 1 || !strings.Contains(rep.Reasons[0], fault.err.Error()) {
					t.Errorf("reasons %q", rep.Reasons)
				}
				onDisk, err := readGateReport(filepath.Join(o.RunDir, GateReportFile))
				if err != nil || onDisk.Verdict != gate.Blocked {
					t.Errorf("report on disk: %+v, %v", onDisk, err)
				}
				if v, _ := os.ReadFile(filepath.Join(g.ResultsDir, "verdict")); string(v) != gate.Blocked {
					t.Errorf("result verdict is %q", v)
				}
				if !strings.Contains(out.String(), "not in the history of llm") {
					t.Errorf("not said that the history does not have it:\n%s", out.String())
				}
			}
		})
	}
	t.Run("cannot be opened", func(t *testing.T) {
		o.Store = nil
		g := gateOf(o)
		g.StoreErr = fmt.Errorf("file:///none: %w", store.ErrNotFound) // not an answer of a store
		if rep, err := Gate(t.Context(), g); !errors.Is(err, ErrBlocked) || !strings.Contains(rep.Reasons[0], "cannot ask") {
			t.Errorf("error %v", err)
		}
	})
}

// A promotion that fails at any call leaves the alias where it was or, when the
// move itself was done, where it should be; nothing in between, and the next
// promotion completes it.
func TestPromoteWithAFaultyStore(t *testing.T) {
	o, s := ready(t)
	old := aliasOf(t, s)
	counted := &faulty{Store: cloneStore(t, s)}
	probe := o
	probe.Store = counted
	done, err := Promote(t.Context(), promoteOf(probe))
	if err != nil {
		t.Fatal(err)
	}
	want := done.Version
	if err := os.Remove(filepath.Join(o.RunDir, PromoteReportFile)); err != nil {
		t.Fatal(err)
	}
	for name, fault := range storeFaults() {
		t.Run(name, func(t *testing.T) {
			for _, nth := range []int{1, counted.calls / 2, counted.calls} {
				clean := cloneStore(t, s)
				broken := o
				broken.Store = &faulty{Store: clean, nth: nth, err: fault.err}
				_, err := Promote(t.Context(), promoteOf(broken))
				oneClearLine(t, err, fault.err)
				if code(err) != fault.code {
					t.Errorf("call %d: exit code %d, want %d: %v", nth, code(err), fault.code, err)
				}
				now := aliasOf(t, clean)
				if moved := len(historyOf(t, clean)) == 2; (moved && now != want) || (!moved && now != old) {
					t.Errorf("call %d: alias %s after %d events", nth, now, len(historyOf(t, clean)))
				}
				if isThere(broken, PromoteReportFile) {
					t.Errorf("call %d: a promote report was written", nth)
					_ = os.Remove(filepath.Join(o.RunDir, PromoteReportFile))
				}
				broken.Store = clean
				if _, err := Promote(t.Context(), promoteOf(broken)); err != nil || aliasOf(t, clean) != want {
					t.Errorf("call %d: again: %v", nth, err)
				}
				_ = os.Remove(filepath.Join(o.RunDir, PromoteReportFile))
			}
		})
	}
}

// cloneStore copies a file store.
func cloneStore(t *testing.T, s store.Store) store.Store {
	t.Helper()
	from := strings.TrimPrefix(s.URL(), "file://")
	to := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	c, err := store.Open(t.Context(), "file://"+to, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRollbackAndLineageWithAFaultyStore(t *testing.T) {
	o, s := ready(t)
	if _, err := Promote(t.Context(), promoteOf(o)); err != nil {
		t.Fatal(err)
	}
	now := aliasOf(t, s)
	for name, fault := range storeFaults() {
		for what, act := range map[string]func(f *faulty) error{
			"rollback": func(f *faulty) error {
				_, err := Rollback(t.Context(), RollbackOptions{Target: Target{Store: f, Name: "llm", Alias: DefaultAlias}, Now: ticking(), Out: io.Discard})
				return err
			},
			"rollback to a version": func(f *faulty) error {
				_, err := Rollback(t.Context(), RollbackOptions{Target: Target{Store: f, Name: "llm", Alias: DefaultAlias}, To: now[:12], Now: ticking(), Out: io.Discard})
				return err
			},
			"lineage": func(f *faulty) error {
				_, err := Lineage(t.Context(), LineageOptions{Target: Target{Store: f, Name: "llm", Alias: DefaultAlias}})
				return err
			},
		} {
			t.Run(what+", "+name, func(t *testing.T) {
				err := act(&faulty{Store: s, nth: 1, err: fault.err})
				oneClearLine(t, err, fault.err)
				if code(err) != fault.code {
					t.Errorf("exit code %d, want %d: %v", code(err), fault.code, err)
				}
				if got := aliasOf(t, s); got != now {
					t.Errorf("alias moved to %s", got)
				}
			})
		}
	}
}

// Whoever promotes first wins; the other is told to compare again.
func TestPromoteAfterTheAliasMoved(t *testing.T) {
	o, s := ready(t)
	r := registry.New(s, registry.Options{})
	other := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(other, []byte("another model"), 0o644); err != nil {
		t.Fatal(err)
	}
	m, _, err := r.Add(t.Context(), registry.Addition{Model: "llm", Files: []registry.File{{Name: registry.Weights, Path: other}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Promote(t.Context(), registry.Move{Model: "llm", Alias: DefaultAlias, Version: m.Version}); err != nil {
		t.Fatal(err)
	}
	if _, err = Promote(t.Context(), promoteOf(o)); code(err) != exitcode.Conflict || !errors.Is(err, registry.ErrMoved) {
		t.Errorf("error %v, want a conflict", err)
	}
	if got := aliasOf(t, s); got != m.Version {
		t.Errorf("alias %s, want the one that came first", got)
	}
	// And the gate, asked again, does not pass the old comparison.
	if rep, err := Gate(t.Context(), gateOf(o)); !errors.Is(err, ErrBlocked) || !strings.Contains(rep.Reasons[0], "evaluate again") {
		t.Errorf("gate: %v", err)
	}
}
