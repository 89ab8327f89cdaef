//go:build unix

package stage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
)

// runLock keeps a second training out of a run directory. The system lets go of
// it when the process ends, however it ends.
type runLock struct{ f *os.File }

const lockFile = ".train.lock"

func lockRun(dir string) (*runLock, error) {
	path := filepath.Join(dir, lockFile)
	// To read is enough for a lock, also for another user of the group.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o664)
	if errors.Is(err, os.ErrNotExist) {
		return nil, exitcode.Errorf(exitcode.BadInput, "run directory %s does not exist: run prepare first", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("lock run directory: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil:
		return &runLock{f}, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		_ = f.Close()
		return nil, exitcode.Errorf(exitcode.Conflict, "another process trains in %s: wait for it or use another run directory", dir)
	}
	// Some network file systems have no locks; then the user keeps order.
	return &runLock{f}, nil
}

func (l *runLock) release() {
	if l != nil {
		_ = l.f.Close()
	}
}
