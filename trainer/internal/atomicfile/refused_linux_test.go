package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// asNobody runs f on a thread whose file accesses are those of a plain user, so
// that the test can be refused even when root runs it. The thread is not
// unlocked and ends with its goroutine.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			if err := errors.Join(syscall.Setfsgid(65532), syscall.Setfsuid(65532)); err != nil {
				done <- err
				return
			}
		}
		f()
		done <- nil
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestRefusedWriteNamesUserPathAndMode(t *testing.T) {
	// Below t.TempDir, which other users cannot enter, stands what is examined.
	base := t.TempDir()
	for p := base; p != os.TempDir() && p != "/"; p = filepath.Dir(p) {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(base, "locked")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(dir, 0o755) }()
	for name, act := range map[string]func() error{
		"write file":     func() error { return WriteBytes(filepath.Join(dir, "f"), nil) },
		"make directory": func() error { return MkdirAll(filepath.Join(dir, "d")) },
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			asNobody(t, func() { err = act() })
			if !errors.Is(err, fs.ErrPermission) {
				t.Fatalf("got %v, want a permission error", err)
			}
			for _, want := range []string{"refused to uid ", dir, "0555", "belongs to ", "fsGroup"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}

func TestReadOnlyFileSystemIsSaid(t *testing.T) {
	err := explain("write", "/x/f", &fs.PathError{Op: "open", Path: "/x/.f.tmp-1", Err: syscall.EROFS})
	if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("got %v", err)
	}
}
