package conformance

import (
	"testing"

	triggersv1beta1 "github.com/tektoncd/triggers/pkg/apis/triggers/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/manifest"
)

// workload returns the pod that an object runs; nil where it runs none.
func workload(o manifest.Object) *corev1.Pod {
	var meta metav1.ObjectMeta
	var spec corev1.PodSpec
	switch w := o.Typed.(type) {
	case *appsv1.Deployment:
		meta, spec = w.Spec.Template.ObjectMeta, w.Spec.Template.Spec
	case *batchv1.CronJob:
		t := w.Spec.JobTemplate.Spec.Template
		meta, spec = t.ObjectMeta, t.Spec
	case *triggersv1beta1.EventListener:
		// Triggers adds the image, ports and probes; the rest is taken as it is.
		if w.Spec.Resources.KubernetesResource == nil {
			return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{}}}}
		}
		t := w.Spec.Resources.KubernetesResource.Template
		meta, spec = t.ObjectMeta, t.Spec
		spec.ServiceAccountName = w.Spec.ServiceAccountName
	default:
		return nil
	}
	return &corev1.Pod{ObjectMeta: meta, Spec: spec}
}

// careless lists what a pod of ours that talks to the cluster must not leave open,
// beyond what a restricted namespace asks for.
func careless(r repository, pod *corev1.Pod) []string {
	var f findings
	if r.accounts[pod.Spec.ServiceAccountName] == nil {
		f.addf("there is no ServiceAccount %q", pod.Spec.ServiceAccountName)
	}
	if len(pod.Spec.Containers) == 0 {
		f.addf("no container")
	}
	for _, c := range pod.Spec.Containers {
		if s := c.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
			f.addf("container %s: its root file system is not read-only", c.Name)
		}
		for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if _, ok := c.Resources.Requests[resource]; !ok {
				f.addf("container %s: requests no %s", c.Name, resource)
			}
			if _, ok := c.Resources.Limits[resource]; !ok {
				f.addf("container %s: no limit of %s", c.Name, resource)
			}
		}
		if len(c.Command) > 0 && c.Command[0] != "/usr/local/bin/yard" {
			f.addf("container %s: runs %s", c.Name, c.Command[0])
		}
	}
	return f
}

func TestPodsOfTheTriggersAreRestricted(t *testing.T) {
	r := load(t)
	found := 0
	for _, o := range r.objects {
		pod := workload(o)
		if pod == nil {
			continue
		}
		found++
		for _, problem := range append(forbidden(t, pod), careless(r, pod)...) {
			t.Errorf("%s: %s", o, problem)
		}
	}
	if found < 3 {
		t.Errorf("%d workloads, want the listener, the queue and the pruning", found)
	}
}

// What the checks of workloads would miss if they always agreed.
func TestWorkloadsThatLeaveSomethingOpenAreFound(t *testing.T) {
	r := load(t)
	yes, no := true, false
	for name, change := range map[string]func(*corev1.PodSpec){
		"privilege escalation":       func(p *corev1.PodSpec) { p.Containers[0].SecurityContext.AllowPrivilegeEscalation = &yes },
		"a kept capability":          func(p *corev1.PodSpec) { p.Containers[0].SecurityContext.Capabilities = nil },
		"a writable root":            func(p *corev1.PodSpec) { p.Containers[0].SecurityContext.ReadOnlyRootFilesystem = &no },
		"no requests":                func(p *corev1.PodSpec) { delete(p.Containers[0].Resources.Requests, corev1.ResourceMemory) },
		"no limits":                  func(p *corev1.PodSpec) { delete(p.Containers[0].Resources.Limits, corev1.ResourceCPU) },
		"a shell":                    func(p *corev1.PodSpec) { p.Containers[0].Command = []string{"/bin/sh"} },
		"an account nobody installs": func(p *corev1.PodSpec) { p.ServiceAccountName = "default" },
		"no container":               func(p *corev1.PodSpec) { p.Containers = nil },
	} {
		t.Run(name, func(t *testing.T) {
			for _, o := range r.objects {
				o.Typed = o.Typed.DeepCopyObject()
				pod := workload(o)
				if pod == nil {
					continue
				}
				change(&pod.Spec)
				if len(append(forbidden(t, pod), careless(r, pod)...)) == 0 {
					t.Errorf("%s: not noticed", o)
				}
			}
		})
	}
}
