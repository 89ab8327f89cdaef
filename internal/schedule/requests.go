package schedule

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Requests is what the scheduler reserves for a pod: the sum over its containers
// and sidecars, or the largest need while it initialises when that is more, plus
// the overhead of its runtime class. A request for the pod as a whole replaces
// that of its containers.
//
// Source of the rules: KEP-753 "Sidecar containers", resources calculation for
// scheduling, and KEP-2837 "Pod level resource specifications".
func Requests(pod *corev1.Pod) corev1.ResourceList {
	total, starting, sidecars := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	resized := actual(pod)
	for _, c := range pod.Spec.Containers {
		add(total, resized(c))
	}
	for _, c := range pod.Spec.InitContainers {
		need := corev1.ResourceList{}
		if restarts(c) {
			// It stays: it counts with the containers, and with every init
			// container after it.
			add(total, resized(c))
			add(sidecars, resized(c))
		} else {
			add(need, c.Resources.Requests)
		}
		add(need, sidecars)
		raise(starting, need)
	}
	raise(total, starting)
	if pod.Spec.Resources != nil {
		for name, q := range pod.Spec.Resources.Requests {
			if isPodLevel(name) {
				total[name] = q
			}
		}
	}
	add(total, pod.Spec.Overhead)
	return total
}

func restarts(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func isPodLevel(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// actual returns what a container holds while it is resized in place: the largest
// of what it asks for, what it was granted and what it still has.
func actual(pod *corev1.Pod) func(corev1.Container) corev1.ResourceList {
	status := map[string]corev1.ContainerStatus{}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for _, s := range list {
			status[s.Name] = s
		}
	}
	infeasible := false
	for _, c := range pod.Status.Conditions {
		infeasible = infeasible || c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible
	}
	return func(c corev1.Container) corev1.ResourceList {
		s, ok := status[c.Name]
		if !ok || s.Resources == nil {
			return c.Resources.Requests
		}
		held := corev1.ResourceList{}
		if !infeasible { // what can never be granted holds nothing
			raise(held, c.Resources.Requests)
		}
		raise(held, s.Resources.Requests)
		raise(held, s.AllocatedResources)
		return held
	}
}

func add(to, more corev1.ResourceList) {
	for name, q := range more {
		sum := to[name].DeepCopy()
		sum.Add(q)
		to[name] = sum
	}
}

func raise(to, floor corev1.ResourceList) {
	for name, q := range floor {
		if have, ok := to[name]; !ok || q.Cmp(have) > 0 {
			to[name] = q.DeepCopy()
		}
	}
}
