// Package published lists the published images that the demo runs where it builds
// none. Their versions are those of the Go modules that the same parts are built
// from elsewhere, so that one bump of a module moves both.
package published

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/demo/gomodule"
	"github.com/trainyard/trainyard/internal/demo/imagelock"
	"github.com/trainyard/trainyard/internal/demo/tekton"
)

// Modules whose versions the images have.
const (
	kindModule     = "sigs.k8s.io/kind"
	registryModule = "github.com/distribution/distribution/v3"
	s3Module       = "github.com/versity/versitygw"
)

// What no module names. A builder's tag is the release that pinned its lifecycle
// and its buildpacks. The run image is of the release of Paketo's stack that the
// builder's build image is of (builder.toml): the builder itself names the run
// image by the tag latest.
const (
	builder = "docker.io/paketobuildpacks/builder-jammy-tiny:0.0.518"
	run     = "docker.io/paketobuildpacks/run-jammy-tiny:0.2.152"
)

// Images are the published images, for what each is used.
type Images struct {
	// Node is kind's node image.
	Node imagelock.Image
	// Registry is the distribution registry.
	Registry imagelock.Image
	// S3 is versitygw. Its entrypoint is a shell script before the program,
	// /usr/local/bin/versitygw.
	S3 imagelock.Image
	// Builder is a Buildpacks builder, and Run what its images are based on.
	Builder, Run imagelock.Image
	// Shell is what Tekton starts scripts from.
	Shell imagelock.Image
	// Tekton's images, by the import paths of their programs.
	Tekton map[string]imagelock.Image
}

// All returns the images in the order of their names.
func (i Images) All() []imagelock.Image {
	all := []imagelock.Image{i.Node, i.Registry, i.S3, i.Builder, i.Run, i.Shell}
	for _, image := range i.Tekton {
		all = append(all, image)
	}
	slices.SortFunc(all, func(a, b imagelock.Image) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Hosts returns the registries that the images are on, sorted.
func (i Images) Hosts() []string {
	var hosts []string
	for _, image := range i.All() {
		host, _, _ := strings.Cut(image.Name, "/")
		hosts = append(hosts, host)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// List returns the images. find returns a module as the cluster's go.mod pins it.
func List(find func(module string) (gomodule.Module, error)) (Images, error) {
	images := Images{
		Builder: imagelock.Image{Name: builder},
		Run:     imagelock.Image{Name: run},
		Tekton:  map[string]imagelock.Image{},
	}
	kind, err := find(kindModule)
	if err != nil {
		return Images{}, err
	}
	if images.Node, err = nodeImage(kind); err != nil {
		return Images{}, err
	}
	registry, err := find(registryModule)
	if err != nil {
		return Images{}, err
	}
	// The project's documentation runs Docker's official image.
	images.Registry.Name = "docker.io/library/registry:" + strings.TrimPrefix(registry.Version, "v")
	s3, err := find(s3Module)
	if err != nil {
		return Images{}, err
	}
	images.S3.Name = "ghcr.io/versity/versitygw:" + s3.Version

	for _, path := range []string{tekton.PipelinesModule, tekton.TriggersModule} {
		module, err := find(path)
		if err != nil {
			return Images{}, err
		}
		release := tekton.Release{Module: module.Path, Version: module.Version, FS: module.FS()}
		if err := images.addTekton(release); err != nil {
			return Images{}, err
		}
	}
	return images, nil
}

func (i *Images) addTekton(release tekton.Release) error {
	importPaths, err := tekton.Images(release)
	if err != nil {
		return err
	}
	for _, importPath := range importPaths {
		name, err := release.ImageName(importPath)
		if err != nil {
			return err
		}
		i.Tekton[importPath] = imagelock.Image{Name: name}
	}
	if release.Module != tekton.PipelinesModule {
		return nil
	}
	shell, err := release.ShellImage()
	if err != nil {
		return err
	}
	i.Shell, err = pinned(shell, release.String())
	return err
}

// pinned reads NAME@DIGEST, as a source has it.
func pinned(reference, source string) (imagelock.Image, error) {
	name, digest, _ := strings.Cut(reference, "@")
	if digest == "" {
		return imagelock.Image{}, fmt.Errorf("%s names %s without a digest: look up where this version has it", source, name)
	}
	canonical, err := imagelock.Canonical(name)
	return imagelock.Image{Name: canonical, Digest: digest, Source: source}, err
}
