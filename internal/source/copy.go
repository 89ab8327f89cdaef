package source

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// The modes of a copy, whatever the umask and the source say, and its times: those
// that the buildpacks' lifecycle gives to everything it exports.
const (
	dirMode  = 0o755
	fileMode = 0o644
	execMode = 0o755
)

func fixedTime() time.Time { return time.Date(1980, time.January, 1, 0, 0, 1, 0, time.UTC) }

// Copy copies what the filter takes to dest, which must not exist: it appears when
// it is complete.
func Copy(ctx context.Context, root *os.Root, f Filter, dest string) (*Tree, error) {
	if _, err := os.Lstat(dest); !errors.Is(err, fs.ErrNotExist) {
		return nil, exitcode.Errorf(exitcode.Conflict, "copy of the source: %s exists already", dest)
	}
	part, err := os.MkdirTemp(filepath.Dir(dest), ".copy-*")
	if err != nil {
		return nil, exitcode.New(exitcode.IO, err)
	}
	defer func() { _ = os.RemoveAll(part) }() // once renamed, there is nothing left
	t, err := CopyInto(ctx, root, f, part)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(part, dirMode); err != nil {
		return nil, exitcode.New(exitcode.IO, err)
	}
	if err := os.Rename(part, dest); err != nil {
		return nil, exitcode.New(exitcode.IO, err)
	}
	return t, nil
}

// CopyInto copies what the filter takes into dest, an empty folder such as a mount.
func CopyInto(ctx context.Context, root *os.Root, f Filter, dest string) (*Tree, error) {
	to, err := os.OpenRoot(dest)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.IO, "copy of the source: %w", err)
	}
	defer func() { _ = to.Close() }()
	there, err := fs.ReadDir(to.FS(), ".")
	if err != nil {
		return nil, exitcode.Errorf(exitcode.IO, "copy of the source: %w", err)
	}
	if len(there) > 0 {
		return nil, exitcode.Errorf(exitcode.Conflict, "copy of the source: %s is not empty, it has %s", dest, there[0].Name())
	}
	w := &writer{root: to}
	t, err := take(ctx, root, f, w)
	if err == nil {
		err = w.finish()
	}
	if err != nil {
		w.remove()
		return nil, err
	}
	return t, nil
}

// writer makes the copy.
type writer struct {
	root *os.Root
	dirs []string // that were made, parents first
}

func (w *writer) parents(p string) error {
	dir := path.Dir(p)
	if dir == "." {
		return nil
	}
	if _, err := w.root.Lstat(dir); err == nil {
		return nil
	}
	if err := w.parents(dir); err != nil {
		return err
	}
	if err := w.root.Mkdir(dir, dirMode); err != nil {
		return err
	}
	w.dirs = append(w.dirs, dir)
	// Mkdir obeys the umask, and a folder takes over its parent's set-group-id.
	return w.root.Chmod(dir, dirMode)
}

func (w *writer) file(e entry, from io.Reader) (int64, error) {
	if err := w.parents(e.path); err != nil {
		return 0, err
	}
	out, err := w.root.OpenFile(e.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, from)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return n, err
	}
	mode := fs.FileMode(fileMode)
	if e.kind() == "exec" {
		mode = execMode
	}
	if err := w.root.Chmod(e.path, mode); err != nil {
		return n, err
	}
	return n, w.root.Chtimes(e.path, fixedTime(), fixedTime())
}

func (w *writer) link(e entry) error {
	if err := w.parents(e.path); err != nil {
		return err
	}
	return w.root.Symlink(e.target, e.path)
}

// finish gives the folders their time, which every new file had moved.
func (w *writer) finish() error {
	for _, d := range w.dirs {
		if err := w.root.Chtimes(d, fixedTime(), fixedTime()); err != nil {
			return exitcode.New(exitcode.IO, err)
		}
	}
	return nil
}

// remove empties the folder again.
func (w *writer) remove() {
	there, _ := fs.ReadDir(w.root.FS(), ".")
	for _, d := range there {
		_ = w.root.RemoveAll(d.Name())
	}
}
