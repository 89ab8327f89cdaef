package tasks

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/cli"
	"github.com/trainyard/trainyard/internal/exitcode"
)

// stages are the tasks that run the trainer.
func stages() []string {
	return []string{"prepare", "train", "evaluate", "gate", "promote", "sample", "report"}
}

func taskOf(t *testing.T, name string) *pipelinev1.Task {
	t.Helper()
	b, err := os.ReadFile(name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	task := &pipelinev1.Task{}
	if err := yaml.UnmarshalStrict(b, task); err != nil {
		t.Fatal(err)
	}
	return task
}

// buildTrainer compiles the trainer, which is a module of its own.
func buildTrainer(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "trainer")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", program, "./cmd/trainer")
	cmd.Dir = filepath.Join("..", "trainer")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

var (
	param     = regexp.MustCompile(`\$\(params\.([a-z-]+)(\[\*\])?\)`)
	workspace = regexp.MustCompile(`\$\(workspaces\.([a-z-]+)\.path\)`)
)

// step is the one step of a task as Tekton would run it: its arguments and variables
// with parameters' defaults, the given ones, and paths in their place.
type step struct {
	args []string
	env  []string
}

func render(t *testing.T, task *pipelinev1.Task, given map[string]string, volume, results string) step {
	t.Helper()
	if len(task.Spec.Steps) != 1 {
		t.Fatalf("%s has %d steps", task.Name, len(task.Spec.Steps))
	}
	value := func(name string) string {
		if v, ok := given[name]; ok {
			return v
		}
		for _, p := range task.Spec.Params {
			if p.Name == name && p.Default != nil {
				return p.Default.StringVal
			}
		}
		t.Fatalf("%s: parameter %s has neither value nor default", task.Name, name)
		return ""
	}
	replace := func(s string) string {
		s = param.ReplaceAllStringFunc(s, func(m string) string { return value(param.FindStringSubmatch(m)[1]) })
		return workspace.ReplaceAllStringFunc(s, func(m string) string {
			if workspace.FindStringSubmatch(m)[1] != "shared" {
				return "" // optional, and not bound
			}
			return volume
		})
	}
	var out step
	for _, a := range task.Spec.Steps[0].Args {
		if strings.HasSuffix(a, "[*])") {
			continue // an array that is empty
		}
		out.args = append(out.args, strings.ReplaceAll(replace(a), "/tekton/results", results))
	}
	for _, e := range task.Spec.Steps[0].Env {
		if e.ValueFrom == nil {
			out.env = append(out.env, e.Name+"="+replace(e.Value))
		}
	}
	return out
}

// Every flag and variable that a task sets is one of the trainer's.
func TestStagesSetOnlyWhatTheTrainerKnows(t *testing.T) {
	trainer := buildTrainer(t)
	// What only a platform knows, and what is no flag of each subcommand.
	known := []string{"TRAINER_IMAGE", "TRAINER_COMMIT", "TRAINER_SOURCE", "TRAINER_OWNER", "TRAINER_TAKE_OVER"}
	for _, name := range stages() {
		help, err := exec.Command(trainer, name, "--help").Output()
		if err != nil {
			t.Fatal(err)
		}
		has := func(flag string) bool {
			return regexp.MustCompile(`(?m)^ +--` + regexp.QuoteMeta(flag) + `\b`).Match(help)
		}
		for _, s := range taskOf(t, name).Spec.Steps {
			if s.Args[0] != name {
				t.Errorf("%s runs the subcommand %s", name, s.Args[0])
			}
			for _, a := range s.Args[1:] {
				if flag, _, _ := strings.Cut(strings.TrimPrefix(a, "--"), "="); strings.HasPrefix(a, "--") && !has(flag) {
					t.Errorf("%s: the trainer has no flag --%s", name, flag)
				}
			}
			for _, e := range s.Env {
				flag := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(e.Name, "TRAINER_")), "_", "-")
				if strings.HasPrefix(e.Name, "TRAINER_") && !slices.Contains(known, e.Name) && !has(flag) {
					t.Errorf("%s: %s is the variable of no flag", name, e.Name)
				}
			}
		}
	}
}

// Every parameter is used, so that none promises what it does not do.
func TestStagesUseEveryParameter(t *testing.T) {
	for _, name := range append(stages(), "fetch-source") {
		task := taskOf(t, name)
		text, err := json.Marshal([]any{task.Spec.Steps, task.Spec.Volumes})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range task.Spec.Params {
			if !strings.Contains(string(text), "$(params."+p.Name+")") && !strings.Contains(string(text), "$(params."+p.Name+"[*])") {
				t.Errorf("%s: parameter %s is not used", name, p.Name)
			}
		}
	}
}

// I-48, with the task's own arguments and the real program: a stage that fails before it
// began leaves every declared result, and an object as an object with its keys, since
// Tekton would tell of a wrong type in place of the cause.
func TestStagesWriteEveryDeclaredResultWhenTheyFail(t *testing.T) {
	trainer := buildTrainer(t)
	given := map[string]string{
		"run": "missing", "image": "registry.example/trainer@sha256:" + strings.Repeat("0", 64), "owner": "ns/run",
		"corpus": "store:none", "status": "prepare=Failed,train=None", "store": "file:///none/at/all",
	}
	for _, name := range stages() {
		task, results := taskOf(t, name), t.TempDir()
		s := render(t, task, given, t.TempDir(), results)
		cmd := exec.Command(trainer, s.args...)
		cmd.Env = s.env
		out, err := cmd.CombinedOutput()
		if failed := err != nil; failed == (name == "report") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		if strings.Contains(string(out), "unknown flag") || strings.Contains(string(out), "invalid argument") {
			t.Errorf("%s: %s", name, out)
		}
		checkResults(t, task, results)
	}
}

func checkResults(t *testing.T, task *pipelinev1.Task, dir string) {
	t.Helper()
	for _, r := range task.Spec.Results {
		b, err := os.ReadFile(filepath.Join(dir, r.Name))
		if err != nil {
			t.Errorf("%s: %v", task.Name, err)
			continue
		}
		if r.Type != pipelinev1.ResultsTypeObject {
			continue
		}
		var object map[string]string
		if err := json.Unmarshal(b, &object); err != nil || len(object) != len(r.Properties) {
			t.Errorf("%s: result %s is %q, want an object with %d keys", task.Name, r.Name, b, len(r.Properties))
		}
	}
}

func TestFetchSourceWritesEveryDeclaredResult(t *testing.T) {
	task := taskOf(t, "fetch-source")
	for name, c := range map[string]struct {
		url  string
		code int
	}{"nothing there": {"", exitcode.BadInput}, "an address that is refused": {"ext::sh -c id", exitcode.BadInput}} {
		results := t.TempDir()
		s := render(t, task, map[string]string{"url": c.url}, t.TempDir(), results)
		streams := cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Getenv: func(string) string { return "" }, Now: time.Now}
		if code := cli.Run(t.Context(), streams, s.args); code != c.code {
			t.Errorf("%s: exit code %d, want %d", name, code, c.code)
		}
		checkResults(t, task, results)
	}
}

// Values of people and webhooks reach programs as one argument each, whatever is in
// them: as a value after =, never where a flag could be.
func TestFetchSourceTakesNoParameterForAFlag(t *testing.T) {
	for _, a := range taskOf(t, "fetch-source").Spec.Steps[0].Args {
		if i := strings.Index(a, "$("); i >= 0 && (!strings.HasPrefix(a, "--") || !strings.Contains(a[:i], "=")) {
			t.Errorf("argument %q could become a flag", a)
		}
	}
}
