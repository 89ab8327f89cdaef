package builder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/trainyard/internal/builder/base"
	"github.com/trainyard/trainyard/internal/registryclient"
)

// Labels that say what no other label of a builder does.
const (
	LabelGo  = "io.trainyard.go.version"  // of the toolchain
	LabelKey = "io.trainyard.builder.key" // of the inputs
)

// Create makes a builder and pushes it, its run image first, unless the registry
// has one of the same inputs.
func Create(ctx context.Context, o Options) (Result, error) {
	r, err := create(ctx, o.withDefaults())
	if err != nil {
		return Result{}, fmt.Errorf("create a builder: %w", err)
	}
	return r, nil
}

func create(ctx context.Context, o Options) (Result, error) {
	if err := o.check(); err != nil {
		return Result{}, err
	}
	golang, err := base.OpenGo(o.GoRoot, o.Arch)
	if err != nil {
		return Result{}, err
	}
	version, err := o.Lifecycle.Version(ctx)
	if err != nil {
		return Result{}, err
	}
	debian := base.Debian{Suite: o.Suite, Mirror: o.Mirror, Command: o.Mmdebstrap, Arch: o.Arch}
	files, err := debian.Files(ctx, o.Cache)
	if err != nil {
		return Result{}, err
	}
	run, err := base.Run(files, o.Arch, o.Cache)
	if err != nil {
		return Result{}, err
	}
	k, err := o.key(run, golang)
	if err != nil {
		return Result{}, err
	}
	r := Result{Key: k, Go: golang.Version, Lifecycle: version}
	builderTag, err := o.Registry.Reference(o.Repository + "/builder:" + k)
	if err != nil {
		return Result{}, err
	}
	runTag, err := o.Registry.Reference(o.Repository + "/run:" + k)
	if err != nil {
		return Result{}, err
	}
	runDigest, err := run.Digest()
	if err != nil {
		return Result{}, err
	}
	r.Run = runTag.Context().Name() + "@" + runDigest.String()

	if !o.Force {
		found, err := o.find(ctx, builderTag, r.Run)
		if err != nil {
			return Result{}, err
		}
		if found != "" {
			o.logf("builder %s is there", found)
			r.Builder, r.Cached = found, true
			return r, nil
		}
	}

	o.logf("run image: %s, push %s", size(run), runTag)
	if err := o.Registry.Push(ctx, runTag, run); err != nil {
		return Result{}, err
	}
	build, err := base.Build(files, golang, o.Arch, o.Cache)
	if err != nil {
		return Result{}, err
	}
	o.logf("build image: %s, of Debian %s with %s", size(build), o.Suite, golang.Version)
	work, err := os.MkdirTemp(o.Cache, ".builder-")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(work)
	img, err := o.pack(ctx, work, build, run, r)
	if err != nil {
		return Result{}, err
	}
	o.logf("builder: %s, push %s", size(img), builderTag)
	if err := o.Registry.Push(ctx, builderTag, img); err != nil {
		return Result{}, err
	}
	digest, err := img.Digest()
	if err != nil {
		return Result{}, err
	}
	r.Builder = builderTag.Context().Name() + "@" + digest.String()
	return r, nil
}

// find returns the builder that is under the tag, or nothing. One whose run image
// is missing does not count.
func (o Options) find(ctx context.Context, tag name.Reference, run string) (string, error) {
	d, err := o.Registry.Digest(ctx, tag)
	if err != nil {
		if missing(err) {
			return "", nil
		}
		return "", err
	}
	ref, err := o.Registry.Reference(run)
	if err != nil {
		return "", err
	}
	if _, err := o.Registry.Digest(ctx, ref); err != nil {
		if missing(err) {
			return "", nil
		}
		return "", err
	}
	return tag.Context().Name() + "@" + d.String(), nil
}

func missing(err error) bool { return errors.Is(err, registryclient.ErrNotFound) }

// size tells the compressed size of an image, for the log.
func size(img v1.Image) string {
	layers, err := img.Layers()
	if err != nil {
		return err.Error()
	}
	var sum int64
	for _, l := range layers {
		n, err := l.Size()
		if err != nil {
			return err.Error()
		}
		sum += n
	}
	return fmt.Sprintf("%.1f MB in %d layers", float64(sum)/1e6, len(layers))
}

// join makes one line of pack's messages.
func join(lines string) string { return strings.Join(strings.Fields(lines), " ") }
