package train

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// Checkpointer saves LastDir and BestDir of a run directory.
type Checkpointer struct {
	Run      string                 // the run directory; must exist
	Model    func(dir string) error // writes the model's files
	Moments  func(dir string) error // writes the optimizer's file
	Data     Source                 // whose state is saved
	Finite   func() error           // says which weight is NaN or infinite; may be nil
	Identity []Fact
	Host     []Fact
	// Saved is called when LastDir is in its place; may be nil.
	Saved func(ctx context.Context, s *State)

	fs    fileOps // nil outside of tests
	saved int     // step of the last save
}

// Attach makes the loop save: at every evaluation, every interval steps besides
// (0: not), and when it ends.
func (c *Checkpointer) Attach(l *Loop, interval int) {
	if c.fs == nil {
		c.fs = osFiles{}
	}
	c.saved = l.state.Step
	l.OnStep("checkpoint", PriorityCheckpoint, func(ctx context.Context, s *State) error {
		if interval == 0 || s.Step%interval != 0 || s.WillEvaluate() {
			return nil
		}
		return c.saveLast(ctx, s)
	})
	l.OnEval("checkpoint", PriorityCheckpoint, func(ctx context.Context, s *State) error {
		if s.Step == 0 {
			return nil // nothing was learned yet
		}
		// Best first: a crash in between leaves a last that knows nothing of it
		// and makes the same best again.
		if s.Improved {
			if err := c.save(BestDir, nil); err != nil {
				return err
			}
		}
		return c.saveLast(ctx, s)
	})
	l.OnEnd("checkpoint", PriorityCheckpoint, func(ctx context.Context, s *State) error {
		if s.Step == c.saved {
			return nil
		}
		return c.saveLast(ctx, s)
	})
}

func (c *Checkpointer) saveLast(ctx context.Context, s *State) error {
	r := recordOf(s)
	var err error
	if r.DataStream, err = c.Data.State(); err != nil {
		return err
	}
	r.Identity, r.Host = c.Identity, c.Host
	if err := c.save(LastDir, &r); err != nil {
		return err
	}
	c.saved = s.Step
	if c.Saved != nil {
		c.Saved(ctx, s)
	}
	return nil
}

// save writes a whole directory aside and then puts it in place.
func (c *Checkpointer) save(name string, r *Record) (err error) {
	if c.Finite != nil {
		if err := c.Finite(); err != nil {
			return fmt.Errorf("%w: not saved: %w", ErrDiverged, err)
		}
	}
	dst := filepath.Join(c.Run, name)
	defer func() {
		if err != nil {
			err = fmt.Errorf("save checkpoint %s: %w", dst, err)
		}
	}()
	tmp, err := c.fs.tempDir(c.Run, "."+name+".tmp-")
	if err != nil {
		return err
	}
	if err := c.fill(tmp, r); err != nil {
		return errors.Join(err, c.fs.removeAll(tmp))
	}
	return replaceDir(c.fs, tmp, dst)
}

func (c *Checkpointer) fill(dir string, r *Record) error {
	if err := c.Model(dir); err != nil {
		return err
	}
	if r != nil {
		if err := c.Moments(dir); err != nil {
			return err
		}
		// The record comes last and names the digest of every file, so a
		// directory that has one is whole.
		var err error
		if r.Files, err = digests(dir); err != nil {
			return err
		}
		if err := c.fs.writeJSON(filepath.Join(dir, RecordName), r); err != nil {
			return err
		}
	}
	return c.fs.syncDir(dir)
}
