package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
)

// Modes are open to the group: the pods of a pipeline run under different user
// ids and share the group of the volume.
const (
	fileMode = 0o664
	dirMode  = 0o775
)

func makeRoot(dir string) error {
	if err := atomicfile.MkdirAll(dir); err != nil {
		return fmt.Errorf("store directory %s: %w", dir, classifyFile(err))
	}
	return nil
}

// mkdirAll makes dir and its parents inside the store, durably.
func (s *fileStore) mkdirAll(dir string) error {
	if dir == "." {
		return nil
	}
	if st, err := s.root.Stat(dir); err == nil {
		if !st.IsDir() {
			return fmt.Errorf("%s is an object and cannot be a folder of objects as well", dir)
		}
		return nil
	}
	if err := s.mkdirAll(path.Dir(dir)); err != nil {
		return err
	}
	err := s.root.Mkdir(dir, dirMode)
	if errors.Is(err, fs.ErrExist) {
		if st, statErr := s.root.Stat(dir); statErr == nil && st.IsDir() {
			return nil // another process was faster
		}
	}
	if err != nil {
		return err
	}
	if st, err := s.root.Stat(dir); err == nil {
		// Undo the umask; chmod(2) clears set-group-id unless it is given again.
		_ = s.root.Chmod(dir, dirMode|st.Mode()&os.ModeSetgid)
	}
	return s.syncDir(path.Dir(dir))
}

// syncDir makes the names in dir durable, where the file system can.
func (s *fileStore) syncDir(dir string) error {
	d, err := s.root.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// abandoned is the age from which a temporary file belongs to nobody: a write
// in progress changes its file all the time.
const abandoned = 48 * time.Hour

// sweep removes what crashed writers left. It tidies; errors do not matter.
func (s *fileStore) sweep() {
	dir := path.Join(reserved, "tmp")
	entries, err := fs.ReadDir(s.root.FS(), dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if st, err := e.Info(); err == nil && time.Since(st.ModTime()) > abandoned {
			_ = s.root.Remove(path.Join(dir, e.Name()))
		}
	}
}

// fail says which store, which object, and what to do.
func (s *fileStore) fail(verb, key string, err error) error {
	return fmt.Errorf("%s %q in store %s: %w", verb, key, s.dir, classifyFile(err))
}

func classifyFile(err error) error {
	switch {
	case readOnly(err):
		return fmt.Errorf("%w: the file system is read-only: mount a writable volume: %w", ErrDenied, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: uid %d gid %d may not: make the directory accessible to a group of this user (in Kubernetes: fsGroup): %w",
			ErrDenied, os.Geteuid(), os.Getegid(), err)
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("the volume is full: enlarge it or remove old runs: %w", err)
	}
	return err
}

func readOnly(err error) bool { return errors.Is(err, syscall.EROFS) }

func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
