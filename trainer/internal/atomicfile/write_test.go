package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// names lists a directory, so that a forgotten temporary file is seen.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWriteFileReplacesWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.bin")
	for _, content := range []string{"first", strings.Repeat("x", 3*bufferSize), ""} {
		if err := WriteBytes(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got := read(t, path); got != content {
			t.Errorf("read %d bytes back, wrote %d", len(got), len(content))
		}
	}
	if got := names(t, dir); got != "model.bin" {
		t.Errorf("directory holds %q, want model.bin alone", got)
	}
}

func TestWriteFileShowsNothingBeforeTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := WriteBytes(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	err := WriteFile(path, func(w io.Writer) error {
		if _, err := w.Write(bytes.Repeat([]byte("new"), bufferSize)); err != nil {
			return err
		}
		if got := read(t, path); got != "old" {
			t.Errorf("half-written file is visible: %.10q", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFailedWriteLeavesTheOldFile(t *testing.T) {
	boom := errors.New("disk on fire")
	for name, write := range map[string]func(io.Writer) error{
		"callback fails": func(w io.Writer) error {
			fmt.Fprint(w, "half")
			return boom
		},
		"callback panics": func(w io.Writer) error {
			fmt.Fprint(w, "half")
			panic(boom)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			if err := WriteBytes(path, []byte("old")); err != nil {
				t.Fatal(err)
			}
			err := func() (err error) {
				defer func() {
					if p := recover(); p != nil {
						err = p.(error)
					}
				}()
				return WriteFile(path, write)
			}()
			if !errors.Is(err, boom) {
				t.Errorf("error is %v, want it to wrap %v", err, boom)
			}
			if got := read(t, path); got != "old" {
				t.Errorf("file holds %q, want the old content", got)
			}
			if got := names(t, dir); got != "f" {
				t.Errorf("directory holds %q, want f alone", got)
			}
		})
	}
}

func TestModesIgnoreTheUmask(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	base := t.TempDir()
	dir := filepath.Join(base, "run", "last")
	if err := MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "f")
	if err := WriteBytes(path, []byte("x")); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]os.FileMode{filepath.Dir(dir): 0o775, dir: 0o775, path: 0o664} {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %04o, want %04o", p, info.Mode().Perm(), want)
		}
	}
}

func TestMkdirAllKeepsSetGroupID(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "volume")
	if err := os.Mkdir(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(parent, 0o775|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	if err := MkdirAll(filepath.Join(parent, "run")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(parent, "run"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode()&os.ModeSetgid == 0 {
		t.Errorf("mode is %v: the group of the volume is no longer handed down", info.Mode())
	}
}

func TestMkdirAllOverAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := WriteBytes(path, nil); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{path, filepath.Join(path, "sub")} {
		if err := MkdirAll(dir); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("MkdirAll(%s) = %v, want an error that names it", dir, err)
		}
	}
}

func TestWriteJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.json")
	if err := WriteJSON(path, map[string]any{"b": "<|endoftext|>", "a": 1}); err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"a\": 1,\n  \"b\": \"<|endoftext|>\"\n}\n"
	if got := read(t, path); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := WriteJSON(path, func() {}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a value that JSON cannot hold gave %v, want an error that names the file", err)
	}
	if got := read(t, path); got != want {
		t.Error("a refused value destroyed the file")
	}
}

func TestErrorsNameTheTargetNotTheTemporaryFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "d", "child"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "missing", "f"), filepath.Join(dir, "d")} {
		err := WriteBytes(path, []byte("x"))
		if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), tempMark) {
			t.Errorf("WriteBytes(%s) = %v, want an error with that path alone", path, err)
		}
	}
	if got := names(t, dir); got != "d" {
		t.Errorf("directory holds %q, want d alone", got)
	}
}

func TestConcurrentWritersLeaveOneWholeFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := WriteBytes(path, bytes.Repeat([]byte{byte('a' + i)}, 10000)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := read(t, path)
	if len(got) != 10000 || strings.Trim(got, got[:1]) != "" {
		t.Errorf("file mixes writers: %d bytes", len(got))
	}
	if got := names(t, dir); got != "f" {
		t.Errorf("directory holds %q, want f alone", got)
	}
}

func TestRemoveStale(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"f", ".f.tmp-0123", ".hidden", "a.tmp-1"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveStale(dir); err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, dir), ".hidden a.tmp-1 f"; got != want {
		t.Errorf("directory holds %q, want %q", got, want)
	}
}
