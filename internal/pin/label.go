package pin

import (
	"context"
	"maps"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/trainyard/trainyard/internal/registryclient"
)

// Labels of an image that names its commit.
const (
	// RevisionLabel has the commit.
	RevisionLabel = "org.opencontainers.image.revision"
	// BuildLabel has the digest of the image without the commit, which is the same for
	// all commits with this code.
	BuildLabel = "io.trainyard.build.digest"
)

// labelled pushes the image that ref names with the labels of a commit, and returns
// what it is called by digest. Layers are shared, so this costs two small writes; the
// same image and commit give the same digest.
func labelled(ctx context.Context, c *registryclient.Client, ref name.Digest, commit string) (name.Digest, error) {
	d, err := c.Get(ctx, ref)
	if err != nil {
		return name.Digest{}, err
	}
	built, err := d.Image()
	if err != nil {
		return name.Digest{}, registryclient.Explain("read", ref.Name(), err)
	}
	file, err := built.ConfigFile()
	if err != nil {
		return name.Digest{}, registryclient.Explain("read the configuration of", ref.Name(), err)
	}
	config := file.Config
	config.Labels = maps.Clone(config.Labels)
	config.Labels[RevisionLabel] = commit
	config.Labels[BuildLabel] = ref.DigestStr()
	image, err := mutate.Config(built, config)
	if err != nil {
		return name.Digest{}, registryclient.Explain("label", ref.Name(), err)
	}
	digest, err := image.Digest()
	if err != nil {
		return name.Digest{}, registryclient.Explain("label", ref.Name(), err)
	}
	out := ref.Context().Digest(digest.String())
	return out, c.Push(ctx, out, image)
}
