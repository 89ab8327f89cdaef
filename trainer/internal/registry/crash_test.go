package registry

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/store"
	"github.com/trainyard/trainyard/trainer/internal/store/storefault"
)

// Each call dies before and after each of its writes; the same call again must
// bring everything in order.
func TestCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	calls := map[string]func(t *testing.T, r *Registry) error{
		"add": func(t *testing.T, r *Registry) error {
			_, _, err := r.Add(t.Context(), addition(t, "new"))
			return err
		},
		"promote": func(t *testing.T, r *Registry) error {
			_, err := r.Promote(t.Context(), Move{Model: model, Alias: "production", Version: sha("b"), Expect: sha("a")})
			return err
		},
		"first promote": func(t *testing.T, r *Registry) error {
			_, err := r.Promote(t.Context(), Move{Model: model, Alias: "candidate", Version: sha("b"), Expect: ExpectNone})
			return err
		},
		"rollback": func(t *testing.T, r *Registry) error {
			_, err := r.Rollback(t.Context(), Move{Model: model, Alias: "production", Version: sha("z")})
			return err
		},
		"blocked": func(t *testing.T, r *Registry) error {
			_, _, err := r.RecordBlocked(t.Context(), Blocked{Model: model, Alias: "production", Version: sha("bad"), Run: "run-1"})
			return err
		},
	}
	wantEvents := map[string]int{"add": 2, "promote": 3, "first promote": 3, "rollback": 3, "blocked": 3}
	for name, call := range calls {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, after the write %v", name, after), func(t *testing.T) {
				t.Parallel()
				for n := 1; crashAt(t, n, after, call, wantEvents[name]); n++ {
				}
				if _, ok := wantEvents[name]; !ok {
					t.Error("no expectation")
				}
			})
		}
	}
}

var errDied = errors.New("died")

// crashAt lets call die at its nth write and then runs it again. It returns
// false when call has fewer writes.
func crashAt(t *testing.T, n int, after bool, call func(*testing.T, *Registry) error, wantEvents int) bool {
	plain, s := openDir(t, t.TempDir())
	for _, v := range []string{"z", "a"} {
		promote(t, plain, add(t, plain, v))
	}
	add(t, plain, "b")
	writes := 0
	hook := func(op storefault.Op, _ string) error {
		if op.Writes() {
			writes++
		}
		if writes >= n { // dead processes do not read either
			return errDied
		}
		return nil
	}
	faulty := &storefault.Store{Store: s, Before: hook}
	if after {
		faulty.Before, faulty.After = nil, hook
	}
	err := call(t, New(faulty, Options{Now: clock(), Sleep: noSleep}))
	if err == nil {
		if n == 1 {
			t.Error("no write was seen")
		}
		return false
	}
	if !errors.Is(err, errDied) {
		t.Errorf("write %d: %v", n, err)
	}
	// What is readable now is whole.
	if versions, err := plain.Versions(t.Context(), model); err != nil || len(versions) < 3 {
		t.Errorf("write %d: %d versions, %v", n, len(versions), err)
	}
	events, err := plain.History(t.Context(), model)
	if err != nil {
		t.Errorf("write %d: history: %v", n, err)
	}
	last := events[len(events)-1]
	if p, err := plain.Get(t.Context(), model, last.Alias); err != nil || (last.Kind != KindBlocked && p.Version != last.Version) {
		t.Errorf("write %d: %+v, %v", n, p, err)
	}
	if err := call(t, plain); err != nil {
		t.Errorf("write %d: the next call: %v", n, err)
	}
	if events := checkConsistent(t, plain, s); len(events) != wantEvents {
		t.Errorf("write %d: %d events, want %d", n, len(events), wantEvents)
	}
	versions, err := plain.Versions(t.Context(), model)
	for _, v := range versions {
		if _, verifyErr := plain.Verify(t.Context(), model, v.Version); verifyErr != nil {
			err = errors.Join(err, verifyErr)
		}
	}
	if err != nil {
		t.Errorf("write %d: %v", n, err)
	}
	return true
}

// Two movers may write the alias file in the other order than their events.
func TestAliasFileNeverMovesBack(t *testing.T) {
	t.Parallel()
	r, s := openDir(t, t.TempDir())
	for _, v := range []string{"a", "b", "c"} {
		promote(t, r, add(t, r, v))
	}
	events := checkConsistent(t, r, s)
	if err := r.point(t.Context(), events[1]); err != nil {
		t.Fatal(err)
	}
	checkConsistent(t, r, s)
}

// An alias that has its version already is not reported as done while its file
// cannot be written.
func TestRepairThatFailsIsReported(t *testing.T) {
	t.Parallel()
	plain, s := openDir(t, t.TempDir())
	a := add(t, plain, "a")
	noAlias := func(op storefault.Op, key string) error {
		if op.Writes() && strings.Contains(key, "/aliases/") {
			return store.ErrDenied
		}
		return nil
	}
	r := New(&storefault.Store{Store: s, Before: noAlias}, Options{Sleep: noSleep})
	for _, changed := range []bool{true, false} {
		moved, err := r.Promote(t.Context(), Move{Model: model, Alias: "production", Version: a})
		if moved.Changed != changed || !errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), "repeat to repair") {
			t.Errorf("%+v, %v", moved, err)
		}
	}
	promote(t, plain, a)
	if n := len(checkConsistent(t, plain, s)); n != 1 {
		t.Errorf("%d events", n)
	}
}

// A store that is down, denied or gone is never "not found": the first promote
// must not take it for an empty registry.
func TestStoreFaultsFailClosed(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{errors.New("timeout"), store.ErrDenied, store.ErrNoBucket, store.ErrIntegrity} {
		for _, op := range []storefault.Op{storefault.Get, storefault.Stat, storefault.List, storefault.PutIf} {
			plain, s := openDir(t, filepath.Join(t.TempDir(), "s"))
			a, b := add(t, plain, "a"), add(t, plain, "b")
			promote(t, plain, a)
			r := New(&storefault.Store{Store: s, Before: func(o storefault.Op, _ string) error {
				if o == op {
					return fmt.Errorf("the store says: %w", fault)
				}
				return nil
			}}, Options{Sleep: noSleep})
			_, err := r.Promote(t.Context(), Move{Model: model, Alias: "production", Version: b})
			if !errors.Is(err, fault) || errors.Is(err, store.ErrNotFound) || strings.Count(err.Error(), "\n") > 0 {
				t.Errorf("%s %v: %v", op, fault, err)
			}
			if op == storefault.Get || op == storefault.List {
				if _, err := r.Get(t.Context(), model, "production"); !errors.Is(err, fault) || errors.Is(err, store.ErrNotFound) {
					t.Errorf("get with %s %v: %v", op, fault, err)
				}
			}
			if p, err := plain.Get(t.Context(), model, "production"); err != nil || p.Version != a {
				t.Errorf("%s %v: production is now %+v, %v", op, fault, p, err)
			}
		}
	}
}

// An event that is listed and then missing is damage. Taken for "the alias was
// never set" it would let a candidate through without a comparison.
func TestListedEventThatIsMissing(t *testing.T) {
	t.Parallel()
	plain, s := openDir(t, t.TempDir())
	promote(t, plain, add(t, plain, "a"))
	for _, lost := range []string{"/history/", "/history/ and /aliases/"} {
		r := New(&storefault.Store{Store: s, Before: func(op storefault.Op, key string) error {
			if op == storefault.Get && (strings.Contains(key, "/history/") || strings.Contains(key, "/aliases/") && strings.Contains(lost, "/aliases/")) {
				return store.ErrNotFound
			}
			return nil
		}}, Options{Sleep: noSleep})
		if _, err := r.Get(t.Context(), model, "production"); !errors.Is(err, store.ErrIntegrity) || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", lost, err)
		}
	}
}

// A server that calls every race lost, though nobody wins, must not be asked
// for ever.
func TestRaceThatNobodyWins(t *testing.T) {
	t.Parallel()
	plain, s := openDir(t, t.TempDir())
	a := add(t, plain, "a")
	r := New(&storefault.Store{Store: s, Before: func(op storefault.Op, _ string) error {
		if op == storefault.PutIf {
			return store.ErrLost
		}
		return nil
	}}, Options{Sleep: noSleep})
	if _, err := r.Promote(t.Context(), Move{Model: model, Alias: "production", Version: a}); !errors.Is(err, store.ErrLost) || errors.Is(err, ErrMoved) {
		t.Errorf("got %v", err)
	}
}
