package train

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
)

// fileOps are the operations that a checkpoint is made of, in one place so that
// a test can fail each of them.
type fileOps interface {
	// tempDir makes a directory in dir whose name begins with prefix.
	tempDir(dir, prefix string) (string, error)
	rename(from, to string) error
	// exchange swaps two directories in one step, or returns
	// errors.ErrUnsupported.
	exchange(a, b string) error
	removeAll(path string) error
	syncDir(path string) error
	writeJSON(path string, v any) error
}

type osFiles struct{}

func (osFiles) tempDir(dir, prefix string) (string, error) {
	path, err := os.MkdirTemp(dir, prefix)
	if err != nil {
		return "", err
	}
	// MkdirTemp gives 0700; other stages run under other users of the group.
	return path, os.Chmod(path, 0o775)
}

func (osFiles) rename(from, to string) error       { return os.Rename(from, to) }
func (osFiles) exchange(a, b string) error         { return exchange(a, b) }
func (osFiles) removeAll(path string) error        { return os.RemoveAll(path) }
func (osFiles) writeJSON(path string, v any) error { return atomicfile.WriteJSON(path, v) }

func (osFiles) syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// replaceDir puts the finished directory tmp in the place of dst. Whatever
// operation fails or is the last before a crash, dst is either the old or the
// new one, or Recover finds the old one.
func replaceDir(fs fileOps, tmp, dst string) error {
	run := filepath.Dir(dst)
	if _, err := os.Stat(dst); errors.Is(err, os.ErrNotExist) {
		return errors.Join(fs.rename(tmp, dst), fs.syncDir(run))
	}
	err := fs.exchange(tmp, dst)
	if err == nil {
		if err := fs.syncDir(run); err != nil {
			return err
		}
		return fs.removeAll(tmp) // the old one now
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	old := filepath.Join(run, "."+filepath.Base(dst)+".old"+strings.TrimPrefix(filepath.Base(tmp), "."+filepath.Base(dst)+".tmp"))
	if err := fs.rename(dst, old); err != nil {
		return err
	}
	if err := fs.rename(tmp, dst); err != nil {
		return errors.Join(err, fs.rename(old, dst))
	}
	if err := fs.syncDir(run); err != nil {
		return err
	}
	return fs.removeAll(old)
}

// Recover brings back what a crash in the middle of a save left in run, and
// removes the rest. It must not run while another process trains there.
func Recover(run string) error { return recoverDirs(osFiles{}, run) }

func recoverDirs(fs fileOps, run string) error {
	for _, name := range []string{LastDir, BestDir} {
		dst := filepath.Join(run, name)
		olds, err := filepath.Glob(filepath.Join(run, "."+name+".old-*"))
		if err != nil {
			return fmt.Errorf("recover %s: %w", dst, err)
		}
		if _, err := os.Stat(dst); errors.Is(err, os.ErrNotExist) && len(olds) > 0 {
			// Two renames were under way and only the first came through.
			if err := fs.rename(olds[len(olds)-1], dst); err != nil {
				return fmt.Errorf("recover %s: %w", dst, err)
			}
			olds = olds[:len(olds)-1]
		}
		temps, err := filepath.Glob(filepath.Join(run, "."+name+".tmp-*"))
		if err != nil {
			return fmt.Errorf("recover %s: %w", dst, err)
		}
		for _, path := range append(temps, olds...) {
			if err := fs.removeAll(path); err != nil {
				return fmt.Errorf("remove unfinished checkpoint: %w", err)
			}
		}
	}
	return nil
}

// digests returns sha256:<hex> of each regular file in dir, by name.
func digests(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() == RecordName {
			continue
		}
		sum, err := FileDigest(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		out[e.Name()] = sum
	}
	return out, nil
}

// FileDigest returns sha256:<hex> of a file.
func FileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("digest of %s: %w", path, err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
