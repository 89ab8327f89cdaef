package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"syscall"
)

// lock waits for the turn to write, first among the goroutines of this store,
// then among processes. The kernel frees the lock of a process that dies.
func (s *fileStore) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	release := func() { <-s.turn }

	f, err := s.root.OpenFile(path.Join(reserved, "lock"), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		release()
		return nil, err
	}
	_ = f.Chmod(fileMode) // only its owner can; the others need not
	got := make(chan error, 1)
	go func() { got <- flock(f) }()
	select {
	case err := <-got:
		if err != nil {
			f.Close()
			release()
			return nil, fmt.Errorf("lock %s: %w: the volume must support flock(2) between all writers", f.Name(), err)
		}
		return func() { f.Close(); release() }, nil
	case <-ctx.Done():
		// flock cannot be interrupted: give the lock back when it comes.
		go func() {
			_ = errors.Join(<-got, f.Close()) // nobody is left to hear it
			release()
		}()
		return nil, ctx.Err()
	}
}

func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
