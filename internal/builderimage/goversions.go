package builderimage

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Bounds of what is downloaded to learn Go versions: buildpacks that carry whole
// toolchains, or share one layer with all others, are not searched.
const (
	maxLayer      = 64 << 20 // compressed
	maxDescriptor = 1 << 20
)

// goVersions asks the descriptors of the builder's Go buildpacks which versions of
// Go they can install. Not to find any is no error: few builders must tell.
func goVersions(ctx context.Context, img v1.Image, layers map[string]map[string]layer) (versions []string, from string, err error) {
	type candidate struct{ id, version, diffID string }
	var candidates []candidate
	for id, all := range layers {
		if !strings.HasPrefix(path.Base(id), "go") {
			continue
		}
		for version, l := range all {
			candidates = append(candidates, candidate{id, version, l.DiffID})
		}
	}
	rank := func(c candidate) int {
		if path.Base(c.id) == "go-dist" {
			return 0 // where Paketo keeps them
		}
		return 1
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.id, b.id), cmp.Compare(a.version, b.version))
	})
	for _, c := range candidates {
		if err := ctx.Err(); err != nil {
			return nil, "", err
		}
		found, err := layerVersions(img, c.diffID)
		if err != nil {
			return nil, "", err
		}
		if len(found) > 0 {
			return found, c.id + "@" + c.version, nil
		}
	}
	return nil, "", nil
}

// layerVersions reads the descriptors in a layer until one names Go versions.
func layerVersions(img v1.Image, diffID string) ([]string, error) {
	h, err := v1.NewHash(diffID)
	if err != nil {
		return nil, nil // a builder without layer ids: nothing to look at
	}
	l, err := img.LayerByDiffID(h)
	if err != nil {
		return nil, fmt.Errorf("buildpack layer %s: %w", diffID, err)
	}
	if size, err := l.Size(); err != nil || size > maxLayer {
		return nil, err
	}
	r, err := l.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	for files := tar.NewReader(r); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("buildpack layer %s: %w", diffID, err)
		}
		if path.Base(h.Name) != "buildpack.toml" || h.Typeflag != tar.TypeReg || h.Size > maxDescriptor {
			continue
		}
		text, err := io.ReadAll(files)
		if err != nil {
			return nil, fmt.Errorf("buildpack layer %s: %w", diffID, err)
		}
		if found := parseGoVersions(text); len(found) > 0 {
			return found, nil
		}
	}
}

// parseGoVersions reads the Go versions of a descriptor's dependencies, each once.
func parseGoVersions(text []byte) []string {
	var d struct {
		Metadata struct {
			Dependencies []struct {
				ID      string `toml:"id"`
				Version string `toml:"version"`
			} `toml:"dependencies"`
		} `toml:"metadata"`
	}
	if _, err := toml.Decode(string(text), &d); err != nil {
		return nil // the lifecycle will judge it
	}
	var versions []string
	for _, dep := range d.Metadata.Dependencies {
		if dep.ID == "go" && dep.Version != "" && !slices.Contains(versions, dep.Version) {
			versions = append(versions, dep.Version)
		}
	}
	slices.SortFunc(versions, compare)
	return versions
}

// CompareVersions orders versions such as 1.25.14 and 0.12 by their numbers.
func CompareVersions(a, b string) int { return compare(a, b) }
