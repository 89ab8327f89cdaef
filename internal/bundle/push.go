package bundle

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/registryclient"
)

// Push writes a bundle under a tag, reads the tag back, and returns the reference
// by digest.
func Push(ctx context.Context, client *registryclient.Client, tag string, img v1.Image) (name.Digest, error) {
	ref, err := client.Reference(tag)
	if err != nil {
		return name.Digest{}, err
	}
	if _, ok := ref.(name.Digest); ok {
		return name.Digest{}, exitcode.Errorf(exitcode.Usage, "%s: a bundle is pushed under a tag, its digest follows from its contents", tag)
	}
	want, err := img.Digest()
	if err != nil {
		return name.Digest{}, fmt.Errorf("bundle: %w", err)
	}
	if err := client.Push(ctx, ref, img); err != nil {
		return name.Digest{}, err
	}
	got, err := client.Digest(ctx, ref)
	if err != nil {
		return name.Digest{}, err
	}
	if got != want {
		return name.Digest{}, exitcode.Errorf(exitcode.Integrity, "%s: pushed %s, but the registry serves %s: somebody else pushed, or the registry changes what it stores", ref, want, got)
	}
	return ref.Context().Digest(want.String()), nil
}

// Pull fetches a bundle and returns its reference by digest too.
func Pull(ctx context.Context, client *registryclient.Client, reference string) (v1.Image, name.Digest, error) {
	ref, err := client.Reference(reference)
	if err != nil {
		return nil, name.Digest{}, err
	}
	img, err := client.Image(ctx, ref, v1.Platform{OS: "linux", Architecture: "amd64"})
	if err != nil {
		return nil, name.Digest{}, err
	}
	digest, err := img.Digest()
	if err != nil {
		return nil, name.Digest{}, fmt.Errorf("%s: %w", ref, err)
	}
	return img, ref.Context().Digest(digest.String()), nil
}
