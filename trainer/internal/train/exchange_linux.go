package train

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// exchange swaps two paths in one step of the file system.
func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EPERM):
		// Some network file systems and sandboxes do not know it.
		return fmt.Errorf("exchange %s and %s: %w: %w", a, b, errors.ErrUnsupported, err)
	}
	return fmt.Errorf("exchange %s and %s: %w", a, b, err)
}
