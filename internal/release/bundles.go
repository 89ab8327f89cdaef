package release

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/trainyard/trainyard/internal/bundle"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/render"
)

// bundles makes the bundles, and release.yaml from the same objects.
func (m *maker) bundles(ctx context.Context, report *Report) error {
	d, err := manifest.NewDecoder()
	if err != nil {
		return err
	}
	tasks, err := d.Read(filepath.Join(m.Root, "tasks"))
	if err != nil {
		return err
	}
	pipelines, err := d.Read(filepath.Join(m.Root, "pipelines"))
	if err != nil {
		return err
	}
	var folders []string
	for _, folder := range installed() {
		folders = append(folders, filepath.Join(m.Root, folder))
	}
	around, err := d.Read(folders...)
	if err != nil {
		return err
	}

	rendering := render.Options{ToolImage: report.ToolImage}
	if report.TaskBundle, err = m.bundle(ctx, d, "tasks", tasks, rendering); err != nil {
		return err
	}
	rendering.TaskBundle = report.TaskBundle
	if report.PipelineBundle, err = m.bundle(ctx, d, "pipelines", pipelines, rendering); err != nil {
		return err
	}

	// Installed are the tasks themselves: a cluster without the bundle resolver, or
	// without the registry, needs no bundle.
	all := append(append(around, tasks...), pipelines...)
	rendered, err := render.Objects(ctx, d, all, render.Options{ToolImage: report.ToolImage, Namespace: m.Namespace})
	if err != nil {
		return err
	}
	text, err := render.YAML(rendered)
	if err != nil {
		return err
	}
	return m.write("release.yaml", text)
}

// installed are the folders of what deploy/base installs besides tasks and pipelines.
func installed() []string {
	return []string{"deploy/base", "sa", "triggers", "triggers/queue", "triggers/prune"}
}

func (m *maker) bundle(ctx context.Context, d *manifest.Decoder, name string, objects []manifest.Object, o render.Options) (string, error) {
	rendered, err := render.Objects(ctx, d, objects, o)
	if err != nil {
		return "", err
	}
	img, err := bundle.Build(ctx, rendered, bundle.Options{Source: m.Source, Revision: m.Commit, Created: m.created()})
	if err != nil {
		return "", err
	}
	digest, err := img.Digest()
	if err != nil {
		return "", fmt.Errorf("release: %w", err)
	}
	if err := m.layout.AppendImage(img, m.annotations(name)); err != nil {
		return "", fmt.Errorf("release: %w", err)
	}
	return m.reference(name, digest), nil
}
