package manifest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/exitcode"
)

const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

const task = `apiVersion: tekton.dev/v1
kind: Task
metadata:
  name: demo
spec:
  params:
    - name: image
      description: The image.
  steps:
    - name: run
      image: $(params.image)
      command: [/bin/run]
`

func decoder(t testing.TB) *Decoder {
	t.Helper()
	d, err := NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// decode fails the test on an error.
func decode(t *testing.T, text string) []Object {
	t.Helper()
	objects, err := decoder(t).Decode("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// wantOneLine checks that err is bad input, told in one line with want in it.
func wantOneLine(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("error %v, want %q in it", err, want)
	}
	if strings.ContainsAny(err.Error(), "\n\r\x1b") {
		t.Errorf("error %q is not one plain line", err)
	}
	if code := exitcode.Of(err); code != exitcode.BadInput {
		t.Errorf("exit code %d, want %d", code, exitcode.BadInput)
	}
}

func TestSplitFollowsTheMarkers(t *testing.T) {
	for name, tc := range map[string]struct {
		in   string
		want []string
	}{
		"nothing":                      {"", nil},
		"comments only":                {"# a\n\n# b\n", nil},
		"one without marker":           {"a: 1\n", []string{"a: 1\n"}},
		"one after a marker":           {"---\na: 1\n", []string{"\na: 1\n"}},
		"two":                          {"a: 1\n---\nb: 2\n", []string{"a: 1\n", "\nb: 2\n"}},
		"empty ones between":           {"---\n---\n# c\n---\na: 1\n---\n", []string{"\na: 1\n"}},
		"windows line ends":            {"a: 1\r\n---\r\nb: 2\r\n", []string{"a: 1\r\n", "\r\nb: 2\r\n"}},
		"comment behind the marker":    {"--- # c\na: 1\n", []string{" # c\na: 1\n"}},
		"content behind the marker":    {"--- {a: 1}\n--- {b: 2}\n", []string{" {a: 1}\n", " {b: 2}\n"}},
		"end marker hides nothing":     {"a: 1\n...\nb: 2\n", []string{"a: 1\n", "\nb: 2\n"}},
		"byte order mark":              {"\xef\xbb\xbfa: 1\n", []string{"a: 1\n"}},
		"dashes that are no marker":    {"a: |\n  ---\nb: -----\n----\n", []string{"a: |\n  ---\nb: -----\n----\n"}},
		"marker within a block scalar": {"a: |\n---\nb: 2\n", []string{"a: |\n", "\nb: 2\n"}},
		"no line end at the end":       {"a: 1\n---", []string{"a: 1\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range split([]byte(tc.in)) {
				got = append(got, string(d))
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestDecodeReadsSeveralDocuments(t *testing.T) {
	objects := decode(t, "# header\n---\n"+task+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: c-}\n")
	var got []string
	for _, o := range objects {
		got = append(got, o.String())
	}
	if d := cmp.Diff([]string{"Task demo", "ConfigMap c-"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if objects[1].Document != 2 || objects[1].File != "f.yaml" {
		t.Errorf("second object is %s, document %d", objects[1].File, objects[1].Document)
	}
	if want := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"c-"}}`; string(objects[1].JSON) != want {
		t.Errorf("JSON %s, want %s", objects[1].JSON, want)
	}
}

func TestDecodeRefusesWhatAnAPIServerWouldDrop(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"unknown field":         {strings.Replace(task, "command:", "comand:", 1), "f.yaml: document 1: Task demo: spec.steps[0].comand: unknown field"},
		"wrong case":            {strings.Replace(task, "command:", "Command:", 1), "spec.steps[0].Command: unknown field"},
		"field given twice":     {task + "      command: [/bin/other]\n", `key "command" already set`},
		"top level twice":       {task + "kind: Task\n", `key "kind" already set`},
		"in a second document":  {task + "---\n" + strings.Replace(task, "spec:", "spce:", 1), "f.yaml: document 2: Task demo: spce: unknown field"},
		"hidden by ...":         {task + "...\n" + strings.Replace(task, "spec:", "spce:", 1), "document 2: Task demo: spce: unknown field"},
		"wrong type":            {strings.Replace(task, "[/bin/run]", "/bin/run", 1), "Task demo"},
		"no kind":               {"apiVersion: v1\nmetadata: {name: a}\n", "document 1: a: kind: missing"},
		"no apiVersion":         {"kind: Task\nmetadata: {name: a}\n", "Task a: apiVersion: missing"},
		"no name":               {"apiVersion: v1\nkind: ConfigMap\n", "metadata.name: missing"},
		"unknown kind":          {"apiVersion: v1\nkind: Nonsense\nmetadata: {name: a}\n", "no kind Nonsense in v1 is known"},
		"kind in another group": {strings.Replace(task, "tekton.dev/v1", "tekton.dev/v1alpha1", 1), "it is in tekton.dev/v1, tekton.dev/v1beta1"},
		"list":                  {"apiVersion: v1\nkind: ConfigMapList\nitems: []\nmetadata: {}\n", "a list is not taken"},
		"not a map":             {"- a\n- b\n", "not an object"},
		"text":                  {"hello\n", "not an object"},
		"broken YAML":           {"a: [1\n", "f.yaml: document 1: yaml: line"},
		"tab":                   {"a:\n\tb: 1\n", "yaml: line"},
		"nothing":               {"# only a comment\n", "f.yaml: no document in it"},
		"control characters":    {"a: \"x\n\x1b[31m\"\n", "control characters"},
		"HTML":                  {"<!DOCTYPE html>\n<html><body>\n", "f.yaml: document 1"},
		"metadata not a map":    {"apiVersion: v1\nkind: ConfigMap\nmetadata: 3\n", "not an object with apiVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decoder(t).Decode("f.yaml", []byte(tc.in))
			wantOneLine(t, err, tc.want)
		})
	}
}

func TestDecodeListsEveryProblem(t *testing.T) {
	_, err := decoder(t).Decode("f.yaml", []byte(strings.Replace(task, "command:", "comand:", 1)+"      imagee: x\n---\nhello\n"))
	var problems Problems
	if !errors.As(err, &problems) || len(problems) != 3 {
		t.Fatalf("error %v, want three problems", err)
	}
	wantOneLine(t, err, "; f.yaml: document 2: ")
}

func TestValidateRunsTektonsOwnChecks(t *testing.T) {
	pipeline := "apiVersion: tekton.dev/v1\nkind: Pipeline\nmetadata: {name: p}\nspec:\n  tasks:\n    - name: a\n      taskRef: {name: t}\n"
	for name, tc := range map[string]struct{ in, want string }{
		"task without steps":    {"apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: a}\nspec: {}\n", "f.yaml: document 1: Task a: spec.steps: missing field(s)"},
		"undeclared parameter":  {strings.Replace(task, "[/bin/run]", "[$(params.other)]", 1), `non-existent variable`},
		"unknown task":          {pipeline + "      runAfter: [nobody]\n", "nobody"},
		"name no DNS name":      {strings.Replace(task, "name: demo", "name: Demo_1", 1), "metadata.name"},
		"label no label":        {strings.Replace(task, "name: demo", "name: demo\n  labels: {a: \"b c\"}", 1), "metadata.labels"},
		"annotation no name":    {strings.Replace(task, "name: demo", "name: demo\n  annotations: {\"a b\": c}", 1), "metadata.annotations"},
		"namespace no label":    {"apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: A}\n", "metadata.namespace"},
		"feature that is off":   {strings.Replace(task, "description: The image.", "description: The image.\n      enum: [a, b]", 1), "enable-param-enum"},
		"retries and onError":   {pipeline + "      retries: 1\n      onError: continue\n", "PipelineTask OnError cannot be set to \"continue\" when Retries is greater than 0"},
		"trigger parameter":     {triggerTemplate("$(tt.params.other)"), "undeclared param"},
		"run of a trigger":      {strings.Replace(triggerTemplate("$(tt.params.revision)"), "pipelineRef: {name: p}", "params: []", 1), "spec.resourcetemplates[0]"},
		"generateName no name":  {"apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: A_b-}\n", "metadata.generateName"},
		"role with a bad name":  {"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a/b}\n", "metadata.name"},
		"listener without text": {"apiVersion: triggers.tekton.dev/v1beta1\nkind: EventListener\nmetadata: {name: a}\nspec:\n  triggers:\n    - bindings: [{ref: b}]\n", "template"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Validate(t.Context(), decode(t, tc.in)...)
			wantOneLine(t, err, tc.want)
		})
	}
}

func triggerTemplate(revision string) string {
	return `apiVersion: triggers.tekton.dev/v1beta1
kind: TriggerTemplate
metadata: {name: t}
spec:
  params: [{name: revision}]
  resourcetemplates:
    - apiVersion: tekton.dev/v1
      kind: PipelineRun
      metadata: {name: train-` + revision + `}
      spec:
        pipelineRef: {name: p}
`
}

func TestValidateTakesWhatIsRight(t *testing.T) {
	for name, in := range map[string]string{
		"task":                      task,
		"run with a generated name": "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {generateName: train-}\nspec: {pipelineRef: {name: p}}\n",
		"role with a colon":         "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: \"trainyard:build\"}\n",
		"trigger template":          triggerTemplate("$(tt.params.revision)"),
		"kinds of a binding":        "apiVersion: triggers.tekton.dev/v1beta1\nkind: Trigger\nmetadata: {name: a}\nspec: {bindings: [{ref: b}], template: {ref: t}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			objects := decode(t, in)
			before := objects[0].Typed.DeepCopyObject()
			if err := Validate(t.Context(), objects...); err != nil {
				t.Error(err)
			}
			if d := cmp.Diff(before, objects[0].Typed); d != "" {
				t.Errorf("validation changed the object:\n%s", d)
			}
		})
	}
}

func TestUnknownFieldOfATriggersRunIsFound(t *testing.T) {
	in := strings.Replace(triggerTemplate("$(tt.params.revision)"), "pipelineRef:", "pipelineReff:", 1)
	_, err := decoder(t).Decode("f.yaml", []byte(in))
	wantOneLine(t, err, "f.yaml: document 1: TriggerTemplate t: spec.resourcetemplates[0].spec.pipelineReff: unknown field")
}

func TestImagesArePinnedOrOneParameter(t *testing.T) {
	withImage := func(image string) string { return strings.Replace(task, "$(params.image)", image, 1) }
	withDefault := func(value string) string {
		return strings.Replace(task, "description: The image.", "description: The image.\n      default: "+value, 1)
	}
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: a, image: \"" + "example.com/app" + digest + "\"}]\n"
	embedded := `apiVersion: tekton.dev/v1
kind: Pipeline
metadata: {name: p}
spec:
  params: [{name: image, description: The image.}]
  tasks:
    - name: a
      taskSpec:
        steps: [{image: $(params.image), command: [/a]}]
  finally:
    - name: b
      taskSpec:
        sidecars: [{name: s, image: "example.com/side` + digest + `"}]
        steps: [{image: "example.com/bee` + digest + `", command: [/b]}]
`
	for name, tc := range map[string]struct {
		in          string
		placeholder bool
		want        string // empty: taken
	}{
		"parameter":                      {task, false, ""},
		"digest":                         {withImage("example.com/app" + digest), false, ""},
		"tag and digest":                 {withImage("example.com/app:v1" + digest), false, ""},
		"host with a port":               {withImage("10.0.0.1:5000/app" + digest), false, ""},
		"placeholder before rendering":   {withImage(Placeholder), true, ""},
		"placeholder after rendering":    {withImage(Placeholder), false, "spec.steps[0].image: ghcr.io/trainyard/yard is a placeholder"},
		"placeholder with a tag":         {withImage(Placeholder + ":v1"), true, "is not pinned"},
		"tag":                            {withImage("example.com/app:v1"), true, `image "example.com/app:v1" is not pinned`},
		"no registry":                    {withImage("app" + digest), true, "is not pinned"},
		"short digest":                   {withImage("example.com/app@sha256:0123"), true, "is not pinned"},
		"nothing":                        {withImage("''"), true, ""}, // Tekton's validation has a word on that
		"parameter and text":             {withImage("example.com/app:$(params.image)"), true, "is not pinned"},
		"digest by parameter":            {withImage("example.com/app@$(params.image)"), true, "is not pinned"},
		"two parameters":                 {withImage("$(params.image)$(params.image)"), true, "is not pinned"},
		"undeclared parameter":           {withImage("$(params.other)"), true, "parameter other is not declared"},
		"parameter without description":  {strings.Replace(task, "      description: The image.\n", "", 1), true, "parameter image is an image without a description"},
		"parameter that is a list":       {strings.Replace(task, "description: The image.", "description: The image.\n      type: array", 1), true, "of type array"},
		"pinned default":                 {withDefault("example.com/app" + digest), true, ""},
		"default with a tag":             {withDefault("example.com/app:latest"), true, "default of parameter image: image"},
		"empty default":                  {withDefault(`""`), true, "default of parameter image: image"},
		"placeholder as default":         {withDefault(Placeholder), true, "default of parameter image: image"},
		"step template":                  {task + "  stepTemplate: {image: busybox}\n", true, "spec.stepTemplate.image"},
		"sidecar":                        {task + "  sidecars: [{name: s, image: busybox}]\n", true, "spec.sidecars[0].image"},
		"image volume":                   {task + "  volumes: [{name: v, image: {reference: busybox}}]\n", true, "spec.volumes[0].image.reference"},
		"embedded tasks":                 {embedded, true, ""},
		"embedded task in finally":       {strings.Replace(embedded, "example.com/bee"+digest, "busybox", 1), true, "spec.finally[0].taskSpec.steps[0].image"},
		"embedded task's sidecar":        {strings.Replace(embedded, "example.com/side"+digest, "busybox", 1), true, "spec.finally[0].taskSpec.sidecars[0].image"},
		"embedded task of a run":         {"apiVersion: tekton.dev/v1\nkind: TaskRun\nmetadata: {name: a}\nspec: {taskSpec: {steps: [{image: busybox, command: [a]}]}}\n", true, "spec.taskSpec.steps[0].image"},
		"pipeline within a run":          {"apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {name: a}\nspec: {pipelineSpec: {tasks: [{name: t, taskSpec: {steps: [{image: busybox, command: [a]}]}}]}}\n", true, "spec.pipelineSpec.tasks[0].taskSpec.steps[0].image"},
		"step action":                    {"apiVersion: tekton.dev/v1beta1\nkind: StepAction\nmetadata: {name: a}\nspec: {image: busybox, command: [a]}\n", true, "StepAction a: spec.image"},
		"pod":                            {pod, false, ""},
		"pod with a tag":                 {strings.Replace(pod, digest, ":v1", 1), true, "spec.containers[0].image"},
		"pod with a parameter":           {strings.Replace(pod, "example.com/app"+digest, "$(params.image)", 1), true, "parameter image is not declared"},
		"deployment":                     {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {selector: {}, template: {spec: {initContainers: [{name: a, image: busybox}], containers: []}}}\n", true, "spec.template.spec.initContainers[0].image"},
		"cron job":                       {"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec: {schedule: x, jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: busybox}]}}}}}\n", true, "spec.jobTemplate.spec.template.spec.containers[0].image"},
		"run of a trigger":               {strings.Replace(triggerTemplate("$(tt.params.revision)"), "pipelineRef: {name: p}", "pipelineSpec: {tasks: [{name: t, taskSpec: {steps: [{image: busybox, command: [a]}]}}]}", 1), true, "spec.resourcetemplates[0].spec.pipelineSpec.tasks[0].taskSpec.steps[0].image"},
		"replication controller of none": {"apiVersion: v1\nkind: ReplicationController\nmetadata: {name: a}\nspec: {}\n", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckImages(tc.placeholder, decode(t, tc.in)...)
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantOneLine(t, err, tc.want)
		})
	}
}

func TestReadTakesFilesAndFolders(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.yaml":             task,
		"a.yml":              strings.Replace(task, "demo", "other", 1),
		"kustomization.yaml": "resources: [b.yaml]\n",
		"notes.txt":          "not read",
		".hidden.yaml":       "not read",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "c.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	objects, err := decoder(t).Read(dir, filepath.Join(dir, "b.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objects {
		got = append(got, filepath.Base(o.File)+" "+o.Name)
	}
	if d := cmp.Diff([]string{"a.yml other", "b.yaml demo", "b.yaml demo"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestReadNamesWhatIsMissing(t *testing.T) {
	empty := t.TempDir()
	_, err := decoder(t).Read(empty)
	wantOneLine(t, err, "folder "+empty+" has no manifest")
	_, err = decoder(t).Read(filepath.Join(empty, "absent"))
	wantOneLine(t, err, "no such file")

	big := filepath.Join(empty, "big.yaml")
	f, err := os.Create(big)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(maxFile + 1); err != nil {
		t.Fatal(err)
	}
	f.Close()
	_, err = decoder(t).Read(big)
	wantOneLine(t, err, "too many for a manifest")
}

// What Tekton tests itself with is what has to pass here.
func TestTektonsOwnExamplesPass(t *testing.T) {
	for module, tc := range map[string]struct {
		dirs []string
		// Their own slips, which an API server drops silently or refuses.
		known []string
		least int
	}{
		"github.com/tektoncd/pipeline": {
			dirs:  []string{"examples/v1/taskruns", "examples/v1/pipelineruns", "examples/v1/pipelineruns/beta"},
			known: []string{"beta/isolated-workspaces.yaml", "pipelineruns/stepaction-params.yaml"},
			least: 200,
		},
		"github.com/tektoncd/triggers": {dirs: []string{"examples/v1beta1/github", "examples/v1beta1/eventlisteners", "examples/v1beta1/trigger-ref"}, least: 20},
	} {
		t.Run(module, func(t *testing.T) {
			root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, dir := range tc.dirs {
				files, err := Files(filepath.Join(strings.TrimSpace(string(root)), dir))
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range files {
					objects, err := decoder(t).Read(f)
					if err == nil {
						err = Validate(t.Context(), objects...)
					}
					n += len(objects)
					if known := slices.ContainsFunc(tc.known, func(s string) bool { return strings.HasSuffix(f, "/"+s) }); (err != nil) != known {
						t.Errorf("%s: error %v, known %v", f, err, known)
					}
				}
			}
			if n < tc.least {
				t.Errorf("only %d objects, want %d", n, tc.least)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(task))
	f.Add([]byte(triggerTemplate("$(tt.params.revision)") + "---\n" + task))
	f.Add([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: &a {b: \"c\"}\nbinaryData: *a\n"))
	d := decoder(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, err := d.Decode("f.yaml", data)
		if err != nil && strings.ContainsAny(err.Error(), "\n\r\x1b") {
			t.Errorf("error is not one plain line: %q", err)
		}
		if err == nil && len(objects) == 0 {
			t.Error("neither objects nor an error")
		}
		_ = Validate(t.Context(), objects...)
		_ = CheckImages(true, objects...)
	})
}
