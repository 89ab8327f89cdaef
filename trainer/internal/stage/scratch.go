package stage

import (
	"os"
	"path/filepath"
)

// Beginnings of the names of folders in a run directory that a stage removes
// when it ends.
const (
	inputsTemp   = ".inputs-"
	baselineTemp = ".baseline-"
	baseTemp     = ".base-"
	keepTemp     = ".kept-"
)

// scratch is a folder for copies of what the store has. It is locked, so that
// what a killed process left is told from what another one works in.
type scratch struct {
	dir  string
	lock *runLock
}

// newScratch removes the folders of dead processes and makes one.
func newScratch(dir, prefix string) (*scratch, error) {
	stale, _ := filepath.Glob(filepath.Join(dir, prefix+"*"))
	for _, s := range stale {
		if lock, err := lockFolder(s); err == nil {
			_ = os.RemoveAll(s) // a copy
			lock.release()
		}
	}
	for {
		path, err := os.MkdirTemp(dir, prefix+"*")
		if err != nil {
			return nil, err
		}
		lock, err := lockFolder(path)
		if err != nil {
			continue // another process holds it to remove it
		}
		if _, err := os.Stat(path); err != nil {
			lock.release() // it was quicker
			continue
		}
		return &scratch{path, lock}, nil
	}
}

func (s *scratch) remove() {
	if s != nil {
		_ = os.RemoveAll(s.dir) // a copy
		s.lock.release()
	}
}
