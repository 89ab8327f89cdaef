package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lock makes sure that one demo of a name runs at a time: two would make the
// same cluster.
func lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another make demo, e2e or down is running (it holds %s): wait for it", path)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// The file stays: removing it would let two hold two files of one name.
	return func() { file.Close() }, nil
}
