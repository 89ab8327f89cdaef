package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/trainyard/trainyard/internal/appimage"
	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/registryclient"
)

// Names within the folder of a plan.
const (
	FileName    = "plan.json"
	SourceDir   = "source"   // what is built
	PlatformDir = "platform" // the lifecycle's platform directory
	OrderFile   = "order.toml"
)

// Actions: what is left to do.
const (
	Phases  = "phases"  // one step a phase
	Creator = "creator" // all phases in one step
	Found   = "found"   // nothing: the image is there
)

const schema = 1

// File is a plan as it is handed from step to step.
type File struct {
	Schema int    `json:"schema"`
	Action string `json:"action"`
	// Image is the name with the final tag, Build the name under which the phases
	// push; FoundDigest is the image's digest when it is there already.
	Image       string `json:"image"`
	Build       string `json:"build"`
	FoundDigest string `json:"foundDigest,omitempty"`

	Builder       string            `json:"builder"` // name by digest
	BuilderDigest string            `json:"builderDigest"`
	UID           int               `json:"uid"`
	GID           int               `json:"gid"`
	Lifecycle     string            `json:"lifecycle"`
	PlatformAPI   string            `json:"platformAPI"`
	OS            string            `json:"os"`
	Arch          string            `json:"arch"`
	RunImage      string            `json:"runImage"` // name by digest
	CacheImage    string            `json:"cacheImage,omitempty"`
	Insecure      []string          `json:"insecureRegistries,omitempty"`
	ProcessType   string            `json:"processType,omitempty"`
	Created       string            `json:"created,omitempty"` // SOURCE_DATE_EPOCH
	Order         bool              `json:"order,omitempty"`   // OrderFile was written
	SourceDigest  string            `json:"sourceDigest"`
	Revision      string            `json:"revision,omitempty"`
	Labels        map[string]string `json:"labels"`
	Key           string            `json:"key"`
}

// Want is what an image built by this plan must be.
func (f *File) Want() appimage.Want {
	_, run, _ := cutDigest(f.RunImage)
	return appimage.Want{OS: f.OS, Arch: f.Arch, RunImageDigest: run, Lifecycle: f.Lifecycle, PlatformAPI: f.PlatformAPI, Labels: f.Labels}
}

// Results are the values of the task's results for an image with this digest.
func (f *File) Results(repository, digest, sbom string) map[string]string {
	return map[string]string{
		"IMAGE_URL":      repository,
		"IMAGE_DIGEST":   digest,
		"IMAGE_REF":      repository + "@" + digest,
		"SOURCE_DIGEST":  f.SourceDigest,
		"BUILDER_DIGEST": f.BuilderDigest,
		"SBOM_URL":       sbom,
		"CACHE_HIT":      fmt.Sprint(f.Action == Found),
	}
}

// Read reads the plan of a folder. A plan that is not one is bad input.
func Read(dir string) (*File, error) {
	path := filepath.Join(dir, FileName)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "plan: %w: run yard plan first", err)
	}
	f, err := decode(b)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "plan %s: %w", path, err)
	}
	return f, nil
}

func decode(b []byte) (*File, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	f := &File{}
	if err := d.Decode(f); err != nil {
		return nil, err
	}
	switch {
	case f.Schema != schema:
		return nil, fmt.Errorf("schema %d, this yard reads %d: use one yard for all steps", f.Schema, schema)
	case f.Action != Phases && f.Action != Creator && f.Action != Found:
		return nil, fmt.Errorf("unknown action %q", f.Action)
	case f.Image == "" || f.Build == "" || f.RunImage == "" || f.PlatformAPI == "":
		return nil, errors.New("it names no image, run image or platform API")
	}
	return f, nil
}

// write makes the plan appear whole or not at all.
func (f *File) write(dir string) error {
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	part := filepath.Join(dir, "."+FileName)
	if err := os.WriteFile(part, append(b, '\n'), 0o644); err != nil {
		return exitcode.New(exitcode.IO, err)
	}
	return exitcode.New(exitcode.IO, os.Rename(part, filepath.Join(dir, FileName)))
}

// Client returns the client for the registries of this plan.
func (f *File) Client(o registryclient.Options) (*registryclient.Client, error) {
	o.Insecure = f.Insecure
	return registryclient.New(o)
}

// cutDigest splits a name by digest.
func cutDigest(ref string) (repository, digest string, ok bool) {
	d, err := name.NewDigest(ref)
	if err != nil {
		return ref, "", false
	}
	return d.Context().Name(), d.DigestStr(), true
}
