package schedule

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Verdict is why a pod is on no node.
type Verdict struct {
	Requests corev1.ResourceList `json:"requests"`
	Nodes    []Node              `json:"nodes"`
}

// Node is what speaks against one node.
type Node struct {
	Name string `json:"name"`
	// Obstacles that no free resource removes, in words: a cordon, a taint, a
	// selector, an affinity, a volume.
	Obstacles []string `json:"obstacles,omitempty"`
	Shortages []Short  `json:"shortages,omitempty"`
}

// Short is a resource of which a node has too little left.
type Short struct {
	Resource    corev1.ResourceName `json:"resource"`
	Requested   resource.Quantity   `json:"requested"`
	Allocatable resource.Quantity   `json:"allocatable"`
	Held        resource.Quantity   `json:"held"`
	Free        resource.Quantity   `json:"free"`
	// Fixed is the part of Held that belongs to the node itself: pods of
	// kube-system, of DaemonSets and from files on the node.
	Fixed resource.Quantity `json:"fixed"`
	Pods  int               `json:"pods"` // that hold some of it
	// Holders are those pods, the largest first.
	Holders []Holder `json:"holders,omitempty"`
}

// Holder is a pod that holds some of a resource.
type Holder struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Held      resource.Quantity `json:"held"`
	Fixed     bool              `json:"fixed,omitempty"`
}

// Explain looks at every node for the pod.
func (c Cluster) Explain(pod *corev1.Pod) Verdict {
	v := Verdict{Requests: Requests(pod)}
	for _, n := range c.Nodes {
		v.Nodes = append(v.Nodes, Node{
			Name:      n.Name,
			Obstacles: c.obstacles(pod, n),
			Shortages: c.shortages(pod, v.Requests, n),
		})
	}
	slices.SortFunc(v.Nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return v
}

// Fits tells whether a node has nothing against the pod.
func (v Verdict) Fits() (node string, ok bool) {
	for _, n := range v.Nodes {
		if len(n.Obstacles) == 0 && len(n.Shortages) == 0 {
			return n.Name, true
		}
	}
	return "", false
}

// Lacking are the nodes that lack nothing but resources, first the one that lacks
// the smallest part of what it allocates.
func (v Verdict) Lacking() []Node {
	var nodes []Node
	for _, n := range v.Nodes {
		if len(n.Obstacles) == 0 && len(n.Shortages) > 0 {
			nodes = append(nodes, n)
		}
	}
	slices.SortStableFunc(nodes, func(a, b Node) int {
		worstA, sumA := a.lack()
		worstB, sumB := b.lack()
		return cmp.Or(cmp.Compare(worstA, worstB), cmp.Compare(sumA, sumB))
	})
	return nodes
}

// lack is the worst of the node's shortages as a part of what it allocates, and the
// sum of all.
func (n Node) lack() (worst, sum float64) {
	for _, s := range n.Shortages {
		part := (s.Requested.AsApproximateFloat64() - s.Free.AsApproximateFloat64()) / max(s.Allocatable.AsApproximateFloat64(), 1e-9)
		worst, sum = max(worst, part), sum+part
	}
	return worst, sum
}

func (c Cluster) shortages(pod *corev1.Pod, requests corev1.ResourceList, n corev1.Node) []Short {
	held := c.on(n.Name)
	needs := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}
	for name, q := range requests {
		if q.Sign() > 0 { // what is not asked for cannot be short
			needs[name] = q
		}
	}
	var short []Short
	for name, need := range needs {
		s := Short{Resource: name, Requested: need, Allocatable: n.Status.Allocatable[name]}
		for _, p := range held {
			if p.UID == pod.UID && p.Name == pod.Name && p.Namespace == pod.Namespace {
				continue
			}
			q := Requests(&p)[name]
			if name == corev1.ResourcePods {
				q = resource.MustParse("1")
			}
			if q.Sign() <= 0 {
				continue
			}
			s.Held.Add(q)
			if fixed(p) {
				s.Fixed.Add(q)
			}
			s.Holders = append(s.Holders, Holder{p.Namespace, p.Name, q, fixed(p)})
		}
		s.Free = s.Allocatable.DeepCopy()
		s.Free.Sub(s.Held)
		if s.Free.Cmp(need) >= 0 {
			continue
		}
		s.Pods = len(s.Holders)
		slices.SortFunc(s.Holders, func(a, b Holder) int {
			return cmp.Or(b.Held.Cmp(a.Held), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		short = append(short, s)
	}
	slices.SortFunc(short, func(a, b Short) int { return cmp.Compare(a.Resource, b.Resource) })
	return short
}

// fixed pods come back on the node or must not go.
func fixed(p corev1.Pod) bool {
	if p.Namespace == "kube-system" || p.Annotations[corev1.MirrorPodAnnotationKey] != "" {
		return true
	}
	for _, o := range p.OwnerReferences {
		if o.Kind == "DaemonSet" && o.Controller != nil && *o.Controller {
			return true
		}
	}
	return false
}
