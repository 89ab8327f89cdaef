package appimage

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/registryclient"
)

// Labels that the lifecycle gives to what it exports.
const (
	lifecycleLabel = "io.buildpacks.lifecycle.metadata"
	buildLabel     = "io.buildpacks.build.metadata"
)

// Image is what a pushed image says of itself.
type Image struct {
	Digest string // of its manifest
	Size   int64  // of its compressed layers
	// SBOM names the layer with the software bill of materials, as repository@digest
	// of a compressed tar; empty when there is none.
	SBOM string

	name                string
	os, arch, user      string
	runImage, lifecycle string
	platformAPI         string
	labels              map[string]string
}

// Want is what was planned. Empty fields are not asked for.
type Want struct {
	OS, Arch       string
	RunImageDigest string // sha256:…
	Lifecycle      string // version
	PlatformAPI    string
	// Labels must have these values where the image has them at all: it depends on
	// the builder whether one of its buildpacks writes labels.
	Labels map[string]string
}

// Read reads the image that ref names. An index, or an image that no lifecycle has
// exported, is bad input.
func Read(ctx context.Context, c *registryclient.Client, ref name.Reference) (*Image, error) {
	d, err := c.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	if !d.MediaType.IsImage() {
		return nil, exitcode.Errorf(exitcode.BadInput, "%s is a %s, not an image", ref.Name(), d.MediaType)
	}
	img, err := d.Image()
	if err != nil {
		return nil, registryclient.Explain("read", ref.Name(), err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, registryclient.Explain("read the configuration of", ref.Name(), err)
	}
	manifest, err := img.Manifest()
	if err != nil {
		return nil, registryclient.Explain("read", ref.Name(), err)
	}
	i := &Image{Digest: d.Digest.String(), name: ref.Name(), os: config.OS, arch: config.Architecture, user: config.Config.User, labels: config.Config.Labels}
	for _, l := range manifest.Layers {
		i.Size += l.Size
	}
	for _, e := range config.Config.Env {
		if v, ok := strings.CutPrefix(e, "CNB_PLATFORM_API="); ok {
			i.platformAPI = v
		}
	}
	sbom, err := i.parse()
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "%s: %w", ref.Name(), err)
	}
	i.SBOM, err = blob(ref.Context(), config, manifest, sbom)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "%s: %w", ref.Name(), err)
	}
	return i, nil
}

// parse reads the lifecycle's labels and returns the diff id of the SBOM's layer.
func (i *Image) parse() (sbom string, err error) {
	var lifecycle struct {
		RunImage struct {
			Reference string `json:"reference"`
		} `json:"runImage"`
		SBOM struct {
			SHA string `json:"sha"`
		} `json:"sbom"`
	}
	var build struct {
		Launcher struct {
			Version string `json:"version"`
		} `json:"launcher"`
	}
	for _, l := range []struct {
		label string
		to    any
	}{{lifecycleLabel, &lifecycle}, {buildLabel, &build}} {
		if i.labels[l.label] == "" {
			return "", fmt.Errorf("no label %s: buildpacks have not built this image", l.label)
		}
		if err := json.Unmarshal([]byte(i.labels[l.label]), l.to); err != nil {
			return "", fmt.Errorf("label %s is not what the lifecycle writes: %w", l.label, err)
		}
	}
	i.runImage, i.lifecycle = lifecycle.RunImage.Reference, build.Launcher.Version
	return lifecycle.SBOM.SHA, nil
}

// blob finds the compressed layer of a diff id.
func blob(repo name.Repository, config *v1.ConfigFile, manifest *v1.Manifest, diffID string) (string, error) {
	if diffID == "" {
		return "", nil
	}
	n := slices.IndexFunc(config.RootFS.DiffIDs, func(h v1.Hash) bool { return h.String() == diffID })
	if n < 0 || n >= len(manifest.Layers) {
		return "", fmt.Errorf("label %s names an SBOM layer %s that the image does not have", lifecycleLabel, diffID)
	}
	return repo.Digest(manifest.Layers[n].Digest.String()).Name(), nil
}

// Check compares the image with what was planned. A difference is an integrity
// error that names both values.
func (i *Image) Check(w Want) error {
	for _, c := range []struct{ what, have, want string }{
		{"machine", i.os + "/" + i.arch, w.OS + "/" + w.Arch},
		{"run image", digestOf(i.runImage), w.RunImageDigest},
		{"lifecycle", i.lifecycle, w.Lifecycle},
		{"platform API", i.platformAPI, w.PlatformAPI},
	} {
		if c.want != "" && c.want != "/" && c.have != c.want {
			return exitcode.Errorf(exitcode.Integrity, "image %s has %s %q, planned was %q: something else was pushed there: build again", i.name, c.what, c.have, c.want)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(w.Labels)) {
		if have, ok := i.labels[k]; ok && have != w.Labels[k] {
			return exitcode.Errorf(exitcode.Integrity, "image %s has label %s=%q, planned was %q: something else was pushed there: build again", i.name, k, have, w.Labels[k])
		}
	}
	if err := CheckUser(i.user); err != nil {
		return exitcode.Errorf(exitcode.BadInput, "image %s: %w", i.name, err)
	}
	return nil
}

// Unlabelled lists the planned labels that the image does not have.
func (i *Image) Unlabelled(w Want) []string {
	var missing []string
	for _, k := range slices.Sorted(maps.Keys(w.Labels)) {
		if _, ok := i.labels[k]; !ok {
			missing = append(missing, k)
		}
	}
	return missing
}

// CheckUser refuses an image user that a pod of the restricted standard cannot run
// as: root, or a name, of which Kubernetes cannot tell whether it is root.
func CheckUser(user string) error {
	uid, _, _ := strings.Cut(user, ":")
	if n, err := strconv.ParseUint(uid, 10, 32); err != nil || n == 0 {
		return fmt.Errorf("its USER is %q, want the number of a user that is not root: use another run image", user)
	}
	return nil
}

// digestOf returns the part of a reference after the @.
func digestOf(ref string) string {
	_, digest, _ := strings.Cut(ref, "@")
	return digest
}
