package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/manifest"
)

const (
	hex    = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	tool   = "registry.example:5000/trainyard/yard" + hex
	bundle = "registry.example:5000/trainyard/tasks" + hex
	runs   = "registry.example:5000/trainyard/pipelines" + hex
)

const task = `apiVersion: tekton.dev/v1
kind: Task
metadata:
  name: demo
spec:
  description: "a < b & c"
  params:
    - name: image
      description: The image.
  sidecars:
    - name: side
      image: ghcr.io/trainyard/yard
      command: [/usr/local/bin/yard]
  steps:
    - name: first
      image: ghcr.io/trainyard/yard # a comment
      command: [/usr/local/bin/yard]
    - name: second
      image: $(params.image)
      command: [/bin/run]
      computeResources:
        requests: {memory: 64Mi, cpu: 0.5}
`

const pipeline = `apiVersion: tekton.dev/v1
kind: Pipeline
metadata:
  name: p
spec:
  tasks:
    - name: a
      taskRef:
        name: demo
    - name: b
      taskRef:
        name: demo
        kind: Task
    - name: c
      taskRef:
        apiVersion: example.dev/v1
        kind: Custom
        name: other
    - name: d
      taskRef:
        resolver: git
        params:
          - name: name
            value: demo
    - name: e
      taskSpec:
        steps:
          - name: s
            image: ghcr.io/trainyard/yard
            command: [/usr/local/bin/yard]
  finally:
    - name: f
      taskRef:
        name: demo
`

func render(t *testing.T, text string, o Options) ([]manifest.Object, error) {
	t.Helper()
	d, err := manifest.NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	in, err := d.Decode("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var before [][]byte
	for _, object := range in {
		before = append(before, bytes.Clone(object.JSON))
	}
	out, err := Objects(t.Context(), d, in, o)
	for i := range in {
		if !bytes.Equal(before[i], in[i].JSON) {
			t.Errorf("rendering changed its input:\n%s", in[i].JSON)
		}
	}
	return out, err
}

func mustRender(t *testing.T, text string, o Options) []manifest.Object {
	t.Helper()
	out, err := render(t, text, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestToolImageTakesThePlaceOfThePlaceholder(t *testing.T) {
	spec := mustRender(t, task, Options{ToolImage: tool})[0].Typed.(*pipelinev1.Task).Spec
	got := []string{spec.Sidecars[0].Image, spec.Steps[0].Image, spec.Steps[1].Image}
	if d := cmp.Diff([]string{tool, tool, "$(params.image)"}, got); d != "" {
		t.Errorf("images (-want +got):\n%s", d)
	}
	embedded := mustRender(t, pipeline, Options{ToolImage: tool})[0].Typed.(*pipelinev1.Pipeline).Spec.Tasks[4]
	if got := embedded.TaskSpec.Steps[0].Image; got != tool {
		t.Errorf("embedded task has image %s", got)
	}
}

func TestReferencesByNameGoToTheBundle(t *testing.T) {
	spec := mustRender(t, pipeline, Options{ToolImage: tool, TaskBundle: bundle})[0].Typed.(*pipelinev1.Pipeline).Spec
	byBundle := &pipelinev1.TaskRef{ResolverRef: pipelinev1.ResolverRef{Resolver: "bundles", Params: pipelinev1.Params{
		{Name: "bundle", Value: *pipelinev1.NewStructuredValues(bundle)},
		{Name: "name", Value: *pipelinev1.NewStructuredValues("demo")},
		{Name: "kind", Value: *pipelinev1.NewStructuredValues("task")},
	}}}
	for i, want := range []*pipelinev1.TaskRef{
		byBundle,
		byBundle,
		{APIVersion: "example.dev/v1", Kind: "Custom", Name: "other"},
		{ResolverRef: pipelinev1.ResolverRef{Resolver: "git", Params: pipelinev1.Params{{Name: "name", Value: *pipelinev1.NewStructuredValues("demo")}}}},
		nil,
	} {
		if d := cmp.Diff(want, spec.Tasks[i].TaskRef); d != "" {
			t.Errorf("task %s (-want +got):\n%s", spec.Tasks[i].Name, d)
		}
	}
	if d := cmp.Diff(byBundle, spec.Finally[0].TaskRef); d != "" {
		t.Errorf("finally (-want +got):\n%s", d)
	}
}

func TestReferencesStayByNameWithoutABundle(t *testing.T) {
	spec := mustRender(t, pipeline, Options{ToolImage: tool})[0].Typed.(*pipelinev1.Pipeline).Spec
	if d := cmp.Diff(&pipelinev1.TaskRef{Name: "demo"}, spec.Tasks[0].TaskRef); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestRunsReferToBundles(t *testing.T) {
	const text = `apiVersion: tekton.dev/v1
kind: PipelineRun
metadata: {generateName: r-}
spec:
  pipelineRef: {name: p}
---
apiVersion: tekton.dev/v1
kind: TaskRun
metadata: {name: t}
spec:
  taskRef: {name: demo}
---
apiVersion: triggers.tekton.dev/v1beta1
kind: TriggerTemplate
metadata: {name: tt}
spec:
  params: [{name: sha}]
  resourcetemplates:
    - apiVersion: tekton.dev/v1
      kind: PipelineRun
      metadata: {name: r-$(tt.params.sha)}
      spec: {pipelineRef: {name: p}}
`
	out := mustRender(t, text, Options{TaskBundle: bundle, PipelineBundle: runs})
	type ref struct{ Resolver, Bundle, Name, Kind string }
	read := func(r pipelinev1.ResolverRef) ref {
		values := map[string]string{}
		for _, p := range r.Params {
			values[p.Name] = p.Value.StringVal
		}
		return ref{string(r.Resolver), values["bundle"], values["name"], values["kind"]}
	}
	got := []ref{
		read(out[0].Typed.(*pipelinev1.PipelineRun).Spec.PipelineRef.ResolverRef),
		read(out[1].Typed.(*pipelinev1.TaskRun).Spec.TaskRef.ResolverRef),
		read(out[2].Nested[0].Typed.(*pipelinev1.PipelineRun).Spec.PipelineRef.ResolverRef),
	}
	want := []ref{{"bundles", runs, "p", "pipeline"}, {"bundles", bundle, "demo", "task"}, {"bundles", runs, "p", "pipeline"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !strings.Contains(string(out[2].JSON), "$(tt.params.sha)") {
		t.Errorf("the template lost its parameter: %s", out[2].JSON)
	}
}

func TestNamespaceMovesWhatHasOne(t *testing.T) {
	const text = `apiVersion: v1
kind: Namespace
metadata: {name: trainyard}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: ours}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}
subjects:
  - {kind: ServiceAccount, name: ours, namespace: trainyard}
  - {kind: ServiceAccount, name: theirs, namespace: elsewhere}
  - {kind: Group, name: ours, apiGroup: rbac.authorization.k8s.io}
`
	out := mustRender(t, text, Options{Namespace: "ml"})
	var got []string
	for _, o := range out {
		got = append(got, string(o.JSON))
	}
	want := []string{
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ml"}}`,
		`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"ours","namespace":"ml"}}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"b"},` +
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"},` +
			`"subjects":[{"kind":"ServiceAccount","name":"ours","namespace":"ml"},{"kind":"ServiceAccount","name":"theirs","namespace":"elsewhere"},{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"ours"}]}`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestRenderRefuses(t *testing.T) {
	withDefault := strings.Replace(task, "description: The image.", "description: The image.\n      default: ghcr.io/trainyard/yard", 1)
	for name, tc := range map[string]struct {
		in   string
		o    Options
		code int
		want string
	}{
		"placeholder without tool image": {task, Options{}, exitcode.BadInput, "f.yaml: document 1: Task demo: spec.sidecars[0].image: holds the placeholder ghcr.io/trainyard/yard: name the tool image"},
		"placeholder as a default":       {withDefault, Options{ToolImage: tool}, exitcode.BadInput, "spec.params[0].default: holds the placeholder"},
		"placeholder with a tag":         {strings.Replace(task, "yard # a comment", "yard:v1", 1), Options{ToolImage: tool}, exitcode.BadInput, "spec.steps[0].image: holds the placeholder"},
		"tool image by tag":              {task, Options{ToolImage: "registry.example/yard:v1"}, exitcode.Usage, `tool image "registry.example/yard:v1": want registry/repository@sha256:digest`},
		"bundle by tag":                  {pipeline, Options{ToolImage: tool, TaskBundle: "registry.example/tasks"}, exitcode.Usage, "task bundle"},
		"pipeline bundle by tag":         {pipeline, Options{ToolImage: tool, PipelineBundle: "registry.example/tasks"}, exitcode.Usage, "pipeline bundle"},
		"an unpinned image":              {strings.Replace(task, "$(params.image)", "busybox", 1), Options{ToolImage: tool}, exitcode.BadInput, `spec.steps[1].image: image "busybox" is not pinned`},
		"what Tekton refuses":            {strings.Replace(task, "[/bin/run]", "[$(params.none)]", 1), Options{ToolImage: tool}, exitcode.BadInput, "non-existent variable"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, tc.in, tc.o)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %v, want one line with %q", err, tc.want)
			}
			if code := exitcode.Of(err); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
		})
	}
}

func TestOutputIsTheSameEveryTime(t *testing.T) {
	o := Options{ToolImage: tool, TaskBundle: bundle}
	first, err := YAML(mustRender(t, task+"---\n"+pipeline, o))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := YAML(mustRender(t, task+"---\n"+pipeline, o))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, again) {
			t.Fatalf("first\n%s\nthen\n%s", first, again)
		}
	}
}

// Rendering what was rendered changes nothing: the output says all.
func TestOutputIsItsOwnInput(t *testing.T) {
	o := Options{ToolImage: tool, TaskBundle: bundle, PipelineBundle: runs, Namespace: "ml"}
	once, err := YAML(mustRender(t, task+"---\n"+pipeline, o))
	if err != nil {
		t.Fatal(err)
	}
	twice, err := YAML(mustRender(t, string(once), o))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(once), string(twice)); d != "" {
		t.Errorf("(-once +twice):\n%s", d)
	}
	if strings.Contains(string(once), "&lt;") || !strings.Contains(string(once), "a < b & c") {
		t.Errorf("text was escaped:\n%s", once)
	}
}

func TestJSONIsAListForKubectl(t *testing.T) {
	data, err := JSON(mustRender(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {big: \"9007199254740993\"}\n", Options{}))
	if err != nil {
		t.Fatal(err)
	}
	var list corev1.List
	if err := json.Unmarshal(data, &list); err != nil || list.Kind != "List" || len(list.Items) != 1 {
		t.Errorf("list %+v, error %v", list, err)
	}
}

func TestNumbersStayAsTheyAre(t *testing.T) {
	out := mustRender(t, strings.Replace(task, "cpu: 0.5", "cpu: 2", 1)+"  volumes: [{name: v, secret: {secretName: s, defaultMode: 0640}}]\n", Options{ToolImage: tool})
	if got := string(out[0].JSON); !strings.Contains(got, `"defaultMode":416`) || !strings.Contains(got, `"cpu":2`) {
		t.Errorf("numbers changed: %s", got)
	}
}
