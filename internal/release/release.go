package release

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/gosbom"
	"github.com/trainyard/trainyard/internal/toolimage"
)

// Options says what is released.
type Options struct {
	Root         string        // of the repository
	Go           string        // the go command, "go" when empty
	Version      string        // also the tag of the images
	Commit       string        // may be empty
	Source       string        // URL of the source, may be empty
	Created      time.Time     // zero means 1970
	Platforms    []v1.Platform // of the tool's image
	Certificates []byte        // PEM, see toolimage.ReadCertificates
	Repository   string        // what the images' names begin with, registry/path
	Folder       string        // must not exist
	Namespace    string        // that release.yaml installs into
}

// Report is what was made. It is release.json in the folder.
type Report struct {
	Version        string `json:"version"`
	Commit         string `json:"commit,omitempty"`
	Created        string `json:"created"`
	ToolImage      string `json:"toolImage"`      // by digest, as all of these
	TaskBundle     string `json:"taskBundle"`     // the tasks of release.yaml
	PipelineBundle string `json:"pipelineBundle"` // its pipelines, with tasks from TaskBundle
	Files          []File `json:"files"`          // of the folder, but for release.json and SHA256SUMS
}

// File is a file of a release.
type File struct {
	Name   string `json:"name"` // relative to the folder
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// images is the folder of a release that holds its images, as an OCI layout.
const images = "images"

// Make makes a release in o.Folder, which appears whole or not at all. What happens is
// told to logf.
func Make(ctx context.Context, o Options, logf func(format string, args ...any)) (Report, error) {
	if len(o.Platforms) == 0 {
		return Report{}, exitcode.Errorf(exitcode.Usage, "release: no platform given")
	}
	if _, err := os.Lstat(o.Folder); err == nil {
		return Report{}, exitcode.Errorf(exitcode.Conflict, "release: %s exists already: remove it, or name another folder", o.Folder)
	}
	if err := os.MkdirAll(filepath.Dir(o.Folder), 0o755); err != nil {
		return Report{}, fmt.Errorf("release: %w", err)
	}
	scratch, err := os.MkdirTemp(filepath.Dir(o.Folder), ".release-")
	if err != nil {
		return Report{}, fmt.Errorf("release: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	m := &maker{Options: o, logf: logf, programs: filepath.Join(scratch, "programs"), out: filepath.Join(scratch, "release")}
	report, err := m.run(ctx)
	if err != nil {
		return Report{}, err
	}
	if err := os.Rename(m.out, o.Folder); err != nil {
		return Report{}, fmt.Errorf("release: %w", err)
	}
	return report, nil
}

type maker struct {
	Options
	logf     func(format string, args ...any)
	programs string // folder of the compiled programs
	out      string // folder that becomes the release
	layout   layout.Path
}

func (m *maker) run(ctx context.Context) (Report, error) {
	if err := os.MkdirAll(m.out, 0o755); err != nil {
		return Report{}, fmt.Errorf("release: %w", err)
	}
	var err error
	if m.layout, err = layout.Write(filepath.Join(m.out, images), empty.Index); err != nil {
		return Report{}, fmt.Errorf("release: %w", err)
	}
	report := Report{Version: m.Version, Commit: m.Commit, Created: m.created().Format(time.RFC3339)}
	if report.ToolImage, err = m.toolImage(ctx); err != nil {
		return Report{}, err
	}
	m.logf("tool image       %s", report.ToolImage)
	if err := m.bundles(ctx, &report); err != nil {
		return Report{}, err
	}
	m.logf("task bundle      %s", report.TaskBundle)
	m.logf("pipeline bundle  %s", report.PipelineBundle)

	if report.Files, err = list(m.out); err != nil {
		return Report{}, err
	}
	data, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return Report{}, fmt.Errorf("release: %w", err)
	}
	if err := m.write("release.json", append(data, '\n')); err != nil {
		return Report{}, err
	}
	return report, m.checksums()
}

func (m *maker) created() time.Time {
	if m.Created.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return m.Created.UTC().Truncate(time.Second)
}

func (m *maker) write(name string, data []byte) error {
	if err := os.WriteFile(filepath.Join(m.out, name), data, 0o644); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}

// reference names an image of the release by digest.
func (m *maker) reference(name string, digest v1.Hash) string {
	return m.Repository + "/" + name + "@" + digest.String()
}

// annotations are those of an image in the layout: under which name it is published.
func (m *maker) annotations(name string) layout.Option {
	return layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": m.Repository + "/" + name + ":" + m.Version})
}

// toolImage compiles the programs for all platforms, keeps yard and a bill of materials
// of each, and adds the image to the layout.
func (m *maker) toolImage(ctx context.Context) (string, error) {
	var all []v1.Image
	for _, p := range m.Platforms {
		name := p.OS + "-" + p.Architecture
		folder := filepath.Join(m.programs, name)
		yard, trainer := filepath.Join(folder, "yard"), filepath.Join(folder, "trainer")
		source := toolimage.Source{Go: m.Go, Module: m.Root, Platform: p, Version: m.Version, Commit: m.Commit, Output: yard}
		m.logf("compiling for %s", p.String())
		if err := toolimage.Compile(ctx, source); err != nil {
			return "", err
		}
		source.Module, source.Package, source.Output = filepath.Join(m.Root, "trainer"), "./cmd/trainer", trainer
		if err := toolimage.Compile(ctx, source); err != nil {
			return "", err
		}
		img, err := toolimage.New(toolimage.Config{
			Program: yard, Trainer: trainer, Platform: p, Certificates: m.Certificates,
			Version: m.Version, Revision: m.Commit, Created: m.created(),
		})
		if err != nil {
			return "", err
		}
		all = append(all, img)
		sbom, err := gosbom.Encode(gosbom.Tool{Name: "trainyard release", Version: m.Version}, []string{yard, trainer})
		if err != nil {
			return "", err
		}
		if err := m.write("sbom-"+name+".cdx.json", sbom); err != nil {
			return "", err
		}
		if err := os.Rename(yard, filepath.Join(m.out, "yard-"+name)); err != nil {
			return "", fmt.Errorf("release: %w", err)
		}
	}
	index, err := toolimage.Index(all...)
	if err != nil {
		return "", err
	}
	digest, err := index.Digest()
	if err != nil {
		return "", fmt.Errorf("release: %w", err)
	}
	if err := m.layout.AppendIndex(index, m.annotations("yard")); err != nil {
		return "", fmt.Errorf("release: %w", err)
	}
	return m.reference("yard", digest), nil
}
