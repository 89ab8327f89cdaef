package cli

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/bundle"
	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/render"
)

func newBundle(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Push and list Tekton bundles",
		Args:  noArgs,
		RunE:  group,
	}
	cmd.AddCommand(newBundlePush(a), newBundleList(a))
	return cmd
}

// bundleReport is what push and list print.
type bundleReport struct {
	Reference   string            `json:"reference"` // by digest
	Digest      string            `json:"digest"`
	Pushed      bool              `json:"pushed"`
	Annotations map[string]string `json:"annotations"`
	Objects     []bundle.Entry    `json:"objects"`
}

func (r bundleReport) text(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, e := range r.Objects {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d bytes\n", e.APIVersion, e.Kind, e.Name, e.Size)
	}
	_ = t.Flush() // a report to a terminal or buffer
	fmt.Fprintln(w, r.Reference)
}

type bundlePush struct {
	registry   registryFlags
	rendering  render.Options
	about      bundle.Options
	created    string
	digestFile string
	dryRun     bool
}

func newBundlePush(a *app) *cobra.Command {
	var p bundlePush
	cmd := &cobra.Command{
		Use:   "push [flags] IMAGE:TAG FILE|FOLDER...",
		Short: "Check objects and push them as one Tekton bundle",
		Long: `Check objects and push them as one Tekton bundle.

Tasks, pipelines and step actions are taken, at most ` + strconv.Itoa(bundle.MaxObjects) + ` over all documents. Each is
decoded strictly, validated by Tekton's own code, and its images must be pinned by
digest or be one documented parameter; the placeholder ` + manifest.Placeholder + `
is replaced by --tool-image. The same objects give the same digest everywhere.

The reference by digest is the last line; use that one, never the tag.`,
		Example: `  yard bundle push --tool-image ghcr.io/trainyard/yard@sha256:… ghcr.io/trainyard/tasks:v1 tasks/
  yard bundle push --dry-run --tool-image localhost:5000/yard@sha256:… localhost:5000/tasks:dev tasks/`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return exitcode.Errorf(exitcode.Usage, "%d arguments, want IMAGE:TAG and at least one FILE or FOLDER: see %s --help", len(args), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return p.run(a, cmd, args[0], args[1:]) },
	}
	f := cmd.Flags()
	p.registry.add(cmd)
	f.StringVar(&p.rendering.ToolImage, "tool-image", "", "the tool's `image`@sha256:… for the placeholder")
	f.StringVar(&p.rendering.TaskBundle, "task-bundle", "", "`image`@sha256:… of the bundle that pipelines take their tasks from")
	f.StringVar(&p.about.Source, "source", "", "`URL` of the source, for the annotation org.opencontainers.image.source")
	f.StringVar(&p.about.Revision, "revision", "", "`commit` of the source, for the annotation org.opencontainers.image.revision")
	f.StringVar(&p.created, "created", "", "`time` of creation, RFC 3339; else SOURCE_DATE_EPOCH, else 1970")
	f.StringVar(&p.digestFile, "digest-file", "", "write the reference by digest to this `file` too")
	f.BoolVar(&p.dryRun, "dry-run", false, "check and print, but contact no registry")
	return cmd
}

func (p *bundlePush) run(a *app, cmd *cobra.Command, tag string, paths []string) error {
	ctx := cmd.Context()
	var err error
	if p.about.Created, err = createdTime(p.created, a.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}
	client, err := p.registry.client(a)
	if err != nil {
		return err
	}
	ref, err := client.Reference(tag)
	if err != nil {
		return err
	}
	d, err := manifest.NewDecoder()
	if err != nil {
		return err
	}
	objects, err := d.Read(paths...)
	if err != nil {
		return err
	}
	if objects, err = render.Objects(ctx, d, objects, p.rendering); err != nil {
		return err
	}
	img, err := bundle.Build(ctx, objects, p.about)
	if err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	pinned := ref.Context().Digest(digest.String())
	if !p.dryRun {
		if pinned, err = bundle.Push(ctx, client, tag, img); err != nil {
			return err
		}
	}
	report, err := newBundleReport(d, img, pinned.String())
	if err != nil {
		return err
	}
	report.Pushed = !p.dryRun
	if p.digestFile != "" {
		if err := writeTo(nil, p.digestFile, []byte(pinned.String()+"\n")); err != nil {
			return err
		}
	}
	return a.print(report, report.text)
}

func newBundleReport(d *manifest.Decoder, img v1.Image, reference string) (bundleReport, error) {
	entries, err := bundle.List(d, img)
	if err != nil {
		return bundleReport{}, err
	}
	about, err := bundle.Annotations(img)
	if err != nil {
		return bundleReport{}, err
	}
	digest, err := img.Digest()
	if err != nil {
		return bundleReport{}, err
	}
	return bundleReport{Reference: reference, Digest: digest.String(), Annotations: about, Objects: entries}, nil
}

// createdTime prefers the flag to the environment, and 1970 to the clock.
func createdTime(flag, epoch string) (time.Time, error) {
	if flag != "" {
		t, err := time.Parse(time.RFC3339, flag)
		if err != nil {
			return time.Time{}, exitcode.Errorf(exitcode.Usage, "--created %q: want a time such as 2026-01-31T15:04:05Z", flag)
		}
		return t, nil
	}
	if epoch == "" {
		return time.Time{}, nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, exitcode.Errorf(exitcode.Usage, "SOURCE_DATE_EPOCH %q: want seconds since 1970", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

func newBundleList(a *app) *cobra.Command {
	var registry registryFlags
	cmd := &cobra.Command{
		Use:     "list [flags] IMAGE",
		Short:   "List the objects of a Tekton bundle",
		Example: "  yard bundle list ghcr.io/trainyard/tasks@sha256:…",
		Args:    exactArgs("IMAGE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := registry.client(a)
			if err != nil {
				return err
			}
			img, pinned, err := bundle.Pull(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			d, err := manifest.NewDecoder()
			if err != nil {
				return err
			}
			report, err := newBundleReport(d, img, pinned.String())
			if err != nil {
				return fmt.Errorf("%s: %w", pinned, err)
			}
			report.Pushed = true
			return a.print(report, report.text)
		},
	}
	registry.add(cmd)
	return cmd
}
