package registry

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/store"
)

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

func TestAliasOfAVersionThatIsGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, _ := openDir(t, dir)
	a := add(t, r, "a")
	promote(t, r, a)
	if err := os.Remove(filepath.Join(dir, versionDir(model, a), manifestName)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Fetch(t.Context(), model, "production", t.TempDir()); !errors.Is(err, store.ErrIntegrity) || errors.Is(err, store.ErrNotFound) {
		t.Errorf("by alias: %v", err)
	}
	if _, err := r.Fetch(t.Context(), model, a, t.TempDir()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("by version: %v", err)
	}
	if _, err := r.Fetch(t.Context(), model, "other", t.TempDir()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("by an alias that was never set: %v", err)
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
