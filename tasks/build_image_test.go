package tasks

import (
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/cli"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/phase"
	"github.com/trainyard/trainyard/internal/plan"
)

func buildImage(t *testing.T) *pipelinev1.Task {
	t.Helper()
	b, err := os.ReadFile("build-image.yaml")
	if err != nil {
		t.Fatal(err)
	}
	task := &pipelinev1.Task{}
	if err := yaml.UnmarshalStrict(b, task); err != nil {
		t.Fatal(err)
	}
	return task
}

func mounts(s pipelinev1.Step) map[string]bool {
	m := map[string]bool{}
	for _, v := range s.VolumeMounts {
		m[v.Name] = v.ReadOnly
	}
	return m
}

// The steps are plan, the phases in the lifecycle's order, and pin. The phases run in
// the builder and only when there is something to build.
func TestBuildImageSteps(t *testing.T) {
	task := buildImage(t)
	names := append(append([]string{"plan"}, phase.Names()...), "pin")
	if len(task.Spec.Steps) != len(names) {
		t.Fatalf("%d steps, want %v", len(task.Spec.Steps), names)
	}
	for i, s := range task.Spec.Steps {
		if s.Name != names[i] {
			t.Fatalf("step %d is %s, want %s", i, s.Name, names[i])
		}
		if s.Script != "" || len(s.Command) != 1 {
			t.Errorf("%s: a script, or no single command", s.Name)
		}
		if i == 0 || i == len(names)-1 {
			if s.Image != "ghcr.io/trainyard/yard" || len(s.When) > 0 {
				t.Errorf("%s: image %s, conditions %v", s.Name, s.Image, s.When)
			}
			continue
		}
		// I-03: no numbers here, the builder knows its user.
		if s.Image != "$(params.builder-image)" || s.Args[0] != "phase" || s.Args[1] != s.Name {
			t.Errorf("%s: image %s, args %v", s.Name, s.Image, s.Args)
		}
		want := plan.Phases
		if s.Name == phase.Create {
			want = plan.Creator
		}
		if len(s.When) != 1 || s.When[0].Input != "$(steps.plan.results.action)" || !slices.Equal(s.When[0].Values, []string{want}) {
			t.Errorf("%s: conditions %+v, want %s", s.Name, s.When, want)
		}
	}
}

// I-03: root and other users cannot come in through the task.
func TestBuildImageIsRestricted(t *testing.T) {
	task := buildImage(t)
	c := task.Spec.StepTemplate.SecurityContext
	if c == nil || !*c.RunAsNonRoot || *c.AllowPrivilegeEscalation || !*c.ReadOnlyRootFilesystem || len(c.Capabilities.Drop) != 1 || c.SeccompProfile.Type != "RuntimeDefault" {
		t.Errorf("step template %+v", c)
	}
	if c.RunAsUser != nil || c.RunAsGroup != nil {
		t.Error("the step template names a user")
	}
	for _, s := range task.Spec.Steps {
		own := s.SecurityContext
		if own == nil {
			continue
		}
		if own.RunAsUser != nil || own.RunAsGroup != nil || own.Privileged != nil || own.AllowPrivilegeEscalation != nil || own.RunAsNonRoot != nil || own.Capabilities != nil {
			t.Errorf("%s: %+v", s.Name, own)
		}
	}
}

// Tekton's own code has to accept it.
func TestBuildImageIsValid(t *testing.T) {
	d, err := manifest.NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := d.Read("build-image.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := manifest.Validate(t.Context(), objects...); err != nil {
		t.Error(err)
	}
	if err := manifest.CheckImages(true, objects...); err != nil {
		t.Error(err)
	}
}

// What a buildpack must not see or change.
func TestBuildpacksAreKeptApart(t *testing.T) {
	task := buildImage(t)
	for _, s := range task.Spec.Steps {
		hermetic := s.Name == phase.Detect || s.Name == phase.Build
		m := mounts(s)
		if _, has := m["credentials"]; has == hermetic {
			t.Errorf("%s has credentials: %v", s.Name, has)
		}
		env := map[string]string{}
		for _, e := range s.Env {
			env[e.Name] = e.Value
		}
		if (env["DOCKER_CONFIG"] != "") == hermetic {
			t.Errorf("%s: DOCKER_CONFIG is %q", s.Name, env["DOCKER_CONFIG"])
		}
		if readOnly := m["trainyard"]; readOnly != (s.Name != "plan") {
			t.Errorf("%s can write the plan: %v", s.Name, !readOnly)
		}
		if has := len(s.Workspaces) > 0; has != (s.Name == "plan") {
			t.Errorf("%s sees the workspace: %v", s.Name, has)
		}
		if _, has := m["report"]; has != (s.Name == phase.Export || s.Name == phase.Create || s.Name == "pin") {
			t.Errorf("%s sees the report: %v", s.Name, has)
		}
	}
	if w := task.Spec.Workspaces; len(w) != 1 || w[0].Name != "shared" || !w[0].ReadOnly {
		t.Errorf("workspaces %+v", w)
	}
}

// I-48: what pin writes is what the task declares. I-20: the steps' budgets fit a pod.
func TestBuildImageResults(t *testing.T) {
	task := buildImage(t)
	var declared []string
	for _, r := range task.Spec.Results {
		declared = append(declared, r.Name)
		if r.Description == "" {
			t.Errorf("result %s has no description", r.Name)
		}
	}
	slices.Sort(declared)
	if d := cmp.Diff(slices.Sorted(maps.Keys((&plan.File{}).Results("", "", ""))), declared); d != "" {
		t.Error(d)
	}
	if n := len(task.Spec.Steps); n*1024 > 12*1024 {
		t.Errorf("%d steps of 1 KiB do not fit 12 KiB", n)
	}
}

// I-05, I-09: the defaults add nothing that a project did not ask for.
func TestBuildImageDefaults(t *testing.T) {
	want := map[string]string{"path": "source", "folder": ".", "descriptor": "project.toml", "registry-secret": "registry-credentials", "ca-config-map": "trainyard-ca", "label-commit": "false", "rebuild": "false", "trust-builder": "false"}
	for _, p := range buildImage(t).Spec.Params {
		switch {
		case p.Description == "":
			t.Errorf("parameter %s has no description", p.Name)
		case p.Name == "image" || p.Name == "builder-image":
			if p.Default != nil {
				t.Errorf("parameter %s has a default", p.Name)
			}
		case p.Default == nil:
			t.Errorf("parameter %s has no default", p.Name)
		case p.Default.StringVal != want[p.Name] || len(p.Default.ArrayVal) > 0:
			t.Errorf("parameter %s is %q by default, want %q", p.Name, p.Default.StringVal, want[p.Name])
		}
	}
}

// Every parameter reaches a step, and yard knows every flag that a step gives it.
func TestBuildImageCallsYardRight(t *testing.T) {
	task := buildImage(t)
	text, err := os.ReadFile("build-image.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range task.Spec.Params {
		if !strings.Contains(string(text), "$(params."+p.Name) {
			t.Errorf("parameter %s is not used", p.Name)
		}
	}
	variables := regexp.MustCompile(`\$\([^)]*\)`)
	for _, s := range task.Spec.Steps {
		var args []string
		for _, a := range s.Args {
			value := ""
			if strings.HasPrefix(a, "--rebuild=") || strings.HasPrefix(a, "--creator=") || strings.HasPrefix(a, "--label-revision=") {
				value = "true"
			}
			if a = variables.ReplaceAllString(a, value); a != "" {
				args = append(args, a)
			}
		}
		root := cli.New(cli.Streams{Out: io.Discard, Err: io.Discard})
		cmd, rest, err := root.Find(args)
		if err != nil || cmd == root {
			t.Errorf("%s: no verb in %v: %v", s.Name, args, err)
			continue
		}
		if err := cmd.ParseFlags(rest); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}
