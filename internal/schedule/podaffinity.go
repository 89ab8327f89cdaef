package schedule

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// podAffinity checks the required terms of the pod against the pods that run, and
// the required anti-affinity of those against the pod. Tekton's affinity assistant
// is the usual case: it ties all pods of a run that share a claim to one node.
func (c Cluster) podAffinity(pod *corev1.Pod, n corev1.Node) []string {
	var out []string
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		for _, t := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if why := c.missesAffinity(pod, t, n); why != "" {
				out = append(out, why)
			}
		}
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for _, t := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			for _, other := range c.selected(pod, t) {
				if c.sameDomain(other, n, t.TopologyKey) {
					out = append(out, fmt.Sprintf("the pod may not be beside %s/%s (anti-affinity to %s)", other.Namespace, other.Name, selector(t)))
					break
				}
			}
		}
	}
	for _, other := range c.Pods {
		if ended(other) || other.Spec.Affinity == nil || other.Spec.Affinity.PodAntiAffinity == nil {
			continue
		}
		for _, t := range other.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if c.matches(&other, t, *pod) && c.sameDomain(other, n, t.TopologyKey) {
				out = append(out, fmt.Sprintf("%s/%s lets no such pod beside it (its anti-affinity to %s)", other.Namespace, other.Name, selector(t)))
			}
		}
	}
	return out
}

func (c Cluster) missesAffinity(pod *corev1.Pod, t corev1.PodAffinityTerm, n corev1.Node) string {
	selected := c.selected(pod, t)
	for _, other := range selected {
		if c.sameDomain(other, n, t.TopologyKey) {
			return ""
		}
	}
	// The first pod of a group that wants its own kind beside it may go anywhere.
	if len(selected) == 0 && c.matches(pod, t, *pod) && n.Labels[t.TopologyKey] != "" {
		return ""
	}
	if len(selected) == 0 {
		return fmt.Sprintf("the pod must be beside a pod with %s, and none is on a node", selector(t))
	}
	o := selected[0]
	return fmt.Sprintf("the pod must be beside %s/%s, which is on node %s", o.Namespace, o.Name, o.Spec.NodeName)
}

// selected returns the pods on nodes that a term of the pod means.
func (c Cluster) selected(pod *corev1.Pod, t corev1.PodAffinityTerm) []corev1.Pod {
	var out []corev1.Pod
	for _, other := range c.Pods {
		if other.Spec.NodeName != "" && !ended(other) && c.matches(pod, t, other) {
			out = append(out, other)
		}
	}
	return out
}

// matches tells whether a term in the specification of owner means the other pod.
func (c Cluster) matches(owner *corev1.Pod, t corev1.PodAffinityTerm, other corev1.Pod) bool {
	s, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
	if err != nil || !s.Matches(labels.Set(other.Labels)) {
		return false
	}
	if !sameLabels(owner, other, t.MatchLabelKeys, true) || !sameLabels(owner, other, t.MismatchLabelKeys, false) {
		return false
	}
	if t.NamespaceSelector == nil && len(t.Namespaces) == 0 {
		return other.Namespace == owner.Namespace
	}
	if slices.Contains(t.Namespaces, other.Namespace) {
		return true
	}
	if t.NamespaceSelector == nil {
		return false
	}
	s, err = metav1.LabelSelectorAsSelector(t.NamespaceSelector)
	return err == nil && s.Matches(labels.Set(c.Namespaces[other.Namespace]))
}

// sameLabels tells whether the values of these labels, where the owner has them, are
// equal in both pods, or all differ.
func sameLabels(owner *corev1.Pod, other corev1.Pod, keys []string, equal bool) bool {
	for _, key := range keys {
		if value, ok := owner.Labels[key]; ok && (other.Labels[key] == value) != equal {
			return false
		}
	}
	return true
}

// sameDomain tells whether the pod is on the node, or on one with the same value
// of the topology's label.
func (c Cluster) sameDomain(p corev1.Pod, n corev1.Node, key string) bool {
	where, ok := c.node(p.Spec.NodeName)
	if !ok {
		return false
	}
	value, ok := n.Labels[key]
	there, ok2 := where.Labels[key]
	return ok && ok2 && value == there
}

func selector(t corev1.PodAffinityTerm) string {
	return metav1.FormatLabelSelector(t.LabelSelector)
}
