//go:build unix

package stage

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
)

// runLock keeps a second preparation or training out of a run directory. The folder
// itself is locked: to read is enough, also for another user of the group. The system
// lets go of it when the process ends, however it ends.
type runLock struct{ f *os.File }

func lockRun(dir string) (*runLock, error) {
	f, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, exitcode.Errorf(exitcode.BadInput, "run directory %s does not exist: run prepare first", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("lock run directory: %w", err)
	}
	lock, err := flock(f)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.Conflict, "another process prepares or trains in %s: wait for it or use another run directory", dir)
	}
	return lock, nil
}

// lockFolder locks a folder itself.
func lockFolder(path string) (*runLock, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return flock(f)
}

// flock locks a file and takes it over. Its error says that another process has
// the lock.
func flock(f *os.File) (*runLock, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		_ = f.Close()
		return nil, err
	}
	// Some network file systems have no locks; then the user keeps order.
	return &runLock{f}, nil
}

func (l *runLock) release() {
	if l != nil {
		_ = l.f.Close()
	}
}
