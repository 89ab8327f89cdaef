package train

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// OpenCheckpoint reads the record of RUN/last and checks that the checkpoint
// belongs to the run described by identity and that its files are those that
// were saved. It returns found == false when there is no checkpoint.
func OpenCheckpoint(run string, identity []Fact) (r Record, found bool, err error) {
	dir := filepath.Join(run, LastDir)
	r, err = ReadRecord(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, err
	}
	if err := compare(dir, r.Identity, identity); err != nil {
		return Record{}, false, err
	}
	if err := VerifyFiles(dir, r.Files); err != nil {
		return Record{}, false, err
	}
	return r, true, nil
}

// VerifyFiles checks the files of dir against their recorded digests.
func VerifyFiles(dir string, want map[string]string) error {
	names := make([]string, 0, len(want))
	for name := range want {
		names = append(names, name)
	}
	slices.Sort(names) // so that the same damage gives the same message
	for _, name := range names {
		if filepath.Base(name) != name {
			return fmt.Errorf("%w: %s names a file %q outside of its directory", ErrCheckpoint, filepath.Join(dir, RecordName), name)
		}
		path := filepath.Join(dir, name)
		got, err := FileDigest(path)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %s is missing", ErrIntegrity, path)
		}
		if err != nil {
			return fmt.Errorf("verify checkpoint: %w", err)
		}
		if got != want[name] {
			return fmt.Errorf("%w: %s is %s, saved was %s", ErrIntegrity, path, got, want[name])
		}
	}
	return nil
}

// Resume makes the loop go on from a record. Weights and moments of its
// checkpoint must be loaded already.
func (l *Loop) Resume(r Record) error {
	if r.TotalSteps != l.cfg.MaxIters {
		return fmt.Errorf("%w: max-iters was %d and is %d now", ErrMismatch, r.TotalSteps, l.cfg.MaxIters)
	}
	if err := l.data.SetState(r.DataStream); err != nil {
		return fmt.Errorf("%w: data_stream: %w", ErrCheckpoint, err)
	}
	l.state = r.State()
	return nil
}
