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
// digest. The options say how the registry is reached.
func Push(ctx context.Context, tag name.Reference, what remote.Taggable, options ...remote.Option) (name.Digest, error) {
	options = append(append([]remote.Option{}, options...), remote.WithContext(ctx))
	if err := remote.Push(tag, what, options...); err != nil {
		return name.Digest{}, fmt.Errorf("push the tool image to %s: %w", tag, err)
	}
	d, err := Digest(what)
	if err != nil {
		return name.Digest{}, err
	}
	return tag.Context().Digest(d.String()), nil
}

// Digest returns the digest of an image or of an index.
func Digest(what remote.Taggable) (v1.Hash, error) {
	d, ok := what.(interface{ Digest() (v1.Hash, error) })
	if !ok {
		return v1.Hash{}, fmt.Errorf("tool image: a %T has no digest", what)
	}
	return d.Digest()
}
