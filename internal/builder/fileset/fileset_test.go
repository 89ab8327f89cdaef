package fileset

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// headers reads a tar stream with nothing but the standard library.
func headers(t *testing.T, data []byte) (all []tar.Header, contents map[string]string) {
	t.Helper()
	contents = map[string]string{}
	r := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		contents[h.Name] = string(text)
		all = append(all, *h)
	}
}

func TestWriteTar(t *testing.T) {
	source := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(source, []byte("from disk"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := Set{
		"usr/bin/x": {Mode: 0o755, Source: source},
		"etc/a":     File([]byte("in memory")).Owned(1001, 1000),
		"tmp":       {Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		"bin":       Link("usr/bin"),
	}.WriteTar(&out)
	if err != nil {
		t.Fatal(err)
	}
	all, contents := headers(t, out.Bytes())
	var got []string
	for _, h := range all {
		got = append(got, strings.Join([]string{string(h.Typeflag), h.FileInfo().Mode().String(), h.Name, h.Linkname}, " "))
		if !h.ModTime.Equal(time.Date(1980, 1, 1, 0, 0, 1, 0, time.UTC)) || h.Uname != "" {
			t.Errorf("%s: time %v, user %q", h.Name, h.ModTime, h.Uname)
		}
		if want := map[string]int{"etc/a": 1001}[h.Name]; h.Uid != want {
			t.Errorf("%s belongs to %d, want %d", h.Name, h.Uid, want)
		}
	}
	want := []string{
		"2 Lrwxrwxrwx bin usr/bin", "5 drwxr-xr-x etc/ ", "0 -rw-r--r-- etc/a ", "5 dtrwxrwxrwx tmp/ ",
		"5 drwxr-xr-x usr/ ", "5 drwxr-xr-x usr/bin/ ", "0 -rwxr-xr-x usr/bin/x ",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if contents["usr/bin/x"] != "from disk" || contents["etc/a"] != "in memory" {
		t.Errorf("contents %q", contents)
	}
}

func TestWriteTarRefuses(t *testing.T) {
	for name, s := range map[string]Set{
		"absolute path":            {"/etc/a": File(nil)},
		"path out of the root":     {"../a": File(nil)},
		"the root":                 {".": Dir(0o755)},
		"a file below a link":      {"bin": Link("usr/bin"), "bin/a": File(nil)},
		"a file below a file":      {"a": File(nil), "a/b": File(nil)},
		"a source that is missing": {"a": {Mode: 0o644, Source: "/nowhere/a"}},
		"a device":                 {"a": {Mode: fs.ModeDevice}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := s.WriteTar(io.Discard); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestReadTarTakesWhatWriteTarWrote(t *testing.T) {
	s := Set{"a": Dir(0o700), "a/b": File([]byte("x")), "a/c": Link("b")}
	var out bytes.Buffer
	if err := s.WriteTar(&out); err != nil {
		t.Fatal(err)
	}
	got, err := ReadTar(&out, func(name string) bool { return name != "a" })
	if err != nil {
		t.Fatal(err)
	}
	delete(s, "a")
	if d := cmp.Diff(s, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestLayerIsTheSameInEveryDirectory(t *testing.T) {
	s := Set{"etc/a": File(bytes.Repeat([]byte("text "), 1000)), "b": Link("etc/a")}
	var digests []string
	for range 2 {
		file := filepath.Join(t.TempDir(), "l.tar.gz")
		l, err := s.Layer(file)
		if err != nil {
			t.Fatal(err)
		}
		d, err := l.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, d.String())
		if err := validate.Layer(l); err != nil {
			t.Error(err)
		}
		// What is there is taken as it is.
		if err := os.Chtimes(file, time.Unix(0, 0), time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		if _, err := (Set{}).Layer(file); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil || !info.ModTime().Equal(time.Unix(0, 0)) {
			t.Errorf("it was written again: %v, %v", info, err)
		}
	}
	if digests[0] != digests[1] {
		t.Errorf("digests %v differ", digests)
	}
}

func TestLayerThatFailsLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := (Set{"a": {Mode: 0o644, Source: "/nowhere/a"}}).Layer(filepath.Join(dir, "l.tar.gz")); err == nil {
		t.Error("no error")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func FuzzReadTar(f *testing.F) {
	var out bytes.Buffer
	if err := (Set{"a": Dir(0o700), "a/b": File([]byte("x")), "a/c": Link("b")}).WriteTar(&out); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ReadTar(bytes.NewReader(data), func(string) bool { return true })
		if err != nil {
			return
		}
		for name := range s {
			if !fs.ValidPath(name) || name == "." {
				t.Errorf("took %q", name)
			}
		}
	})
}
