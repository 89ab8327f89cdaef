package registry

import (
	"bytes"
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

// addition writes the files of a model whose weights are text.
func addition(t *testing.T, text string) Addition {
	t.Helper()
	dir := t.TempDir()
	a := Addition{Model: model, Run: "run-" + text}
	for name, body := range map[string]string{Weights: text, "config.json": "{}", "tokenizer.json": "[]"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		a.Files = append(a.Files, File{Name: name, Path: filepath.Join(dir, name)})
	}
	card := filepath.Join(dir, "card.md")
	if err := os.WriteFile(card, []byte("card of "+a.Run), 0o600); err != nil {
		t.Fatal(err)
	}
	a.Extra = []File{{Name: "docs/card.md", Path: card}}
	return a
}

// add adds a version and returns its digest.
func add(t *testing.T, r *Registry, text string) string {
	t.Helper()
	m, _, err := r.Add(t.Context(), addition(t, text))
	if err != nil {
		t.Fatal(err)
	}
	if m.Version != sha(text) {
		t.Fatalf("version %s, want %s", m.Version, sha(text))
	}
	return m.Version
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

func TestAdd(t *testing.T) {
	t.Parallel()
	r, s := openDir(t, t.TempDir())
	first, added, err := r.Add(t.Context(), addition(t, "weights"))
	if err != nil || !added {
		t.Fatal(added, err)
	}
	t.Run("the same again changes nothing", func(t *testing.T) {
		m, added, err := r.Add(t.Context(), addition(t, "weights"))
		if err != nil || added || m.Created != first.Created {
			t.Errorf("%+v, %v, %v", m, added, err)
		}
	})
	t.Run("with another card keeps the first", func(t *testing.T) {
		a := addition(t, "weights")
		os.WriteFile(a.Extra[0].Path, []byte("another card"), 0o600)
		if _, added, err := r.Add(t.Context(), a); err != nil || added {
			t.Error(added, err)
		}
		body, _, err := store.ReadAll(t.Context(), s, versionDir(model, first.Version)+"/docs/card.md", 100)
		if err != nil || string(body) != "card of run-weights" {
			t.Errorf("card %q, %v", body, err)
		}
	})
	t.Run("after an unfinished one with another card", func(t *testing.T) {
		a := addition(t, "unfinished")
		card := versionDir(model, sha("unfinished")) + "/docs/card.md"
		if _, err := s.PutIf(t.Context(), card, []byte("first card"), ""); err != nil {
			t.Fatal(err)
		}
		m, added, err := r.Add(t.Context(), a)
		if f, _ := m.file("docs/card.md"); err != nil || !added || f.SHA256 != sha("first card") {
			t.Errorf("%+v, %v, %v", m, added, err)
		}
		if _, err := r.Verify(t.Context(), model, m.Version); err != nil {
			t.Error(err)
		}
	})
	t.Run("after an unfinished one with another configuration", func(t *testing.T) {
		key := versionDir(model, sha("half")) + "/config.json"
		if _, err := s.PutIf(t.Context(), key, []byte("other"), ""); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Add(t.Context(), addition(t, "half")); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), key) {
			t.Error(err)
		}
		if _, err := r.Manifest(t.Context(), model, sha("half")); !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
	})
	t.Run("with another configuration is a conflict", func(t *testing.T) {
		a := addition(t, "weights")
		for _, f := range a.Files {
			if f.Name == "config.json" {
				os.WriteFile(f.Path, []byte(`{"n_layer":2}`), 0o600)
			}
		}
		if _, _, err := r.Add(t.Context(), a); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "config.json") {
			t.Error(err)
		}
	})
	t.Run("repairs a damaged file", func(t *testing.T) {
		key := versionDir(model, first.Version) + "/" + Weights
		if _, err := s.Put(t.Context(), key, bytes.NewReader([]byte("other"))); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Promote(t.Context(), Move{Model: model, Alias: "production", Version: first.Version}); !errors.Is(err, store.ErrIntegrity) {
			t.Errorf("promote of a damaged version: %v", err)
		}
		if _, err := r.Fetch(t.Context(), model, first.Version, t.TempDir()); !errors.Is(err, store.ErrIntegrity) {
			t.Errorf("fetch of a damaged version: %v", err)
		}
		if _, _, err := r.Add(t.Context(), addition(t, "weights")); err != nil {
			t.Fatal(err)
		}
		promote(t, r, first.Version)
	})
	t.Run("refuses", func(t *testing.T) {
		ok := addition(t, "x")
		for name, a := range map[string]Addition{
			"no weights":      {Model: model, Files: ok.Extra},
			"weights extra":   {Model: model, Extra: ok.Files},
			"a missing file":  {Model: model, Files: []File{{Weights, "/nonexistent"}}},
			"a bad name":      {Model: model, Files: append([]File{{"../x", ok.Files[0].Path}}, ok.Files...)},
			"its manifest":    {Model: model, Files: append([]File{{manifestName, ok.Files[0].Path}}, ok.Files...)},
			"a double file":   {Model: model, Files: append(ok.Files[:1:1], ok.Files...)},
			"a bad model":     {Model: "../x", Files: ok.Files},
			"an empty model":  {Model: "", Files: ok.Files},
			"a model of dots": {Model: "a..b", Files: ok.Files},
		} {
			if _, _, err := r.Add(t.Context(), a); err == nil {
				t.Errorf("%s was accepted", name)
			}
		}
	})
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

func TestTamperedHistoryIsFound(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		do   func(t *testing.T, dir string)
		ok   bool
	}{
		{"an entry removed", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, eventKey(model, 2))) }, false},
		{"the end removed", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, eventKey(model, 3))) }, false},
		{"a stranger's file", func(t *testing.T, dir string) {
			os.WriteFile(filepath.Join(dir, historyDir(model), "notes.txt"), nil, 0o600)
		}, false},
		{"an entry replaced", func(t *testing.T, dir string) {
			os.WriteFile(filepath.Join(dir, eventKey(model, 3)), []byte("{}"), 0o600)
		}, false},
		{"alias file edited", func(t *testing.T, dir string) {
			file := filepath.Join(dir, aliasKey(model, "production"))
			raw, _ := os.ReadFile(file)
			os.Remove(file)
			os.WriteFile(file, bytes.ReplaceAll(raw, []byte(sha("c")), []byte(sha("a"))), 0o600)
		}, false},
		{"alias file removed", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, aliasKey(model, "production"))) }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r, s := openDir(t, dir)
			for _, v := range []string{"a", "b", "c"} {
				promote(t, r, add(t, r, v))
			}
			tc.do(t, dir)
			p, err := r.Get(t.Context(), model, "production")
			if tc.ok {
				if err != nil || p.Version != sha("c") {
					t.Fatalf("%+v, %v", p, err)
				}
				promote(t, r, sha("c"))
				checkConsistent(t, r, s)
				return
			}
			if !errors.Is(err, store.ErrIntegrity) || errors.Is(err, store.ErrNotFound) {
				t.Errorf("got %+v, %v", p, err)
			}
			if _, err := r.Promote(t.Context(), Move{Model: model, Alias: "production", Version: sha("a")}); !errors.Is(err, store.ErrIntegrity) {
				t.Errorf("promote: %v", err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	v := sha("x")
	f.Add([]byte(`{"seq":1,"kind":"promote","model":"demo","alias":"production","version":"` + v + `"}`))
	f.Add([]byte(`{"model":"demo","version":"` + v + `","files":[{"name":"model.safetensors","size":1,"sha256":"` + v + `"}]}`))
	f.Add([]byte(`{"model":"demo","alias":"production","version":"` + v + `","seq":1}`))
	f.Add([]byte(`{"files":[{"name":"../../etc/passwd"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if e, err := parseEvent(raw, model, 1); err == nil && (e.Model != model || e.Seq != 1 || !isDigest(e.Version) || checkName("", e.Alias) != nil) {
			t.Errorf("event %+v", e)
		}
		if p := parsePointer(raw, model, "production"); p != (Pointer{}) && (!isDigest(p.Version) || p.Seq < 1) {
			t.Errorf("pointer %+v", p)
		}
		if m, err := parseManifest(raw, model, v); err == nil {
			for _, file := range m.Files {
				if !filepath.IsLocal(file.Name) || !isDigest(file.SHA256) {
					t.Errorf("file %+v", file)
				}
			}
		}
	})
}
