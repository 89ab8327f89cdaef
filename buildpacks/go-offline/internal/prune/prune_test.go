package prune

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func tree(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		file := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	out := []string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && p != dir {
			rel, _ := filepath.Rel(dir, p)
			if d.IsDir() {
				rel += "/"
			}
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

func TestClear(t *testing.T) {
	files := []string{"go.mod", "main.go", "LICENSE", ".hidden", "assets/css/a.css", "assets/css/x/b.css", "assets/a.txt", "cmd/a/main.go"}
	for name, c := range map[string]struct {
		keep    []string
		want    []string
		removed int
	}{
		"nothing kept":                     {nil, []string{}, 6},
		"a file":                           {[]string{"LICENSE"}, []string{"LICENSE"}, 5},
		"a directory with all below":       {[]string{"assets/*"}, []string{"assets/", "assets/a.txt", "assets/css/", "assets/css/a.css", "assets/css/x/", "assets/css/x/b.css"}, 5},
		"only files of one kind":           {[]string{"assets/*.txt"}, []string{"assets/", "assets/a.txt"}, 6},
		"a directory's name alone":         {[]string{"assets"}, []string{"assets/"}, 7},
		"a file far down":                  {[]string{"assets/css/x/b.css"}, []string{"assets/", "assets/css/", "assets/css/x/", "assets/css/x/b.css"}, 7},
		"a star on the way keeps all":      {[]string{"assets/*/a.css"}, []string{"assets/", "assets/a.txt", "assets/css/", "assets/css/a.css", "assets/css/x/", "assets/css/x/b.css"}, 5},
		"the first pattern that fits wins": {[]string{"assets/css", "assets/*"}, []string{"assets/", "assets/a.txt", "assets/css/"}, 7},
		"everything":                       {[]string{"*"}, list(t, tree(t, files...)), 0},
		"something that is not there":      {[]string{"x/*"}, []string{}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, files...)
			removed, err := Clear(dir, c.keep)
			if err != nil || removed != c.removed {
				t.Errorf("removed %d, want %d, error %v", removed, c.removed, err)
			}
			if d := cmp.Diff(c.want, list(t, dir)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestClearFollowsNoLink(t *testing.T) {
	outside := tree(t, "precious/file")
	dir := tree(t, "main.go")
	for _, link := range []string{"away", "kept"} {
		if err := os.Symlink(outside, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Clear(dir, []string{"kept/x*"}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"kept"}, list(t, dir)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff([]string{"precious/", "precious/file"}, list(t, outside)); d != "" {
		t.Errorf("outside: -want +got\n%s", d)
	}
}
