package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// explain adds to an error what a person needs to fix a refused write: who asked,
// and which directory said no to whom.
func explain(verb, path string, err error) error {
	// The path of an inner error is a temporary name that tells nobody anything.
	var pathErr *fs.PathError
	var linkErr *os.LinkError
	switch {
	case errors.As(err, &pathErr):
		err = pathErr.Err
	case errors.As(err, &linkErr):
		err = linkErr.Err
	}
	switch {
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s %s: the file system is read-only: mount a writable volume there: %w", verb, path, err)
	case !errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s %s: %w", verb, path, err)
	}
	return fmt.Errorf("%s %s: refused to uid %d gid %d: %s: make it writable for a group of this user (in Kubernetes: fsGroup): %w",
		verb, path, os.Geteuid(), os.Getegid(), describe(filepath.Dir(path)), err)
}

// describe tells mode and owner of dir, or of its nearest parent that shows them.
func describe(dir string) string {
	for {
		info, err := os.Stat(dir)
		if err == nil {
			if owner, ok := info.Sys().(*syscall.Stat_t); ok {
				return fmt.Sprintf("%s has mode %v (%04o) and belongs to %d:%d", dir, info.Mode(), unixMode(info.Mode()), owner.Uid, owner.Gid)
			}
			return fmt.Sprintf("%s has mode %v", dir, info.Mode())
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return dir + " cannot be examined"
		}
		dir = parent
	}
}

// unixMode is the number that chmod takes.
func unixMode(m os.FileMode) uint32 {
	n := uint32(m.Perm())
	if m&os.ModeSetuid != 0 {
		n |= 0o4000
	}
	if m&os.ModeSetgid != 0 {
		n |= 0o2000
	}
	if m&os.ModeSticky != 0 {
		n |= 0o1000
	}
	return n
}
