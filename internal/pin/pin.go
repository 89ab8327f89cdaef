package pin

import (
	"context"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/trainyard/trainyard/internal/appimage"
	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/plan"
	"github.com/trainyard/trainyard/internal/registryclient"
	"github.com/trainyard/trainyard/internal/result"
)

// Options say what to pin.
type Options struct {
	Plan string // folder of the plan
	// Report is the file that the exporter left; a plan that found its image needs none.
	Report string
	// Results is the folder for one file a result; empty writes none.
	Results string
	// LabelRevision hands on the image with the commit of the plan in its labels,
	// which gives each commit a digest of its own.
	LabelRevision bool
	Client        registryclient.Options
	Log           func(format string, args ...any)
}

// Pinned is an image that cannot become another one.
type Pinned struct {
	Image     string `json:"image"` // with the final tag
	Ref       string `json:"ref"`   // by digest
	Digest    string `json:"digest"`
	Source    string `json:"sourceDigest"`
	Builder   string `json:"builderDigest"`
	Revision  string `json:"revision,omitempty"`
	SBOM      string `json:"sbom,omitempty"`
	Size      int64  `json:"size"` // of the compressed layers, in bytes
	FromCache bool   `json:"found"`
}

// Pin verifies the image of a plan, tags it and writes the results.
func Pin(ctx context.Context, o Options) (*Pinned, error) {
	f, err := plan.Read(o.Plan)
	if err != nil {
		return nil, err
	}
	if o.Results != "" {
		// Before the tag moves.
		if info, err := os.Stat(o.Results); err != nil || !info.IsDir() {
			return nil, exitcode.Errorf(exitcode.Usage, "results folder %s is not there", o.Results)
		}
	}
	if o.LabelRevision && f.Revision == "" {
		return nil, exitcode.Errorf(exitcode.Usage, "the plan has no revision to label the image with: give yard plan --revision")
	}
	c, err := f.Client(o.Client)
	if err != nil {
		return nil, err
	}
	final, err := c.Reference(f.Image)
	if err != nil {
		return nil, err
	}
	tag, ok := final.(name.Tag)
	if !ok {
		return nil, exitcode.Errorf(exitcode.BadInput, "plan: image %q is no tag", f.Image)
	}
	digest := f.FoundDigest
	if f.Action != plan.Found {
		if digest, err = pushed(ctx, c, f, o.Report); err != nil {
			return nil, err
		}
	}
	// By digest: what is verified is what is tagged and handed on.
	ref := tag.Context().Digest(digest)
	img, err := appimage.Read(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	want := f.Want()
	if err := img.Check(want); err != nil {
		return nil, err
	}
	for _, label := range img.Unlabelled(want) {
		o.Log("the image has no label %s: no buildpack of the builder writes labels", label)
	}
	if o.LabelRevision {
		if ref, err = labelled(ctx, c, ref, f.Revision); err != nil {
			return nil, err
		}
	}
	values := f.Results(tag.Context().Name(), ref.DigestStr(), img.SBOM)
	if err := result.Check(values); err != nil {
		return nil, err
	}
	if err := retag(ctx, c, ref, tag); err != nil {
		return nil, err
	}
	if o.Results != "" {
		if err := result.Write(o.Results, values); err != nil {
			return nil, err
		}
	}
	return &Pinned{
		Image: f.Image, Ref: ref.Name(), Digest: ref.DigestStr(), Source: f.SourceDigest, Builder: f.BuilderDigest,
		Revision: f.Revision, SBOM: img.SBOM, Size: img.Size, FromCache: f.Action == plan.Found,
	}, nil
}

// pushed returns the digest on which the report and the registry agree.
func pushed(ctx context.Context, c *registryclient.Client, f *plan.File, report string) (string, error) {
	said, err := readReport(report, f.Build)
	if err != nil {
		return "", err
	}
	ref, err := c.Reference(f.Build)
	if err != nil {
		return "", err
	}
	is, err := c.Digest(ctx, ref)
	if err != nil {
		return "", err
	}
	if is.String() != said {
		return "", exitcode.Errorf(exitcode.Integrity, "%s is %s in the registry, the export says that it pushed %s: somebody else pushed there: build again", f.Build, is, said)
	}
	return said, nil
}

// retag points the final tag to the image, unless it does already: a registry may
// allow to write a tag only once. Another build may move it again at any time, which
// is why everything that is handed on is the digest.
func retag(ctx context.Context, c *registryclient.Client, ref name.Digest, tag name.Tag) error {
	if now, err := c.Digest(ctx, tag); err == nil && now.String() == ref.DigestStr() {
		return nil
	}
	d, err := c.Get(ctx, ref)
	if err != nil {
		return err
	}
	if err := c.Tag(ctx, tag, d); err != nil {
		return fmt.Errorf("the image is %s, only its tag is missing: %w", ref.Name(), err)
	}
	return nil
}
