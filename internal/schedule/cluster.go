package schedule

import (
	corev1 "k8s.io/api/core/v1"
)

// Cluster is what the scheduler looks at, as far as it could be read.
type Cluster struct {
	Nodes []corev1.Node
	Pods  []corev1.Pod // of all namespaces
	// Claims and Volumes are those of the pod's own volumes; what is missing
	// forbids nothing.
	Claims  map[string]corev1.PersistentVolumeClaim // by name, in the pod's namespace
	Volumes map[string]corev1.PersistentVolume      // by name
	// Namespaces are the labels of each namespace, for affinity that selects
	// namespaces by label.
	Namespaces map[string]map[string]string
}

// on returns the pods that hold something of a node: those that were sent there
// and have not ended.
func (c Cluster) on(node string) []corev1.Pod {
	var pods []corev1.Pod
	for _, p := range c.Pods {
		if p.Spec.NodeName == node && node != "" && !ended(p) {
			pods = append(pods, p)
		}
	}
	return pods
}

func ended(p corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func (c Cluster) node(name string) (corev1.Node, bool) {
	for _, n := range c.Nodes {
		if n.Name == name {
			return n, true
		}
	}
	return corev1.Node{}, false
}
