package stage

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/lineage"
	"github.com/trainyard/trainyard/trainer/internal/store"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// Keep copies checkpoints to the store, so that a training goes on when the volume of
// its run directory is gone. The zero value keeps none.
//
// There are two places, a and b, and an index that names the one that is whole: a new
// copy is written to the other one before the index is, so that whatever breaks off,
// the index names files that are there. A store need not be able to delete.
type Keep struct {
	Store store.Store
	Every time.Duration // least time between two copies; the last is always made
}

const (
	keepDir     = "checkpoint"
	keepIndex   = "latest.json"
	maxKeepFile = 1 << 20
	// stopTime is how long the copy may take that a signal asks for: the platform
	// kills after half a minute.
	stopTime = 15 * time.Second
	// tellTime is how long the reports may take after that.
	tellTime = 5 * time.Second
)

// copier copies the checkpoints of one run.
type copier struct {
	Keep
	run, id, root string // directory, name of the run, and where it is in the store
	now           func() time.Time
	log           *slog.Logger

	index keptIndex
	etag  string
	last  time.Time
}

// newCopier returns nil when nothing is to be kept.
func newCopier(k Keep, run, id string, now func() time.Time, log *slog.Logger) *copier {
	if k.Store == nil || k.Every <= 0 {
		return nil
	}
	return &copier{Keep: k, run: run, id: id, root: path.Join(runsDir+id, keepDir), now: now, log: log}
}

// restore brings the kept checkpoint into a run directory that has none. A store that
// does not answer fails it: to begin anew would throw away what is kept.
func (k *copier) restore(ctx context.Context) error {
	if k == nil {
		return nil
	}
	if err := k.read(ctx); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(k.run, train.LastDir)); !errors.Is(err, fs.ErrNotExist) || k.index.Place == "" {
		return nil
	}
	tmp, err := newScratch(k.run, keepTemp)
	if err != nil {
		return exitcode.Errorf(exitcode.IO, "kept checkpoint: %w", err)
	}
	defer tmp.remove()
	for _, f := range k.index.Files {
		local := filepath.Join(tmp.dir, filepath.FromSlash(f.Name))
		if err := atomicfile.MkdirAll(filepath.Dir(local)); err != nil {
			return exitcode.Errorf(exitcode.IO, "kept checkpoint: %w", err)
		}
		info, err := store.Download(ctx, k.Store, k.key(k.index.Place, f.Name), local)
		if err != nil {
			return fromStore("kept checkpoint", err)
		}
		if info.SHA256 != f.SHA256 {
			return exitcode.Errorf(exitcode.Integrity, "kept checkpoint: %s is %s, its index says %s", k.key(k.index.Place, f.Name), info.SHA256, f.SHA256)
		}
	}
	// Last comes last: with it the run has a checkpoint.
	for _, name := range []string{train.HistoryName, train.BestDir, train.LastDir} {
		from, to := filepath.Join(tmp.dir, name), filepath.Join(k.run, name)
		if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.RemoveAll(to); err != nil {
			return exitcode.Errorf(exitcode.IO, "kept checkpoint: %w", err)
		}
		if err := os.Rename(from, to); err != nil {
			return exitcode.Errorf(exitcode.IO, "kept checkpoint: %w", err)
		}
	}
	k.log.Info("no checkpoint in the run directory: going on from the one in the store", "step", k.index.Step, "store", k.Store.URL(), "key", k.key(k.index.Place, ""))
	return nil
}

// look reads where the kept checkpoint is, for a training that begins anew and will
// replace it.
func (k *copier) look(ctx context.Context) error {
	if k == nil {
		return nil
	}
	return k.read(ctx)
}

// read reads the index, if there is one.
func (k *copier) read(ctx context.Context) error {
	raw, info, err := store.ReadAll(ctx, k.Store, path.Join(k.root, keepIndex), maxKeepFile)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fromStore("kept checkpoint", err)
	}
	index, err := parseKept(raw)
	if err != nil {
		return exitcode.Errorf(exitcode.BadInput, "kept checkpoint: %s in %s: %w", path.Join(k.root, keepIndex), k.Store.URL(), err)
	}
	k.index, k.etag = index, info.ETag
	return nil
}

// saved copies the checkpoint that was written a moment ago, unless the last copy is
// young. A copy that fails is said and not an error: training has the volume.
func (k *copier) saved(ctx context.Context, step int) {
	if k == nil || (!k.last.IsZero() && k.now().Sub(k.last) < k.Every) {
		return
	}
	k.copy(ctx, step)
}

// ended copies the last checkpoint whatever the time. When a signal ended the
// training there is not much of it.
func (k *copier) ended(ctx context.Context, step int, interrupted bool) {
	if k == nil || (k.index.Step == step && k.index.Place != "") {
		return
	}
	if interrupted {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, stopTime)
		defer cancel()
	}
	k.copy(ctx, step)
}

func (k *copier) copy(ctx context.Context, step int) {
	k.last = k.now()
	if err := k.put(ctx, step); err != nil {
		k.log.Warn("checkpoint not copied to the store: when the volume is lost, training goes on from an earlier one", "step", step, "error", err)
	}
}

// tell copies logs and progress to the store when a signal ended the training: a
// pipeline that was cancelled may run no task that could.
func (k *copier) tell(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	if _, err := publish(ctx, k.Store, k.run, k.id); err != nil {
		k.log.Warn("logs and progress not copied to the store", "error", err)
	}
}

// put writes a copy to the place that the index does not name, and then the index.
func (k *copier) put(ctx context.Context, step int) error {
	next := keptIndex{Schema: keepSchema, Step: step, Place: "a"}
	if k.index.Place == "a" {
		next.Place = "b"
	}
	names, err := k.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		local := filepath.Join(k.run, filepath.FromSlash(name))
		key := k.key(next.Place, name)
		info, err := store.Upload(ctx, k.Store, local, key)
		if err != nil {
			return err
		}
		if info.SHA256 == "" {
			if info.SHA256, err = lineage.HashFile(ctx, local); err != nil {
				return err
			}
		}
		next.Files = append(next.Files, keptFile{name, info.SHA256})
	}
	body, err := marshalKept(next)
	if err != nil {
		return err
	}
	info, err := k.Store.PutIf(ctx, path.Join(k.root, keepIndex), body, k.etag)
	if err != nil {
		return err
	}
	k.index, k.etag = next, info.ETag
	return nil
}

// names lists what a copy has: both checkpoints and the history.
func (k *copier) names() ([]string, error) {
	var names []string
	for _, dir := range []string{train.BestDir, train.LastDir} {
		entries, err := os.ReadDir(filepath.Join(k.run, dir))
		if errors.Is(err, fs.ErrNotExist) && dir == train.BestDir {
			continue // nothing was evaluated yet
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Type().IsRegular() && e.Name()[0] != '.' {
				names = append(names, dir+"/"+e.Name())
			}
		}
	}
	if present(filepath.Join(k.run, train.HistoryName)) == nil {
		names = append(names, train.HistoryName)
	}
	return names, nil
}

func (k *copier) key(place, name string) string { return path.Join(k.root, place, name) }

// attach makes a loop keep its checkpoints.
func (k *copier) attach(l *train.Loop, c *train.Checkpointer) {
	if k == nil {
		return
	}
	c.Saved = func(ctx context.Context, s *train.State) { k.saved(ctx, s.Step) }
	l.OnEnd("keep", train.PriorityCheckpoint+1, func(ctx context.Context, s *train.State) error {
		k.ended(ctx, s.Step, !s.Done())
		return nil
	})
	l.OnEnd("tell", train.PriorityProgress+1, func(ctx context.Context, s *train.State) error {
		if !s.Done() {
			k.tell(ctx)
		}
		return nil
	})
}
