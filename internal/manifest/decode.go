package manifest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	pipelinev1beta1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"
	triggersv1alpha1 "github.com/tektoncd/triggers/pkg/apis/triggers/v1alpha1"
	triggersv1beta1 "github.com/tektoncd/triggers/pkg/apis/triggers/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// maxFile bounds what is read of one file: etcd takes 1.5 MiB per object, and a
// file may hold many.
const maxFile = 32 << 20

// Object is one decoded document.
type Object struct {
	File     string
	Document int // from 1
	Kind     schema.GroupVersionKind
	Name     string         // metadata.name, or metadata.generateName
	Typed    runtime.Object // as written, without defaults
	JSON     []byte         // as written, with sorted keys
	Nested   []Object       // what a TriggerTemplate creates, see nested
}

// String names the object for messages: "Task train".
func (o Object) String() string { return strings.TrimSpace(o.Kind.Kind + " " + o.Name) }

// Meta returns the metadata of the object.
func (o Object) Meta() metav1.Object {
	m, ok := o.Typed.(metav1.Object)
	if !ok {
		return &metav1.ObjectMeta{}
	}
	return m
}

// Decoder turns YAML into typed objects. It is safe for use by several goroutines.
type Decoder struct {
	scheme *runtime.Scheme
	strict *serializer.Serializer
}

// NewDecoder returns a decoder for Kubernetes' own kinds, Tekton Pipelines, Tekton
// Triggers and OpenShift's Route.
func NewDecoder() (*Decoder, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kubernetes.AddToScheme,
		pipelinev1.AddToScheme, pipelinev1beta1.AddToScheme,
		triggersv1beta1.AddToScheme, triggersv1alpha1.AddToScheme,
		addRoute,
	} {
		if err := add(s); err != nil {
			return nil, fmt.Errorf("manifest: %w", err)
		}
	}
	return &Decoder{s, serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, s, s, serializer.SerializerOptions{Strict: true})}, nil
}

// Files lists what Read would read: files as they are given, and of a folder its
// .yaml and .yml files without those of kustomize, sorted.
func Files(paths ...string) ([]string, error) {
	var files []string
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, fmt.Errorf("read manifests: %w", err)
		}
		if !info.IsDir() {
			files = append(files, p)
			continue
		}
		entries, err := os.ReadDir(p)
		if err != nil {
			return nil, fmt.Errorf("read manifests: %w", err)
		}
		n := len(files)
		for _, e := range entries { // sorted by name
			if IsManifest(e.Name()) && !e.IsDir() {
				files = append(files, filepath.Join(p, e.Name()))
			}
		}
		if len(files) == n {
			return nil, exitcode.Errorf(exitcode.BadInput, "folder %s has no manifest: name a file or a folder with .yaml files", p)
		}
	}
	return files, nil
}

// IsManifest tells whether a file of this name holds Kubernetes objects.
func IsManifest(name string) bool {
	ext := filepath.Ext(name)
	return (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(strings.TrimSuffix(name, ext), "kustomiz") && !strings.HasPrefix(name, ".")
}

// Read decodes files, and the .yaml and .yml files of folders. The error lists all
// that cannot be decoded; it is nil, or what was read is incomplete.
func (d *Decoder) Read(paths ...string) ([]Object, error) {
	files, err := Files(paths...)
	if err != nil {
		return nil, err
	}
	var all []Object
	var problems Problems
	for _, f := range files {
		data, err := readFile(f)
		if err != nil {
			return nil, err
		}
		objects, p := d.decode(f, data)
		all = append(all, objects...)
		problems = append(problems, p...)
	}
	return all, problems.Err()
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	if info.Size() > maxFile {
		return nil, exitcode.Errorf(exitcode.BadInput, "%s: %d bytes are too many for a manifest, the limit is %d", path, info.Size(), maxFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	return data, nil
}

// Decode decodes the documents of one file, which is named for messages only.
func (d *Decoder) Decode(file string, data []byte) ([]Object, error) {
	objects, problems := d.decode(file, data)
	return objects, problems.Err()
}

func (d *Decoder) decode(file string, data []byte) ([]Object, Problems) {
	var objects []Object
	var problems Problems
	docs := split(data)
	for i, doc := range docs {
		o, problem := d.document(Object{File: file, Document: i + 1}, doc)
		if len(problem) > 0 {
			problems = append(problems, problem...)
			continue
		}
		objects = append(objects, o)
	}
	if len(docs) == 0 {
		problems = append(problems, Problem{File: file, Message: "no document in it"})
	}
	return objects, problems
}

func (d *Decoder) document(o Object, text []byte) (Object, Problems) {
	data, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return o, Problems{o.At("", strings.ReplaceAll(err.Error(), "error converting YAML to JSON: ", ""))}
	}
	var head struct {
		metav1.TypeMeta
		Metadata struct {
			Name         string `json:"name"`
			GenerateName string `json:"generateName"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return o, Problems{o.At("", "not an object with apiVersion, kind and metadata: "+err.Error())}
	}
	o.Kind = head.GroupVersionKind()
	o.Name, o.JSON = head.Metadata.Name, data
	if o.Name == "" {
		o.Name = head.Metadata.GenerateName
	}
	switch {
	case head.APIVersion == "":
		return o, Problems{o.At("apiVersion", "missing")}
	case head.Kind == "":
		return o, Problems{o.At("kind", "missing")}
	case !d.scheme.Recognizes(o.Kind):
		return o, Problems{o.At("kind", fmt.Sprintf("no kind %s in %s is known here%s", head.Kind, head.APIVersion, d.elsewhere(o.Kind)))}
	case strings.HasSuffix(head.Kind, "List"):
		return o, Problems{o.At("kind", "a list is not taken: write its objects as documents of their own")}
	case o.Name == "":
		return o, Problems{o.At("metadata.name", "missing")}
	}
	typed, _, err := d.strict.Decode(data, nil, nil)
	if err != nil {
		return o, o.decodeErrors(err)
	}
	o.Typed = typed
	return d.nested(o)
}

// templateParam matches what Triggers replaces in a template.
var templateParam = regexp.MustCompile(`\$\((tt\.params\.[^)]+|context\.eventID)\)`)

// nested decodes the objects that a TriggerTemplate creates, an "x" standing for
// each value that an event would give. So a value can stand where text is allowed,
// and nowhere else.
func (d *Decoder) nested(o Object) (Object, Problems) {
	t, ok := o.Typed.(*triggersv1beta1.TriggerTemplate)
	if !ok {
		return o, nil
	}
	var problems Problems
	for i, r := range t.Spec.ResourceTemplates {
		at := fmt.Sprintf("spec.resourcetemplates[%d]", i)
		inner, p := d.document(Object{File: o.File, Document: o.Document}, templateParam.ReplaceAll(r.Raw, []byte("x")))
		o.Nested = append(o.Nested, inner)
		problems = append(problems, o.within(at, p)...)
	}
	return o, problems
}

// within turns problems of a nested object into those of the object around it.
func (o Object) within(at string, inner Problems) Problems {
	var problems Problems
	for _, p := range inner {
		field := at
		if p.Field != "" {
			field += "." + p.Field
		}
		problems = append(problems, o.At(field, p.Message))
	}
	return problems
}

// elsewhere tells in which versions a kind of this name is known.
func (d *Decoder) elsewhere(want schema.GroupVersionKind) string {
	var found []string
	for k := range d.scheme.AllKnownTypes() {
		if k.Kind == want.Kind && k.Version != runtime.APIVersionInternal {
			found = append(found, k.GroupVersion().String())
		}
	}
	if len(found) == 0 {
		return ""
	}
	slices.Sort(found)
	return ", it is in " + strings.Join(found, ", ")
}

// decodeErrors splits what strict decoding found: each unknown field is a problem.
func (o Object) decodeErrors(err error) Problems {
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return Problems{o.At("", err.Error())}
	}
	var problems Problems
	for _, e := range strict.Errors() {
		text := e.Error()
		if what, field, ok := strings.Cut(text, " field \""); ok {
			problems = append(problems, o.At(strings.TrimSuffix(field, `"`), what+" field"))
			continue
		}
		problems = append(problems, o.At("", text))
	}
	return problems
}
