package builderimage

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/registryclient"
)

// Labels of a builder, as pack writes them.
const (
	metadataLabel   = "io.buildpacks.builder.metadata"
	layersLabel     = "io.buildpacks.buildpack.layers"
	orderLabel      = "io.buildpacks.buildpack.order"
	extensionsLabel = "io.buildpacks.buildpack.order-extensions"
)

// Builder is what a builder image says of itself.
type Builder struct {
	Name   string // as it was asked for
	Digest string // of what the name stands for, an index perhaps
	// OS and Arch are those of the image that was chosen for the platform.
	OS, Arch string
	// UID and GID are the user that runs the buildpacks.
	UID, GID int
	// Lifecycle is its version; the lists are the interfaces that it supports,
	// deprecated ones too.
	Lifecycle                   string
	PlatformAPIs, BuildpackAPIs []string
	RunImages                   []RunImage
	Buildpacks                  []Buildpack
	Order                       []Group
	// Extensions tells that image extensions may change the images of a build.
	Extensions bool
	// Go lists the versions that a buildpack says it can install; GoFrom names the
	// buildpack. Both are empty where none says.
	Go     []string
	GoFrom string
}

// RunImage is a base for what is built, with copies of it elsewhere.
type RunImage struct {
	Image   string   `json:"image"`
	Mirrors []string `json:"mirrors"`
}

// Buildpack is a buildpack of the builder and the interface that it is written for.
type Buildpack struct{ ID, Version, API string }

// Group is one alternative of the order of buildpacks.
type Group struct {
	Group []Ref `json:"group" toml:"group"`
}

// Ref is a buildpack in a group.
type Ref struct {
	ID       string `json:"id" toml:"id"`
	Version  string `json:"version,omitempty" toml:"version,omitempty"`
	Optional bool   `json:"optional,omitempty" toml:"optional,omitempty"`
}

type apis struct {
	Deprecated []string `json:"deprecated"`
	Supported  []string `json:"supported"`
}

type metadata struct {
	Stack struct {
		RunImage RunImage `json:"runImage"`
	} `json:"stack"`
	Images    []RunImage `json:"images"`
	Lifecycle struct {
		Version string `json:"version"`
		APIs    struct {
			Buildpack apis `json:"buildpack"`
			Platform  apis `json:"platform"`
		} `json:"apis"`
	} `json:"lifecycle"`
}

// layer is what the layers label says of one version of a buildpack.
type layer struct {
	API    string `json:"api"`
	DiffID string `json:"layerDiffID"`
}

// Inspect reads the builder that ref names, for the platform. An image that is not
// a builder is bad input.
func Inspect(ctx context.Context, c *registryclient.Client, ref name.Reference, platform v1.Platform) (*Builder, error) {
	digest, err := c.Digest(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("builder: %w", err)
	}
	// By digest from here on: a tag may move between two questions.
	img, config, err := c.Config(ctx, ref.Context().Digest(digest.String()), platform)
	if err != nil {
		return nil, fmt.Errorf("builder: %w", err)
	}
	b, layers, err := parse(config)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "builder %s: %w", ref.Name(), err)
	}
	b.Name, b.Digest = ref.Name(), digest.String()
	if b.OS != platform.OS || b.Arch != platform.Architecture {
		return nil, exitcode.Errorf(exitcode.BadInput, "builder %s is for %s/%s, this machine is %s/%s: use a builder for it",
			ref.Name(), b.OS, b.Arch, platform.OS, platform.Architecture)
	}
	b.Go, b.GoFrom, err = goVersions(ctx, img, layers)
	if err != nil {
		return nil, registryclient.Explain("read the buildpacks of", ref.Name(), err)
	}
	return b, nil
}

// parse reads a configuration. It says what is missing, not which image.
func parse(config *v1.ConfigFile) (*Builder, map[string]map[string]layer, error) {
	labels := config.Config.Labels
	if labels[metadataLabel] == "" {
		return nil, nil, fmt.Errorf("not a builder: it has no label %s: name an image that pack builder create or yard builder create made", metadataLabel)
	}
	var m metadata
	var layers map[string]map[string]layer
	b := &Builder{OS: config.OS, Arch: config.Architecture}
	for _, l := range []struct {
		label string
		to    any
		must  bool
	}{{metadataLabel, &m, true}, {layersLabel, &layers, true}, {orderLabel, &b.Order, true}} {
		if err := json.Unmarshal([]byte(labels[l.label]), l.to); err != nil {
			return nil, nil, fmt.Errorf("label %s is not what a builder has: %w", l.label, err)
		}
	}
	var extensions []json.RawMessage
	if s := labels[extensionsLabel]; s != "" {
		if err := json.Unmarshal([]byte(s), &extensions); err != nil {
			return nil, nil, fmt.Errorf("label %s is not what a builder has: %w", extensionsLabel, err)
		}
	}
	b.Extensions = len(extensions) > 0
	var err error
	if b.UID, b.GID, err = user(config.Config); err != nil {
		return nil, nil, err
	}
	b.Lifecycle = m.Lifecycle.Version
	b.PlatformAPIs = append(m.Lifecycle.APIs.Platform.Deprecated, m.Lifecycle.APIs.Platform.Supported...)
	b.BuildpackAPIs = append(m.Lifecycle.APIs.Buildpack.Deprecated, m.Lifecycle.APIs.Buildpack.Supported...)
	if b.Lifecycle == "" || len(b.PlatformAPIs) == 0 {
		return nil, nil, fmt.Errorf("label %s names no lifecycle with platform interfaces", metadataLabel)
	}
	b.RunImages = m.Images
	if len(b.RunImages) == 0 && m.Stack.RunImage.Image != "" {
		b.RunImages = []RunImage{m.Stack.RunImage}
	}
	for id, versions := range layers {
		for version, l := range versions {
			b.Buildpacks = append(b.Buildpacks, Buildpack{id, version, l.API})
		}
	}
	slices.SortFunc(b.Buildpacks, func(x, y Buildpack) int {
		return cmp.Or(cmp.Compare(x.ID, y.ID), cmp.Compare(x.Version, y.Version))
	})
	return b, layers, nil
}

// user reads the user that the buildpacks run as. The image's own user must be the
// same, as numbers: steps run as the image says, and the lifecycle refuses any
// other user; a name would hide from Kubernetes whether it is root.
func user(c v1.Config) (uid, gid int, err error) {
	env := map[string]string{}
	for _, e := range c.Env {
		k, v, _ := strings.Cut(e, "=")
		env[k] = v
	}
	for _, id := range []struct {
		name string
		to   *int
	}{{"CNB_USER_ID", &uid}, {"CNB_GROUP_ID", &gid}} {
		n, err := strconv.Atoi(env[id.name])
		if err != nil || n <= 0 {
			return 0, 0, fmt.Errorf("its environment has %s=%q, want a number that is not root's", id.name, env[id.name])
		}
		*id.to = n
	}
	u, g, hasGroup := strings.Cut(c.User, ":")
	if u != strconv.Itoa(uid) || hasGroup && g != strconv.Itoa(gid) {
		return 0, 0, fmt.Errorf("its USER is %q and its buildpacks' user %d:%d: want the same numbers", c.User, uid, gid)
	}
	return uid, gid, nil
}
