package gitsource

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/exitcode"
)

func TestSourceThatLiesThere(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(t *testing.T, o origin)
		url      string
		commit   func(o origin) string
		verified bool
	}{
		"as committed": {
			func(t *testing.T, o origin) {
				runGit(t, o.dir, "remote", "add", "origin", "https://example.com/a")
			},
			"https://example.com/a", func(o origin) string { return o.second }, true,
		},
		"with a secret in its address": {
			func(t *testing.T, o origin) {
				runGit(t, o.dir, "remote", "add", "origin", "https://a:b@example.com/a")
			},
			"", func(o origin) string { return o.second }, true,
		},
		"a file changed": {
			func(t *testing.T, o origin) { o.write(t, "README.md", "changed\n") },
			"", func(o origin) string { return o.second + "-modified" }, false,
		},
		"a file more": {
			func(t *testing.T, o origin) { o.write(t, "more.go", "package more\n") },
			"", func(o origin) string { return o.second + "-modified" }, false,
		},
		"no repository": {
			func(t *testing.T, o origin) {
				if err := os.RemoveAll(filepath.Join(o.dir, ".git")); err != nil {
					t.Fatal(err)
				}
			},
			"", func(origin) string { return "unknown" }, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t)
			c.change(t, o)
			ws, path := filepath.Split(o.dir)
			r, err := Fetch(t.Context(), Options{Workspace: ws, Path: path})
			if err != nil {
				t.Fatal(err)
			}
			want := Result{URL: c.url, Commit: c.commit(o), Path: filepath.Join(ws, path), Verified: c.verified}
			if r != want {
				t.Errorf("got %+v, want %+v", r, want)
			}
			_, err = Fetch(t.Context(), Options{Workspace: ws, Path: path, Commit: o.second})
			if c.verified != (err == nil) || err != nil && exitcode.Of(err) != exitcode.Integrity {
				t.Errorf("asked for its commit: got %v", err)
			}
		})
	}
}

func TestSourceThatDoesNotLieThere(t *testing.T) {
	ws := t.TempDir()
	if err := os.Mkdir(filepath.Join(ws, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"missing", "empty"} {
		if _, err := Fetch(t.Context(), Options{Workspace: ws, Path: path}); exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), "address of a repository") {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestResultsAreWrittenWithoutLineBreaks(t *testing.T) {
	commit := strings.Repeat("0a", 20)
	for name, c := range map[string]struct {
		r    Result
		want [4]string // url, commit, CHAINS-GIT_URL, CHAINS-GIT_COMMIT
	}{
		"fetched":    {Result{URL: "https://example.com/a", Commit: commit, Verified: true}, [4]string{"https://example.com/a", commit, "https://example.com/a", commit}},
		"modified":   {Result{URL: "https://example.com/a", Commit: commit + "-modified"}, [4]string{"https://example.com/a", commit + "-modified", "", ""}},
		"no address": {Result{Commit: commit, Verified: true}, [4]string{"", commit, "", ""}},
		"failed":     {Result{}, [4]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := c.r.WriteResults(dir); err != nil {
				t.Fatal(err)
			}
			for i, f := range []string{"url", "commit", "CHAINS-GIT_URL", "CHAINS-GIT_COMMIT"} {
				if got := read(t, dir, f); got != c.want[i] {
					t.Errorf("%s is %q, want %q", f, got, c.want[i])
				}
			}
		})
	}
}
