package release

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/registryclient"
)

// Publish pushes the images of a release, under its version, and checks that the
// registry then serves the digests that the release names. Bundles that pipelines
// refer to go before them.
func Publish(ctx context.Context, client *registryclient.Client, folder string, logf func(format string, args ...any)) error {
	data, err := os.ReadFile(filepath.Join(folder, "release.json"))
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	var report Report
	if err := json.Unmarshal(data, &report); err != nil {
		return exitcode.Errorf(exitcode.BadInput, "publish: %s: %w", filepath.Join(folder, "release.json"), err)
	}
	index, err := layout.ImageIndexFromPath(filepath.Join(folder, images))
	if err != nil {
		return exitcode.Errorf(exitcode.BadInput, "publish: %s: %w", filepath.Join(folder, images), err)
	}
	for _, reference := range []string{report.ToolImage, report.TaskBundle, report.PipelineBundle} {
		if err := publish(ctx, client, index, reference, report.Version); err != nil {
			return err
		}
		logf("pushed %s", reference)
	}
	return nil
}

func publish(ctx context.Context, client *registryclient.Client, index v1.ImageIndex, reference, version string) error {
	want, err := name.NewDigest(reference)
	if err != nil {
		return exitcode.Errorf(exitcode.BadInput, "publish: release.json: %w", err)
	}
	hash, err := v1.NewHash(want.DigestStr())
	if err != nil {
		return exitcode.Errorf(exitcode.BadInput, "publish: release.json: %w", err)
	}
	what, err := find(index, hash)
	if err != nil {
		return err
	}
	tag, err := client.Reference(want.Context().Tag(version).String())
	if err != nil {
		return err
	}
	if err := client.Push(ctx, tag, what); err != nil {
		return err
	}
	got, err := client.Digest(ctx, tag)
	if err != nil {
		return err
	}
	if got != hash {
		return exitcode.Errorf(exitcode.Integrity, "publish: %s: the registry serves %s, but the release names %s", tag, got, hash)
	}
	return nil
}

func find(index v1.ImageIndex, hash v1.Hash) (remote.Taggable, error) {
	m, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	for _, d := range m.Manifests {
		if d.Digest != hash {
			continue
		}
		if d.MediaType.IsIndex() {
			return index.ImageIndex(hash)
		}
		return index.Image(hash)
	}
	return nil, exitcode.Errorf(exitcode.Integrity, "publish: %s is not among the images of the release", hash)
}
