package builder

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/BurntSushi/toml"
	"github.com/buildpacks/imgutil"
	imglayout "github.com/buildpacks/imgutil/layout"
	packbuilder "github.com/buildpacks/pack/builder"
	"github.com/buildpacks/pack/pkg/blob"
	pack "github.com/buildpacks/pack/pkg/client"
	"github.com/buildpacks/pack/pkg/dist"
	"github.com/buildpacks/pack/pkg/image"
	"github.com/buildpacks/pack/pkg/logging"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	gooffline "github.com/trainyard/trainyard/buildpacks/go-offline"
)

// pack lets pack's library put the builder together and returns it. Pack sees no
// registry and no container engine: it reads and writes a directory, so that who
// talks to a registry, and how, is decided in one place.
func (o Options) pack(ctx context.Context, work string, build, run v1.Image, r Result) (v1.Image, error) {
	archive := filepath.Join(work, "lifecycle.tgz")
	if _, err := o.Lifecycle.Archive(ctx, archive); err != nil {
		return nil, err
	}
	buildpack := filepath.Join(work, "buildpack")
	if err := buildpackDir(buildpack, o.Buildpack, r.Go); err != nil {
		return nil, err
	}
	var descriptor struct{ Buildpack dist.ModuleInfo }
	if _, err := toml.Decode(gooffline.Descriptor(), &descriptor); err != nil {
		return nil, err
	}

	const buildName = "build"
	out := filepath.Join(work, "builder")
	log := logging.NewLogWithWriters(o.Log, o.Log)
	client, err := pack.NewClient(
		pack.WithLogger(log),
		pack.WithFetcher(memory{out: out, images: map[string]v1.Image{buildName: build, r.Run: run}}),
		pack.WithDownloader(blob.NewDownloader(log, work)),
		// Neither is called when a builder is published.
		pack.WithDockerClient(struct{ pack.DockerClient }{}),
		pack.WithIndexFactory(struct{ pack.IndexFactory }{}),
	)
	if err != nil {
		return nil, fmt.Errorf("pack: %s", join(err.Error()))
	}
	err = client.CreateBuilder(ctx, pack.CreateBuilderOptions{
		BuilderName: "builder",
		Publish:     true,
		PullPolicy:  image.PullAlways,
		Labels:      map[string]string{LabelGo: r.Go, LabelKey: r.Key},
		Config: packbuilder.Config{
			Description: "Go programs, built with " + r.Go + " and without network",
			Buildpacks:  packbuilder.ModuleCollection{{ImageOrURI: dist.ImageOrURI{BuildpackURI: dist.BuildpackURI{URI: buildpack}}}},
			Order:       dist.Order{{Group: []dist.ModuleRef{{ModuleInfo: dist.ModuleInfo{ID: descriptor.Buildpack.ID, Version: descriptor.Buildpack.Version}}}}},
			Lifecycle:   packbuilder.LifecycleConfig{URI: archive},
			Build:       packbuilder.BuildConfig{Image: buildName},
			Run:         packbuilder.RunConfig{Images: []packbuilder.RunImageConfig{{Image: r.Run}}},
			Targets:     []dist.Target{{OS: "linux", Arch: o.Arch}},
		},
		Targets: []dist.Target{{OS: "linux", Arch: o.Arch}},
	})
	if err != nil {
		return nil, fmt.Errorf("pack: %s", join(err.Error()))
	}
	return readLayout(out)
}

func readLayout(dir string) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	m, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(m.Manifests) != 1 {
		return nil, fmt.Errorf("pack wrote %d images, want one", len(m.Manifests))
	}
	return index.Image(m.Manifests[0].Digest)
}

// memory hands images to pack by their names.
type memory struct {
	out    string // where an image that pack saves is written
	images map[string]v1.Image
}

// Fetch returns an image that pack may change and save.
func (m memory) Fetch(_ context.Context, name string, _ image.FetchOptions) (imgutil.Image, error) {
	img, ok := m.images[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, image.ErrNotFound)
	}
	l, err := imglayout.NewImage(m.out, imglayout.FromBaseImageInstance(img), imglayout.WithMediaTypes(imgutil.OCITypes))
	if err != nil {
		return nil, err
	}
	return saved{l}, nil
}

// FetchForPlatform is Fetch: there is one platform.
func (m memory) FetchForPlatform(ctx context.Context, name string, o image.FetchOptions) (imgutil.Image, error) {
	return m.Fetch(ctx, name, o)
}

// CheckReadAccess says whether there is such an image.
func (m memory) CheckReadAccess(name string, _ image.FetchOptions) bool {
	_, ok := m.images[name]
	return ok
}

// saved is an image in a directory that keeps its place when pack renames it.
type saved struct{ *imglayout.Image }

// Rename does nothing: the name of the builder is no path.
func (saved) Rename(string) {}

var _ pack.ImageFetcher = memory{}
