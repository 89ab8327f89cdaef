package atomicfile

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	fileMode os.FileMode = 0o664
	dirMode  os.FileMode = 0o775

	bufferSize = 256 << 10
	// tempMark stands between a file's name and the random end of its
	// temporary name, which starts with a dot: ".model.safetensors.tmp-1f…".
	tempMark = ".tmp-"
)

// WriteFile replaces path by what write produces. The bytes go to a temporary
// file in the same directory, which is flushed to disk and then renamed, so that
// path always holds either the old or the new content. When write or anything
// else fails, or write panics, path is untouched and the temporary file removed.
//
// Writes are buffered. The directory must exist. An error about rights names the
// user, the path and the mode that stood in the way.
func WriteFile(path string, write func(io.Writer) error) (err error) {
	f, err := createTemp(path)
	if err != nil {
		return explain("write", path, err)
	}
	done := false
	defer func() {
		if !done { // write failed or panicked
			f.Close()
			os.Remove(f.Name())
		}
	}()
	w := bufio.NewWriterSize(f, bufferSize)
	if err := write(w); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := w.Flush(); err != nil {
		return explain("write", path, err)
	}
	if err := f.Sync(); err != nil {
		return explain("write", path, err)
	}
	if err := f.Close(); err != nil {
		return explain("write", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return explain("write", path, err)
	}
	done = true
	return syncDir(filepath.Dir(path))
}

// WriteBytes replaces path by data, as WriteFile does.
func WriteBytes(path string, data []byte) error {
	return WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// WriteJSON replaces path by v as JSON, indented by two spaces and ending in a
// newline, with <, > and & left as they are.
func WriteJSON(path string, v any) error {
	return WriteFile(path, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	})
}

// RemoveStale removes the temporary files that a killed process left in dir.
// Call it only where no other process writes: at the start of a run.
func RemoveStale(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return explain("clean", dir, err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") || !strings.Contains(e.Name(), tempMark) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return explain("clean", filepath.Join(dir, e.Name()), err)
		}
	}
	return nil
}

func tempName(path string) string {
	return filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s%s%016x", filepath.Base(path), tempMark, rand.Uint64()))
}

// createTemp differs from os.CreateTemp in the mode: 0600 would lock out the
// other stages on a volume whose driver refuses chmod.
func createTemp(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(tempName(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// Only the umask can have taken bits away, and a volume that knows no
		// modes may refuse: then its own rules hold, and that is no failure.
		_ = f.Chmod(fileMode)
		return f, nil
	}
}

// syncDir makes a rename durable. Some network file systems cannot sync a
// directory and say EINVAL or ENOTSUP: nothing more can be done there.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if errors.Is(err, os.ErrPermission) {
		return nil // a directory may be writable and not readable
	}
	if err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}
