package bundle

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/registryclient"
)

// Entry is one object of a bundle.
type Entry struct {
	Kind       string `json:"kind"` // as the object spells it, for example Task
	APIVersion string `json:"apiVersion"`
	Name       string `json:"name"`
	Digest     string `json:"digest"` // of the layer
	Size       int    `json:"size"`   // of the object, in bytes
}

// List reads every object of a bundle, in the order of its layers, and checks what
// Tekton's resolver would and that each layer is the object that it claims to be.
func List(d *manifest.Decoder, img v1.Image) ([]Entry, error) {
	m, err := img.Manifest()
	if err != nil {
		return nil, registryclient.Explain("read", "the bundle's manifest", err)
	}
	if n := len(m.Layers); n == 0 || n > MaxObjects {
		return nil, exitcode.Errorf(exitcode.BadInput, "not a Tekton bundle: %d layers, want 1 to %d", n, MaxObjects)
	}
	var entries []Entry
	for i, l := range m.Layers {
		for _, key := range []string{annotationAPIVersion, annotationKind, annotationName} {
			if l.Annotations[key] == "" {
				return nil, exitcode.Errorf(exitcode.BadInput, "not a Tekton bundle: layer %d has no annotation %s", i+1, key)
			}
		}
		layer, err := img.LayerByDigest(l.Digest)
		if err != nil {
			return nil, fmt.Errorf("bundle: layer %d: %w", i+1, err)
		}
		entry, err := read(d, layer, l)
		if err != nil {
			return nil, fmt.Errorf("bundle: layer %d: %w", i+1, err)
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

func read(d *manifest.Decoder, layer v1.Layer, l v1.Descriptor) (Entry, error) {
	data, err := contents(layer)
	if err != nil {
		return Entry{}, err
	}
	name := l.Annotations[annotationKind] + " " + l.Annotations[annotationName]
	objects, err := d.Decode(name, data)
	if err != nil {
		return Entry{}, err
	}
	if len(objects) != 1 {
		return Entry{}, exitcode.Errorf(exitcode.BadInput, "%s: %d objects in one layer", name, len(objects))
	}
	o := objects[0]
	// Older tools write the version without its group.
	version := l.Annotations[annotationAPIVersion]
	if strings.ToLower(o.Kind.Kind) != l.Annotations[annotationKind] || o.Name != l.Annotations[annotationName] ||
		(version != o.Kind.GroupVersion().String() && version != o.Kind.Version) {
		return Entry{}, exitcode.Errorf(exitcode.Integrity, "annotated as %s %s, but holds %s %s", version, name, o.Kind.GroupVersion(), o)
	}
	return Entry{o.Kind.Kind, o.Kind.GroupVersion().String(), o.Name, l.Digest.String(), len(data)}, nil
}

// contents returns the one file of a layer.
func contents(layer v1.Layer) ([]byte, error) {
	rc, err := layer.Uncompressed()
	if err != nil {
		return nil, registryclient.Explain("read", "the layer", err)
	}
	defer func() { _ = rc.Close() }()
	tr := tar.NewReader(rc)
	h, err := tr.Next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, exitcode.Errorf(exitcode.BadInput, "no file in it")
	case err != nil:
		return nil, exitcode.Errorf(exitcode.BadInput, "not a tar of one file: %w", err)
	case h.Size > maxObject:
		return nil, exitcode.Errorf(exitcode.BadInput, "%s: %d bytes are more than an API server takes", h.Name, h.Size)
	}
	data, err := io.ReadAll(tr)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "%s: %w", h.Name, err)
	}
	if _, err := tr.Next(); !errors.Is(err, io.EOF) {
		return nil, exitcode.Errorf(exitcode.BadInput, "more than one file in it")
	}
	return data, nil
}
