package render

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/manifest"
)

// Options says what to put where the YAML leaves a choice. Every reference is
// registry/repository@sha256:digest.
type Options struct {
	ToolImage      string // takes the place of manifest.Placeholder; empty: must not occur
	TaskBundle     string // holds the tasks that pipelines refer to by name; empty: the namespace does
	PipelineBundle string // holds the pipelines that runs refer to by name; empty: the namespace does
	Namespace      string // of all objects that have one; empty: as written
}

// Objects renders objects and checks the result as an API server would. The given
// ones are not changed.
func Objects(ctx context.Context, d *manifest.Decoder, objects []manifest.Object, o Options) ([]manifest.Object, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	accounts := map[string]bool{}
	for _, object := range objects {
		accounts[object.Name] = accounts[object.Name] || object.Kind.Kind == "ServiceAccount"
	}
	var out []manifest.Object
	var problems manifest.Problems
	for _, object := range objects {
		rendered, problem, err := o.object(d, object, accounts)
		if err != nil {
			return nil, err
		}
		problems = append(problems, problem...)
		out = append(out, rendered)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	if err := manifest.Validate(ctx, out...); err != nil {
		return nil, fmt.Errorf("rendered: %w", err)
	}
	if err := manifest.CheckImages(false, out...); err != nil {
		return nil, fmt.Errorf("rendered: %w", err)
	}
	return out, nil
}

func (o Options) check() error {
	for _, r := range []struct{ what, ref string }{{"tool image", o.ToolImage}, {"task bundle", o.TaskBundle}, {"pipeline bundle", o.PipelineBundle}} {
		if r.ref == "" {
			continue
		}
		if _, err := name.NewDigest(r.ref, name.StrictValidation); err != nil {
			return exitcode.Errorf(exitcode.Usage, "%s %q: want registry/repository@sha256:digest", r.what, r.ref)
		}
	}
	return nil
}

func (o Options) object(d *manifest.Decoder, in manifest.Object, accounts map[string]bool) (manifest.Object, manifest.Problems, error) {
	var tree map[string]any
	dec := json.NewDecoder(bytes.NewReader(in.JSON))
	dec.UseNumber() // numbers stay as they were written
	if err := dec.Decode(&tree); err != nil {
		return in, nil, fmt.Errorf("%s: %s: %w", in.File, in, err)
	}

	if o.ToolImage != "" {
		replaceImages(tree, o.ToolImage)
	}
	var problems manifest.Problems
	for _, path := range placeholders("", tree) {
		message := "holds the placeholder " + manifest.Placeholder + ", which only an image may hold"
		if o.ToolImage == "" {
			message = "holds the placeholder " + manifest.Placeholder + ": name the tool image by digest"
		}
		problems = append(problems, in.At(path, message))
	}
	if len(problems) > 0 {
		return in, problems, nil
	}
	o.references(in.Kind.Kind, tree)
	o.namespace(in.Kind.Kind, tree, accounts)

	data, err := marshal(tree)
	if err != nil {
		return in, nil, fmt.Errorf("%s: %s: %w", in.File, in, err)
	}
	objects, err := d.Decode(in.File, data)
	if err != nil {
		return in, nil, fmt.Errorf("rendered: %w", err)
	}
	out := objects[0]
	out.Document = in.Document
	return out, nil, nil
}

// marshal writes JSON with sorted keys and without the escapes for browsers.
func marshal(tree any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(tree); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(buf.Bytes()), nil
}

// YAML writes objects as one stream of documents, keys sorted.
func YAML(objects []manifest.Object) ([]byte, error) {
	var out bytes.Buffer
	for _, o := range objects {
		text, err := yaml.JSONToYAML(o.JSON)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", o.File, o, err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes(), nil
}

// JSON writes objects as one list that kubectl takes.
func JSON(objects []manifest.Object) ([]byte, error) {
	items := make([]json.RawMessage, len(objects))
	for i, o := range objects {
		items[i] = o.JSON
	}
	return marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}
