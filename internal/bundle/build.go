package bundle

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/manifest"
)

// The contract between a bundle and Tekton's resolver.
const (
	MaxObjects           = 20
	annotationName       = "dev.tekton.image.name"
	annotationKind       = "dev.tekton.image.kind"
	annotationAPIVersion = "dev.tekton.image.apiVersion"
)

// maxObject bounds an object: an API server takes no more than etcd's 1.5 MiB.
const maxObject = 3 << 19

// Options says what else a bundle tells about itself.
type Options struct {
	Source   string    // where the objects come from, a URL
	Revision string    // commit of the source
	Created  time.Time // zero means 1970, so that nothing depends on the clock
}

// Build makes a bundle of objects. It is refused when the objects are not tasks,
// pipelines or step actions, when there are more than MaxObjects or two of one
// kind and name, when Tekton's validation fails, or when an image is not pinned.
func Build(ctx context.Context, objects []manifest.Object, o Options) (v1.Image, error) {
	if err := check(ctx, objects); err != nil {
		return nil, err
	}
	objects = slices.SortedFunc(slices.Values(objects), func(a, b manifest.Object) int {
		return cmp.Or(cmp.Compare(a.Kind.Kind, b.Kind.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind.Version, b.Kind.Version))
	})
	created := v1.Time{Time: time.Unix(0, 0).UTC()}
	if !o.Created.IsZero() {
		created.Time = o.Created.UTC().Truncate(time.Second)
	}

	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, object := range objects {
		layer, err := layer(object)
		if err != nil {
			return nil, fmt.Errorf("bundle: %s: %w", object, err)
		}
		if img, err = mutate.Append(img, mutate.Addendum{
			Layer:       layer,
			History:     v1.History{Created: created, CreatedBy: "yard: " + object.String()},
			Annotations: annotations(object),
		}); err != nil {
			return nil, fmt.Errorf("bundle: %s: %w", object, err)
		}
	}
	img, err := mutate.CreatedAt(img, created)
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	about := map[string]string{"org.opencontainers.image.created": created.Format(time.RFC3339)}
	if o.Source != "" {
		about["org.opencontainers.image.source"] = o.Source
	}
	if o.Revision != "" {
		about["org.opencontainers.image.revision"] = o.Revision
	}
	annotated, ok := mutate.Annotations(img, about).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("bundle: annotating an image gave no image")
	}
	return annotated, nil
}

// annotations are those that the resolver asks for, the version in full form.
func annotations(o manifest.Object) map[string]string {
	return map[string]string{
		annotationName:       o.Name,
		annotationKind:       strings.ToLower(o.Kind.Kind),
		annotationAPIVersion: o.Kind.GroupVersion().String(),
	}
}

func check(ctx context.Context, objects []manifest.Object) error {
	if len(objects) == 0 {
		return exitcode.Errorf(exitcode.BadInput, "bundle: no object to bundle")
	}
	var problems manifest.Problems
	seen := map[string]manifest.Object{}
	for _, o := range objects {
		if !bundled(o) {
			problems = append(problems, o.At("kind", fmt.Sprintf("%s in %s does not belong in a bundle, only tasks, pipelines and step actions do", o.Kind.Kind, o.Kind.GroupVersion())))
			continue
		}
		if o.Meta().GetName() == "" {
			problems = append(problems, o.At("metadata.name", "missing: nobody could refer to the object"))
		}
		if len(o.JSON) > maxObject {
			problems = append(problems, o.At("", fmt.Sprintf("%d bytes are more than an API server takes", len(o.JSON))))
		}
		// The resolver looks for kind and name alone.
		key := strings.ToLower(o.Kind.Kind) + "/" + o.Name
		if first, ok := seen[key]; ok {
			problems = append(problems, o.At("metadata.name", fmt.Sprintf("there is such a %s already in document %d of %s", o.Kind.Kind, first.Document, first.File)))
			continue
		}
		seen[key] = o
	}
	if len(objects) > MaxObjects {
		last := objects[MaxObjects]
		problems = append(problems, last.At("", fmt.Sprintf("is number %d of %d objects, and Tekton resolves none of a bundle with more than %d: make two bundles", MaxObjects+1, len(objects), MaxObjects)))
	}
	if err := problems.Err(); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	if err := manifest.Validate(ctx, objects...); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	if err := manifest.CheckImages(false, objects...); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}

func bundled(o manifest.Object) bool {
	if o.Kind.Group != "tekton.dev" {
		return false
	}
	switch o.Kind.Kind + "/" + o.Kind.Version {
	case "Task/v1", "Pipeline/v1", "StepAction/v1beta1":
		return true
	}
	return false
}

// layer is a tar of one file. It is compressed with stored blocks only: the digest
// must not depend on what the compressor of a Go version finds.
func layer(o manifest.Object) (v1.Layer, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if err := w.WriteHeader(&tar.Header{Name: o.Name, Mode: 0o644, Size: int64(len(o.JSON)), Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}); err != nil {
		return nil, err
	}
	if _, err := w.Write(o.JSON); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buf.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.NoCompression))
}

// Annotations returns what a bundle tells about itself.
func Annotations(img v1.Image) (map[string]string, error) {
	m, err := img.Manifest()
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	return maps.Clone(m.Annotations), nil
}
