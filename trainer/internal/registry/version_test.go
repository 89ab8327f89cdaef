package registry

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/store"
)

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
