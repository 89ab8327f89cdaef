package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// MkdirAll makes dir and the parents it lacks, each with mode 0775 whatever the
// umask says; the set-group-id bit that a volume hands down stays. Directories
// that exist are left as they are.
func MkdirAll(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("make directory %s: it exists and is no directory", dir)
	case !errors.Is(err, os.ErrNotExist):
		return explain("make directory", dir, err)
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := MkdirAll(parent); err != nil {
			return err
		}
	}
	err = os.Mkdir(dir, dirMode)
	if errors.Is(err, os.ErrExist) {
		// Another process was faster, or a file took the name.
		if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() {
			return nil
		}
	}
	if err != nil {
		return explain("make directory", dir, err)
	}
	openToGroup(dir)
	return nil
}

// openToGroup undoes the umask. Where the volume refuses, its rules hold.
func openToGroup(dir string) {
	if info, err := os.Stat(dir); err == nil {
		// chmod(2) clears set-group-id unless it is given again.
		_ = os.Chmod(dir, dirMode|info.Mode()&os.ModeSetgid)
	}
}
