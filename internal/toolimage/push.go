package toolimage

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/trainyard/trainyard/internal/registryclient"
)

// Index joins images of one version for several platforms.
func Index(images ...v1.Image) (v1.ImageIndex, error) {
	adds := make([]mutate.IndexAddendum, 0, len(images))
	seen := map[string]bool{}
	for _, img := range images {
		cf, err := img.ConfigFile()
		if err != nil {
			return nil, fmt.Errorf("tool image index: %w", err)
		}
		p := cf.Platform()
		if seen[p.String()] {
			return nil, fmt.Errorf("tool image index: two images for %s", p)
		}
		seen[p.String()] = true
		adds = append(adds, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: p}})
	}
	return mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), adds...), nil
}

// Push writes an image or an index under a tag and returns the reference by
// digest, which is what rendering takes.
func Push(ctx context.Context, client *registryclient.Client, tag string, what remote.Taggable) (name.Digest, error) {
	ref, err := client.Reference(tag)
	if err != nil {
		return name.Digest{}, err
	}
	d, ok := what.(interface{ Digest() (v1.Hash, error) })
	if !ok {
		return name.Digest{}, fmt.Errorf("push %s: a %T has no digest", tag, what)
	}
	digest, err := d.Digest()
	if err != nil {
		return name.Digest{}, fmt.Errorf("push %s: %w", tag, err)
	}
	if err := client.Push(ctx, ref, what); err != nil {
		return name.Digest{}, err
	}
	return ref.Context().Digest(digest.String()), nil
}
