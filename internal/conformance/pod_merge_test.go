//go:build !tektonresolver

package conformance

import (
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// podOf makes what matters to security of the pod of a TaskRun.
func podOf(t *testing.T, run *pipelinev1.TaskRun, task *pipelinev1.Task) *corev1.Pod {
	t.Helper()
	spec := task.Spec.DeepCopy()
	steps, err := pipelinev1.MergeStepsWithStepTemplate(spec.StepTemplate, spec.Steps)
	if err != nil {
		t.Fatal(err)
	}
	p := &corev1.Pod{}
	for _, s := range steps {
		p.Spec.Containers = append(p.Spec.Containers, *s.ToK8sContainer())
	}
	for _, s := range spec.Sidecars {
		p.Spec.Containers = append(p.Spec.Containers, *s.ToK8sContainer())
	}
	// With the feature flag set-security-context.
	p.Spec.InitContainers = []corev1.Container{{Name: "prepare", SecurityContext: &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), RunAsNonRoot: ptr.To(true),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}}}
	p.Spec.Volumes = spec.Volumes
	if c := run.Spec.PodTemplate; c != nil {
		p.Spec.SecurityContext, p.Spec.HostNetwork = c.SecurityContext, c.HostNetwork
		p.Spec.Volumes = append(p.Spec.Volumes, c.Volumes...)
	}
	return p
}
