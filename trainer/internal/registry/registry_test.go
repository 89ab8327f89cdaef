package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/store"
)

const model = "demo"

func sha(data string) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}

// clock gives every call the next second.
func clock() func() time.Time {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time { now = now.Add(time.Second); return now }
}

func fixed() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func noSleep(context.Context, time.Duration) error { return nil }

// openDir opens a registry in a directory, and its store.
func openDir(t *testing.T, dir string) (*Registry, store.Store) {
	t.Helper()
	url, err := store.FileURL(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), url, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	return New(s, Options{Now: clock(), Sleep: noSleep}), s
}

func promote(t *testing.T, r *Registry, version string) Moved {
	t.Helper()
	moved, err := r.Promote(t.Context(), Move{Model: model, Alias: "production", Version: version})
	if err != nil {
		t.Fatal(err)
	}
	return moved
}

// checkConsistent compares alias file, Get and history.
func checkConsistent(t *testing.T, r *Registry, s store.Store) []Event {
	t.Helper()
	events, err := r.History(t.Context(), model)
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]Event{}
	for i, e := range events {
		if e.Seq != int64(i)+1 {
			t.Errorf("event %d has number %d", i+1, e.Seq)
		}
		if e.Previous != last[e.Alias].Version {
			t.Errorf("event %d says that %s had %.8s, it had %.8s", e.Seq, e.Alias, e.Previous, last[e.Alias].Version)
		}
		if e.Kind != KindBlocked {
			if e.Version == e.Previous {
				t.Errorf("event %d moves nothing", e.Seq)
			}
			last[e.Alias] = e
		}
	}
	for alias, e := range last {
		p, err := r.Get(t.Context(), model, alias)
		if err != nil || p != pointerOf(e) {
			t.Errorf("%s is %+v (%v), the last event is %+v", alias, p, err, e)
		}
		raw, _, err := store.ReadAll(t.Context(), s, aliasKey(model, alias), 1000)
		var file Pointer
		if err == nil {
			err = json.Unmarshal(raw, &file)
		}
		if err != nil || file != p {
			t.Errorf("file of %s: %+v (%v), want %+v", alias, file, err, p)
		}
	}
	return events
}

func TestLifeOfAModel(t *testing.T) {
	t.Parallel()
	r, s := openDir(t, t.TempDir())
	if _, err := r.Get(t.Context(), model, "production"); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("before the first promote: %v", err)
	}
	a, b := add(t, r, "a"), add(t, r, "b")

	first := promote(t, r, a)
	if !first.Changed || first.From != "" || first.Pointer.Version != a || first.Pointer.Seq != 1 {
		t.Errorf("first: %+v", first)
	}
	second := promote(t, r, b)
	if !second.Changed || second.From != a || second.Pointer.Previous != a {
		t.Errorf("second: %+v", second)
	}
	again := promote(t, r, b)
	if again.Changed || again.Pointer != second.Pointer {
		t.Errorf("again: %+v", again)
	}
	e, added, err := r.RecordBlocked(t.Context(), Blocked{Model: model, Alias: "production", Version: sha("bad"), Run: "run-7", Reasons: []string{"loss 9 > 5"}})
	if err != nil || !added || e.Seq != 3 || e.Previous != b {
		t.Errorf("blocked: %+v, %v, %v", e, added, err)
	}
	same, added, err := r.RecordBlocked(t.Context(), Blocked{Model: model, Alias: "production", Version: sha("bad"), Run: "run-7"})
	if err != nil || added || same.Seq != 3 {
		t.Errorf("blocked again: %+v, %v, %v", same, added, err)
	}
	back, err := r.Rollback(t.Context(), Move{Model: model, Alias: "production", Run: "operator"})
	if err != nil || !back.Changed || back.From != b || back.Pointer.Version != a {
		t.Errorf("rollback: %+v, %v", back, err)
	}
	if _, err := r.Rollback(t.Context(), Move{Model: model, Alias: "production"}); !errors.Is(err, ErrNoPrevious) {
		t.Errorf("rollback past the first: %v", err)
	}

	events := checkConsistent(t, r, s)
	var kinds []string
	for _, e := range events {
		kinds = append(kinds, fmt.Sprintf("%d %s %.4s<-%.4s", e.Seq, e.Kind, e.Version, e.Previous))
	}
	want := []string{
		fmt.Sprintf("1 promote %.4s<-", a), fmt.Sprintf("2 promote %.4s<-%.4s", b, a),
		fmt.Sprintf("3 blocked %.4s<-%.4s", sha("bad"), b), fmt.Sprintf("4 rollback %.4s<-%.4s", a, b),
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("history %q, want %q", kinds, want)
	}

	versions, err := r.Versions(t.Context(), model)
	if err != nil || len(versions) != 2 || versions[0].Version != a || !slices.Equal(versions[0].Aliases, []string{"production"}) || versions[1].Aliases != nil {
		t.Errorf("versions %+v, %v", versions, err)
	}
	if models, err := r.Models(t.Context()); err != nil || !slices.Equal(models, []string{model}) {
		t.Errorf("models %v, %v", models, err)
	}
	dir := t.TempDir()
	if _, err := r.Fetch(t.Context(), model, "production", dir); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, Weights)); string(got) != "a" {
		t.Errorf("fetched weights %q", got)
	}
	if want := s.URL() + "/models/demo/" + a; r.Location(model, a) != want {
		t.Errorf("location %s, want %s", r.Location(model, a), want)
	}
}

func TestRefusesBadNames(t *testing.T) {
	t.Parallel()
	r, _ := openDir(t, t.TempDir())
	v := sha("x")
	for _, m := range []Move{
		{Model: "a/b", Alias: "p", Version: v}, {Model: model, Alias: "", Version: v}, {Model: model, Alias: v, Version: v},
		{Model: model, Alias: "p", Version: "abc"}, {Model: model, Alias: "p", Version: strings.ToUpper(v)},
		{Model: model, Alias: "p", Version: v, Expect: "latest"},
	} {
		if _, err := r.Promote(t.Context(), m); err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%+v: %v", m, err)
		}
	}
	if _, err := r.Promote(t.Context(), Move{Model: model, Alias: "p", Version: v}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("promote of a version that does not exist: %v", err)
	}
}
