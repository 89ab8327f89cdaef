package demo

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/trainyard/trainyard/internal/demo/imagelock"
	"github.com/trainyard/trainyard/internal/demo/progress"
)

// step is one step of bringing a demo up.
type step struct {
	name string
	run  func(context.Context, *progress.Step) error
}

// clusterSteps bring up a cluster with everything but a run of the pipeline.
func (d *Demo) clusterSteps() []step {
	return []step{
		{"prerequisites", d.Prerequisites},
		{"images", d.Images},
		{"cluster", d.Cluster},
		{"registry", d.Registry},
		{"s3", d.Storage},
		{"git", d.Git},
		{"tekton", d.Tekton},
		{"trainyard", d.Ours},
	}
}

// UpCluster brings up the cluster, or what is missing of it.
func (d *Demo) UpCluster(ctx context.Context) error {
	if err := d.do(ctx, d.clusterSteps()); err != nil {
		return err
	}
	return d.writeEnvironment()
}

// Up brings up the cluster and takes a model through the pipeline.
func (d *Demo) Up(ctx context.Context) error {
	started := time.Now()
	steps := append(d.clusterSteps(), step{"corpus", d.Corpus}, step{"pipeline", d.Train})
	if err := d.do(ctx, steps); err != nil {
		return err
	}
	if err := d.writeEnvironment(); err != nil {
		return err
	}
	if err := d.Outcome(ctx); err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "\nall of it in %s\n", progress.Duration(time.Since(started)))
	return nil
}

func (d *Demo) do(ctx context.Context, steps []step) error {
	unlock, err := lock(d.state() + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.MkdirAll(d.state(), 0o755); err != nil {
		return err
	}
	for _, step := range steps {
		if err := d.Log.Do(ctx, step.name, step.run); err != nil {
			return err
		}
	}
	return nil
}

// Images chooses where images come from, and prepares them.
func (d *Demo) Images(ctx context.Context, step *progress.Step) error {
	mirror, err := imagelock.ParseMirror(d.Mirror)
	if err != nil {
		return err
	}
	from := d.Settings.Images
	if from == "" {
		from = "source"
		if reachable(ctx, mirror) {
			from = "registry"
		}
		d.Log.Note("images come from: %s (IMAGES=registry|source chooses)", from)
	}
	if from == "registry" {
		d.images = &registryImages{demo: d, mirror: mirror}
	} else {
		d.images = &sourceImages{demo: d}
	}
	if err := d.images.prepare(ctx, step); err != nil {
		return err
	}
	step.Doing("compiling yard")
	return d.compile(ctx, d.yard(), "./cmd/yard")
}

// RunDown removes everything of ours but the cache.
func (d *Demo) RunDown(ctx context.Context) error {
	unlock, err := lock(d.state() + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	return d.Log.Do(ctx, "down", func(ctx context.Context, step *progress.Step) error {
		if err := d.Down(ctx, step); err != nil {
			return fmt.Errorf("%w: run make down again", err)
		}
		return nil
	})
}
