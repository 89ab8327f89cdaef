package packbuild

import (
	"context"
	"errors"
	"fmt"

	"github.com/buildpacks/imgutil"
	imglayout "github.com/buildpacks/imgutil/layout"
	"github.com/buildpacks/imgutil/local"
	pack "github.com/buildpacks/pack/pkg/client"
	"github.com/buildpacks/pack/pkg/image"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/trainyard/internal/registryclient"
)

// fetcher finds images for pack: in the engine what was loaded there, all others by
// our own registry client, so that only listed hosts are spoken to in plain http.
type fetcher struct {
	engine   pack.DockerClient
	registry *registryclient.Client
	platform v1.Platform
}

// Fetch returns an image of the engine or of a registry; of the latter, pack only
// reads.
func (f fetcher) Fetch(ctx context.Context, name string, o image.FetchOptions) (imgutil.Image, error) {
	if o.Daemon {
		img, err := local.NewImage(name, f.engine, local.FromBaseImage(name))
		if err == nil && !img.Found() {
			err = fmt.Errorf("%s: %w", name, image.ErrNotFound)
		}
		return img, err
	}
	ref, err := f.registry.Reference(name)
	if err != nil {
		return nil, err
	}
	img, err := f.registry.Image(ctx, ref, f.platform)
	if err != nil {
		if errors.Is(err, registryclient.ErrNotFound) {
			err = fmt.Errorf("%w: %w", image.ErrNotFound, err)
		}
		return nil, err
	}
	// It would be saved in a directory; nobody saves it.
	l, err := imglayout.NewImage(name, imglayout.FromBaseImageInstance(img))
	if err != nil {
		return nil, err
	}
	return found{l}, nil
}

// FetchForPlatform is Fetch: the builder was chosen for the platform by the plan.
func (f fetcher) FetchForPlatform(ctx context.Context, name string, o image.FetchOptions) (imgutil.Image, error) {
	return f.Fetch(ctx, name, o)
}

// CheckReadAccess says whether the image is there.
func (f fetcher) CheckReadAccess(name string, o image.FetchOptions) bool {
	_, err := f.Fetch(context.Background(), name, o)
	return err == nil
}

// found is an image that was fetched, although it is in no directory.
type found struct{ *imglayout.Image }

// Found is true.
func (found) Found() bool { return true }
