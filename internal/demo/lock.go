package demo

import (
	"fmt"
	"os"
	"syscall"
)

// lock makes sure that one demo of a name runs at a time: two would make the
// same cluster.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("another make demo, e2e or down is running (it holds %s): wait for it", path)
	}
	// The file stays: removing it would let two hold two files of one name.
	return func() { file.Close() }, nil
}
