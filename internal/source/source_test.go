package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// write makes files; a content that begins with "->" is a link, and a name that
// ends with "*" an executable.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		mode := os.FileMode(0o644)
		if n, ok := strings.CutSuffix(name, "*"); ok {
			name, mode = n, 0o755
		}
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if to, ok := strings.CutPrefix(content, "->"); ok {
			err = os.Symlink(to, p)
		} else {
			err = os.WriteFile(p, []byte(content), mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func open(t *testing.T, workspace, folder string) *os.Root {
	t.Helper()
	root, err := Open(workspace, folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func scan(t *testing.T, dir string, f Filter) *Tree {
	t.Helper()
	tree, err := Scan(t.Context(), open(t, dir, "."), f)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func filter(t *testing.T, include, exclude []string) Filter {
	t.Helper()
	f, err := NewFilter(include, exclude)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// listing describes everything below dir: path, mode, time of files, content.
func listing(t *testing.T, dir string, withTimes bool) string {
	t.Helper()
	var b bytes.Buffer
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		fmt.Fprintf(&b, "%s %v", rel, info.Mode())
		if withTimes && info.Mode()&fs.ModeSymlink == 0 {
			fmt.Fprintf(&b, " %d", info.ModTime().UnixNano())
		}
		switch {
		case info.Mode().IsRegular():
			content, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", content)
		case info.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			fmt.Fprintf(&b, " -> %s", to)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The digest of a small tree, computed by hand from the documented format.
func TestDigestIsTheDocumentedOne(t *testing.T) {
	dir := write(t, map[string]string{"b": "two", "a/x*": "one", "a.txt": "->b"})
	sum := func(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }
	want := "sha256:" + sum("trainyard source v1\x00"+
		"link "+sum("b")+" a.txt\x00"+ // "." sorts before "/"
		"exec "+sum("one")+" a/x\x00"+
		"file "+sum("two")+" b\x00")
	got := scan(t, dir, Filter{})
	if got.Digest != want || got.Files != 3 || got.Bytes != 6 {
		t.Errorf("%+v, want digest %s of 3 files with 6 bytes", got, want)
	}
}

func TestDigestIgnoresWhatABuildCannotSee(t *testing.T) {
	files := map[string]string{"go.mod": "module x\n", "cmd/a/main.go": "package main\n", "run.sh*": "#!/bin/sh\n"}
	base := scan(t, write(t, files), Filter{}).Digest
	for name, change := range map[string]func(dir string) error{
		"time":                func(d string) error { return os.Chtimes(filepath.Join(d, "go.mod"), time.Unix(5, 0), time.Unix(5, 0)) },
		"group and other":     func(d string) error { return os.Chmod(filepath.Join(d, "go.mod"), 0o600) },
		"write of executable": func(d string) error { return os.Chmod(filepath.Join(d, "run.sh"), 0o700) },
		"set-group-id":        func(d string) error { return os.Chmod(filepath.Join(d, "cmd"), 0o775|fs.ModeSetgid) },
		"an empty folder":     func(d string) error { return os.MkdirAll(filepath.Join(d, "x", "y"), 0o755) },
		".git":                func(d string) error { return os.WriteFile(filepath.Join(d, ".git"), []byte("gitdir: /x"), 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, files)
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
			if got := scan(t, dir, Filter{}).Digest; got != base {
				t.Errorf("digest %s, was %s", got, base)
			}
		})
	}
}

func TestDigestSeesEveryChangeOfABuild(t *testing.T) {
	seen := map[string]string{}
	for name, files := range map[string]map[string]string{
		"base":                   {"a": "1", "b": "2"},
		"one byte":               {"a": "1", "b": "3"},
		"contents change places": {"a": "2", "b": "1"},
		"another name":           {"a": "1", "c": "2"},
		"another folder":         {"a": "1", "x/b": "2"},
		"one more":               {"a": "1", "b": "2", "c": ""},
		"executable":             {"a*": "1", "b": "2"},
		"a link":                 {"a": "1", "b": "->a"},
		"a link's target":        {"a": "1", "b": "->c"},
	} {
		d := scan(t, write(t, files), Filter{}).Digest
		if other, twice := seen[d]; twice {
			t.Errorf("%q and %q have one digest", name, other)
		}
		seen[d] = name
	}
}

// I-10, I-65: what git keeps in a checkout never reaches a build.
func TestGitIsNeverTaken(t *testing.T) {
	dir := write(t, map[string]string{
		"main.go": "package main", ".git/index": "x", ".git/objects/aa/bb": "y",
		"sub/.git": "gitdir: ../.git/modules/sub", "sub/a.go": "package sub", ".gitignore": "bin", "x.git": "kept",
	})
	for name, f := range map[string]Filter{
		"no list":          {},
		"included by name": filter(t, []string{".git", "main.go", "sub", "x.git", ".gitignore"}, nil),
		"by negation":      filter(t, nil, []string{"!.git"}),
	} {
		dest := filepath.Join(t.TempDir(), "copy")
		if _, err := Copy(t.Context(), open(t, dir, "."), f, dest); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(listing(t, dest, false)) {
			got = append(got, strings.Fields(line)[0])
		}
		if want := []string{".gitignore", "main.go", "sub", "sub/a.go", "x.git"}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// The patterns are .gitignore's, as pack reads them; the cases are of pack's
// documentation and of project.toml.
func TestFilterIsPacks(t *testing.T) {
	files := []string{"go.mod", "cmd/a/main.go", "cmd/a/main_test.go", "internal/x/go.mod", "internal/x/x.go", "docs/cmd", "README.md"}
	for name, c := range map[string]struct {
		include, exclude []string
		want             []string
	}{
		"nothing set":           {nil, nil, files},
		"a name anywhere":       {[]string{"go.mod"}, nil, []string{"go.mod", "internal/x/go.mod"}},
		"a name at the top":     {[]string{"/go.mod"}, nil, []string{"go.mod"}},
		"a folder":              {[]string{"/cmd"}, nil, []string{"cmd/a/main.go", "cmd/a/main_test.go"}},
		"a folder, slash":       {[]string{"cmd/"}, nil, []string{"cmd/a/main.go", "cmd/a/main_test.go"}},
		"a suffix":              {[]string{"*.go"}, nil, []string{"cmd/a/main.go", "cmd/a/main_test.go", "internal/x/x.go"}},
		"taken back":            {[]string{"/cmd", "!*_test.go"}, nil, []string{"cmd/a/main.go"}},
		"exclude a folder":      {nil, []string{"cmd", "internal"}, []string{"go.mod", "README.md"}},
		"exclude but keep":      {nil, []string{"*", "!README.md"}, []string{"README.md"}},
		"comments and blanks":   {[]string{"# a comment", "", "/README.md"}, nil, []string{"README.md"}},
		"two stars in the path": {[]string{"internal/**/x.go"}, nil, []string{"internal/x/x.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := filter(t, c.include, c.exclude)
			var got []string
			for _, p := range files {
				if f.Takes(p) {
					got = append(got, p)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
	if _, err := NewFilter([]string{"a"}, []string{"b"}); err == nil {
		t.Error("both lists were accepted")
	}
}

func TestCopyHasFixedModesAndTimesAndLeavesTheSourceAlone(t *testing.T) {
	dir := write(t, map[string]string{"a/b/file": "1", "a/run*": "2", "a/link": "->b/file", "out": "3"})
	if err := os.Chmod(filepath.Join(dir, "a/b/file"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "a"), 0o777|fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	before := listing(t, dir, true)
	// A umask must not show in the copy, nor the set-group-id of where it goes.
	defer syscall.Umask(syscall.Umask(0o077))
	where := t.TempDir()
	if err := os.Chmod(where, 0o777|fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	dest := filepath.Join(where, "copy")
	f := filter(t, []string{"/a"}, nil)
	tree, err := Copy(t.Context(), open(t, dir, "."), f, dest)
	if err != nil {
		t.Fatal(err)
	}
	stamp := fmt.Sprint(time.Date(1980, 1, 1, 0, 0, 1, 0, time.UTC).UnixNano())
	want := strings.Join([]string{
		"a drwxr-xr-x " + stamp, "a/b drwxr-xr-x " + stamp, `a/b/file -rw-r--r-- ` + stamp + ` "1"`,
		"a/link Lrwxrwxrwx -> b/file", `a/run -rwxr-xr-x ` + stamp + ` "2"`, "",
	}, "\n")
	if d := cmp.Diff(want, listing(t, dest, true)); d != "" {
		t.Error(d)
	}
	if info, err := os.Stat(dest); err != nil || info.Mode() != fs.ModeDir|0o755 {
		t.Errorf("the copy's folder has mode %v: %v", info.Mode(), err)
	}
	if d := cmp.Diff(before, listing(t, dir, true)); d != "" {
		t.Errorf("the source changed: %s", d)
	}
	if got := scan(t, dest, Filter{}).Digest; got != tree.Digest || got != scan(t, dir, f).Digest {
		t.Errorf("digest of the copy %s, while copying %s, of the source %s", got, tree.Digest, scan(t, dir, f).Digest)
	}
	left, _ := os.ReadDir(where)
	if len(left) != 1 {
		t.Errorf("%d entries beside the copy", len(left)-1)
	}
}

func TestLinksStayInside(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		ok    bool
	}{
		"to a sibling":        {map[string]string{"a": "1", "l": "->a"}, true},
		"up and down again":   {map[string]string{"x/a": "1", "y/l": "->../x/a"}, true},
		"to nothing":          {map[string]string{"a": "1", "l": "->gone"}, true},
		"to a folder":         {map[string]string{"x/a": "1", "l": "->x"}, true},
		"absolute":            {map[string]string{"a": "1", "l": "->/etc/passwd"}, false},
		"absolute, nothing":   {map[string]string{"a": "1", "l": "->/no/such"}, false},
		"out":                 {map[string]string{"a": "1", "l": "->../x"}, false},
		"out further down":    {map[string]string{"d/l": "->../../x", "a": "1"}, false},
		"out through another": {map[string]string{"d/e/up": "->../..", "d/e/l": "->up/../../etc", "a": "1"}, false},
		"to itself":           {map[string]string{"a": "1", "l": "->l"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, c.files)
			dest := filepath.Join(t.TempDir(), "copy")
			_, err := Copy(t.Context(), open(t, dir, "."), Filter{}, dest)
			if (err == nil) != c.ok {
				t.Fatalf("error %v, want none: %v", err, c.ok)
			}
			if err == nil {
				return
			}
			if exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), "l leads to") {
				t.Errorf("code %d, %v", exitcode.Of(err), err)
			}
			if _, err := os.Stat(dest); err == nil {
				t.Error("half a copy was left")
			}
		})
	}
}

func TestOpenRefusesWhatIsNotInTheWorkspace(t *testing.T) {
	outside := write(t, map[string]string{"secret": "1"})
	dir := write(t, map[string]string{"in/a": "1", "file": "1", "link": "->" + outside, "up": "->..", "fine": "->in"})
	for folder, part := range map[string]string{
		"missing": "no such file", "../" + filepath.Base(outside): "escapes", outside: "escapes", "link": "escapes", "up": "escapes", "file": "not a directory",
	} {
		_, err := Open(dir, folder)
		if err == nil || exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), folder) || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: code %d, %v; want %q", folder, exitcode.Of(err), err, part)
		}
	}
	if _, err := Open(filepath.Join(dir, "none"), "."); exitcode.Of(err) != exitcode.BadInput {
		t.Errorf("a missing workspace: %v", err)
	}
	open(t, dir, "fine")
}

func TestCopyRefusesAndLeavesNothing(t *testing.T) {
	t.Run("special files", func(t *testing.T) {
		dir := write(t, map[string]string{"a": "1"})
		if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Scan(t.Context(), open(t, dir, "."), Filter{})
		if exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), "pipe is a named pipe") {
			t.Error(err)
		}
		if _, err := Scan(t.Context(), open(t, dir, "."), filter(t, nil, []string{"pipe"})); err != nil {
			t.Errorf("an excluded one: %v", err)
		}
	})
	t.Run("no file selected", func(t *testing.T) {
		_, err := Scan(t.Context(), open(t, write(t, map[string]string{"a": "1"}), "."), filter(t, []string{"b"}, nil))
		if exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), "no file is selected") {
			t.Error(err)
		}
	})
	t.Run("destination exists", func(t *testing.T) {
		_, err := Copy(t.Context(), open(t, write(t, map[string]string{"a": "1"}), "."), Filter{}, t.TempDir())
		if exitcode.Of(err) != exitcode.Conflict {
			t.Error(err)
		}
	})
	t.Run("destination has files", func(t *testing.T) {
		dest := write(t, map[string]string{"old": "1"})
		_, err := CopyInto(t.Context(), open(t, write(t, map[string]string{"a": "1"}), "."), Filter{}, dest)
		if exitcode.Of(err) != exitcode.Conflict || !strings.Contains(err.Error(), "old") {
			t.Error(err)
		}
	})
	t.Run("a failure empties the folder again", func(t *testing.T) {
		dest := t.TempDir()
		dir := write(t, map[string]string{"a": "1", "b/c": "2"})
		root := open(t, dir, ".")
		ctx := &stopsAfter{Context: t.Context(), checks: 5} // the listing checks too
		if _, err := CopyInto(ctx, root, Filter{}, dest); err == nil {
			t.Fatal("no error")
		}
		if left := listing(t, dest, false); left != "" {
			t.Errorf("left %s", left)
		}
	})
	t.Run("stopped on the way", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		dest := filepath.Join(t.TempDir(), "copy")
		if _, err := Copy(ctx, open(t, write(t, map[string]string{"a": "1"}), "."), Filter{}, dest); err == nil {
			t.Error("no error")
		}
		if left, _ := os.ReadDir(filepath.Dir(dest)); len(left) > 0 {
			t.Errorf("left %v", left)
		}
	})
}

// stopsAfter is a context that ends at a known point of the work.
type stopsAfter struct {
	context.Context
	checks int
}

func (s *stopsAfter) Err() error {
	if s.checks--; s.checks < 0 {
		return context.Canceled
	}
	return nil
}

func FuzzFilter(f *testing.F) {
	f.Add("/cmd\n!*_test.go", "cmd/a_test.go")
	f.Add("[\n**/", "a")
	f.Fuzz(func(t *testing.T, patterns, p string) {
		flt, err := NewFilter(strings.Split(patterns, "\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = flt.Takes(p)
	})
}
