package registry

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/store"
)

func TestRollbackTargets(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		moves string // letters promote, < rolls back, <x rolls back to x
		want  string
		err   error
	}{
		{"to the version before", "ab <", "a", nil},
		{"twice goes further back, not forward to the bad one", "abc < <", "a", nil},
		{"skips what was rolled back", "abc < d <", "b", nil},
		{"to an earlier version", "abcd <a", "a", nil},
		{"then not back up", "abcd <b <", "a", nil},
		{"to one that was rolled back is possible when named", "ab < <b", "b", nil},
		{"and from there back again", "ab < <b <", "a", nil},
		{"through a version that was promoted twice", "aba < <", "a", nil},
		{"to the current one changes nothing", "ab <b", "b", nil},
		{"nothing before the first", "a <", "a", ErrNoPrevious},
		{"never set", "<", "", ErrNoPrevious},
		{"a version that never had the alias", "a <z", "a", ErrNoPrevious},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r, s := openDir(t, t.TempDir())
			add(t, r, "z")
			var err error
			for _, word := range strings.Fields(tc.moves) {
				if to, ok := strings.CutPrefix(word, "<"); ok {
					m := Move{Model: model, Alias: "production"}
					if to != "" {
						m.Version = sha(to)
					}
					_, err = r.Rollback(t.Context(), m)
					continue
				}
				for _, c := range word {
					promote(t, r, add(t, r, string(c)))
				}
			}
			if !errors.Is(err, tc.err) {
				t.Errorf("got %v, want %v", err, tc.err)
			}
			checkConsistent(t, r, s)
			p, err := r.Get(t.Context(), model, "production")
			if tc.want == "" {
				if !errors.Is(err, store.ErrNotFound) {
					t.Errorf("got %v", err)
				}
			} else if err != nil || p.Version != sha(tc.want) {
				t.Errorf("at %+v, %v, want %s", p, err, tc.want)
			}
		})
	}
}

func TestExpect(t *testing.T) {
	t.Parallel()
	r, s := openDir(t, t.TempDir())
	a, b, c := add(t, r, "a"), add(t, r, "b"), add(t, r, "c")
	for _, tc := range []struct {
		name, to, expect string
		changed          bool
		err              error
	}{
		{"none, and there is none", a, ExpectNone, true, nil},
		{"none, but there is one", b, ExpectNone, false, ErrMoved},
		{"another one", b, c, false, ErrMoved},
		{"the right one", b, a, true, nil},
		{"the old one, but the move is done already", b, a, false, nil},
		{"any", c, ExpectAny, true, nil},
		{"what is seen", a, ExpectSeen, true, nil},
	} {
		moved, err := r.Promote(t.Context(), Move{Model: model, Alias: "production", Version: tc.to, Expect: tc.expect})
		if moved.Changed != tc.changed || !errors.Is(err, tc.err) || (err != nil) != (tc.err != nil) {
			t.Errorf("%s: %+v, %v", tc.name, moved, err)
		}
		if err != nil && !errors.Is(err, store.ErrLost) {
			t.Errorf("%s: not a lost race: %v", tc.name, err)
		}
	}
	if n := len(checkConsistent(t, r, s)); n != 4 {
		t.Errorf("%d events", n)
	}
}

// trusting is a store whose Stat believes what it recorded, as S3 servers do.
type trusting struct {
	store.Store
	recorded map[string]store.Info
}

func (s trusting) Put(ctx context.Context, key string, r io.ReadSeeker) (store.Info, error) {
	info, err := s.Store.Put(ctx, key, r)
	s.recorded[key] = info
	return info, err
}

func (s trusting) Stat(ctx context.Context, key string) (store.Info, error) {
	if info, ok := s.recorded[key]; ok {
		return info, nil
	}
	return s.Store.Stat(ctx, key)
}

// A byte that changed on the store's disk, size and record as before, must not
// come into use again; adding the version again repairs it.
func TestChangedByteIsFoundBeforeAVersionIsUsedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, s := openDir(t, dir)
	r := New(trusting{s, map[string]store.Info{}}, Options{Now: clock(), Sleep: noSleep})
	promote(t, r, add(t, r, "a"))
	promote(t, r, add(t, r, "b"))
	path := filepath.Join(dir, filepath.FromSlash(versionDir(model, sha("a"))), Weights)
	if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Rollback(t.Context(), Move{Model: model, Alias: "production"}); !errors.Is(err, store.ErrIntegrity) {
		t.Errorf("rollback to a spoilt version: %v", err)
	}
	if p, err := r.Get(t.Context(), model, "production"); err != nil || p.Version != sha("b") {
		t.Errorf("at %+v, %v", p, err)
	}
	add(t, r, "a")
	if m, err := r.Rollback(t.Context(), Move{Model: model, Alias: "production"}); err != nil || m.Pointer.Version != sha("a") {
		t.Errorf("rollback after the repair: %+v, %v", m, err)
	}
}
