package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tektoncd/pipeline/pkg/apis/pipeline/pod"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/trainyard/trainyard/internal/manifest"
)

// taskRun is a run of a task as a pipeline would make it: volumes for all its
// workspaces, a value for each parameter.
func taskRun(task *pipelinev1.Task, template *pod.PodTemplate) *pipelinev1.TaskRun {
	run := &pipelinev1.TaskRun{
		ObjectMeta: metav1.ObjectMeta{Name: task.Name, Namespace: "trainyard"},
		Spec: pipelinev1.TaskRunSpec{
			TaskRef:            &pipelinev1.TaskRef{Name: task.Name},
			ServiceAccountName: "trainyard-train",
			PodTemplate:        template,
		},
	}
	for _, p := range task.Spec.Params {
		if p.Default == nil {
			run.Spec.Params = append(run.Spec.Params, pipelinev1.Param{Name: p.Name, Value: *pipelinev1.NewStructuredValues("example.com/app@sha256:" + strings.Repeat("a", 64))})
		}
	}
	for _, w := range task.Spec.Workspaces {
		b := pipelinev1.WorkspaceBinding{Name: w.Name}
		if w.Optional {
			b.Secret = &corev1.SecretVolumeSource{SecretName: "s"}
		} else {
			b.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}
		}
		run.Spec.Workspaces = append(run.Spec.Workspaces, b)
	}
	return run
}

// forbidden lists what a namespace that enforces the standard "restricted" would hold
// against a pod.
func forbidden(t *testing.T, p *corev1.Pod) []string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	level := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	for _, r := range evaluator.EvaluatePod(level, &p.ObjectMeta, &p.Spec) {
		if !r.Allowed {
			all = append(all, fmt.Sprintf("%s: %s", r.ForbiddenReason, r.ForbiddenDetail))
		}
	}
	return all
}

func TestPodsOfAllTasksAreRestricted(t *testing.T) {
	r := load(t)
	templates := []*pod.PodTemplate{nil}
	for _, run := range r.runs {
		templates = append(templates, podTemplates(run)...)
	}
	for name, task := range each(r.tasks) {
		t.Run(name, func(t *testing.T) {
			for i, template := range templates {
				run := taskRun(task, template)
				p := podOf(t, run, task)
				if len(p.Spec.Containers) < len(task.Spec.Steps) || len(p.Spec.InitContainers) == 0 {
					t.Fatalf("pod has %d containers for %d steps", len(p.Spec.Containers), len(task.Spec.Steps))
				}
				for _, problem := range forbidden(t, p) {
					t.Errorf("podTemplate %d: %s", i, problem)
				}
			}
		})
	}
}

// What a pod check that always agrees would not notice.
func TestPodsThatAreNotRestrictedAreFound(t *testing.T) {
	yes, root := true, int64(0)
	task := func() *pipelinev1.Task {
		c := slices.IndexFunc(goodObjects(t), func(o manifest.Object) bool { return o.Kind.Kind == "Task" && o.Name == "train" })
		return goodObjects(t)[c].Typed.(*pipelinev1.Task)
	}
	for name, tc := range map[string]struct {
		change   func(*pipelinev1.Task)
		template *pod.PodTemplate
	}{
		"privilege escalation": {change: func(t *pipelinev1.Task) { t.Spec.StepTemplate.SecurityContext.AllowPrivilegeEscalation = &yes }},
		"a kept capability": {change: func(t *pipelinev1.Task) {
			t.Spec.StepTemplate.SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_ADMIN"}
		}},
		"no seccomp profile": {change: func(t *pipelinev1.Task) { t.Spec.StepTemplate.SecurityContext.SeccompProfile = nil }},
		"root in one step":   {change: func(t *pipelinev1.Task) { t.Spec.Steps[0].SecurityContext = &corev1.SecurityContext{RunAsUser: &root} }},
		"a bare sidecar":     {change: func(t *pipelinev1.Task) { t.Spec.Sidecars = []pipelinev1.Sidecar{{Name: "s", Image: "i"}} }},
		"a host path": {change: func(t *pipelinev1.Task) {
			t.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		}},
		"the host's network": {template: &pod.PodTemplate{HostNetwork: true}},
		"root by template":   {template: &pod.PodTemplate{SecurityContext: &corev1.PodSecurityContext{RunAsUser: &root}}},
	} {
		t.Run(name, func(t *testing.T) {
			changed := task()
			if tc.change != nil {
				tc.change(changed)
			}
			run := taskRun(changed, tc.template)
			if len(forbidden(t, podOf(t, run, changed))) == 0 {
				t.Error("not noticed")
			}
		})
	}
	good := task()
	run := taskRun(good, nil)
	if problems := forbidden(t, podOf(t, run, good)); len(problems) > 0 {
		t.Errorf("refuses what is right: %v", problems)
	}
}
