package schedule

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/klog/v2"
)

func (c Cluster) obstacles(pod *corev1.Pod, n corev1.Node) []string {
	var out []string
	if n.Spec.Unschedulable && !tolerates(pod, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}) {
		out = append(out, "it is cordoned (kubectl uncordon "+n.Name+" takes pods again)")
	}
	for _, t := range n.Spec.Taints {
		blocks := t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
		if t.Key == corev1.TaintNodeUnschedulable || !blocks || tolerates(pod, t) {
			continue // the cordon is said above
		}
		out = append(out, taintInWords(t))
	}
	if s := selectorMismatch(pod, n); s != "" {
		out = append(out, s)
	}
	out = append(out, c.podAffinity(pod, n)...)
	return append(out, c.volumeObstacles(pod, n)...)
}

func tolerates(pod *corev1.Pod, t corev1.Taint) bool {
	for _, tol := range pod.Spec.Tolerations {
		if tol.ToleratesTaint(klog.Logger{}, &t, true) {
			return true
		}
	}
	return false
}

func taintInWords(t corev1.Taint) string {
	name := t.Key
	if t.Value != "" {
		name += "=" + t.Value
	}
	name += ":" + string(t.Effect)
	switch t.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable:
		return "it is not ready (taint " + name + ")"
	case corev1.TaintNodeDiskPressure:
		return "its disk is nearly full (taint " + name + ")"
	case corev1.TaintNodeMemoryPressure:
		return "its memory is nearly used up (taint " + name + ")"
	}
	return "the pod does not tolerate its taint " + name
}

// selectorMismatch says which rule of the pod's own the node does not meet.
func selectorMismatch(pod *corev1.Pod, n corev1.Node) string {
	if len(pod.Spec.NodeSelector) > 0 && !labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(n.Labels)) {
		return "it has not the labels of the pod's nodeSelector: " + labels.FormatLabels(pod.Spec.NodeSelector)
	}
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	if !matchesNode(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution, n) {
		return "it does not match the pod's required node affinity: " + termsInWords(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	return ""
}

// matchesNode: one of the terms holds; a term holds when all of its expressions
// do, and an empty one never does.
func matchesNode(s *corev1.NodeSelector, n corev1.Node) bool {
	for _, term := range s.NodeSelectorTerms {
		if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
			continue
		}
		if matchesAll(term.MatchExpressions, labels.Set(n.Labels)) && matchesAll(term.MatchFields, labels.Set{metav1.ObjectNameField: n.Name}) {
			return true
		}
	}
	return false
}

func matchesAll(requirements []corev1.NodeSelectorRequirement, set labels.Set) bool {
	operators := map[corev1.NodeSelectorOperator]selection.Operator{
		corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn,
		corev1.NodeSelectorOpExists: selection.Exists, corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
		corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
	}
	for _, r := range requirements {
		q, err := labels.NewRequirement(r.Key, operators[r.Operator], r.Values)
		if err != nil || !q.Matches(set) {
			return false // the scheduler takes what it cannot read as no match
		}
	}
	return true
}

func termsInWords(s *corev1.NodeSelector) string {
	var terms []string
	for _, term := range s.NodeSelectorTerms {
		var parts []string
		for _, r := range append(append([]corev1.NodeSelectorRequirement{}, term.MatchExpressions...), term.MatchFields...) {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Key, r.Operator, strings.Join(r.Values, ","))))
		}
		terms = append(terms, strings.Join(parts, " and "))
	}
	return strings.Join(terms, "; or ")
}

// volumeObstacles: a volume that exists on other nodes only ties the pod to them.
func (c Cluster) volumeObstacles(pod *corev1.Pod, n corev1.Node) []string {
	var out []string
	for _, claim := range ClaimsOf(pod) {
		volume, ok := c.Volumes[c.Claims[claim].Spec.VolumeName]
		if !ok || volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil || matchesNode(volume.Spec.NodeAffinity.Required, n) {
			continue
		}
		out = append(out, fmt.Sprintf("claim %s is bound to volume %s, which is only where %s", claim, volume.Name, termsInWords(volume.Spec.NodeAffinity.Required)))
	}
	return out
}

// ClaimsOf returns the names of the claims that a pod mounts.
func ClaimsOf(pod *corev1.Pod) []string {
	var names []string
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, pod.Name+"-"+v.Name)
		}
	}
	return names
}
