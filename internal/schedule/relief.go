package schedule

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Room is the largest request that the node could ever grant beside its own pods.
func (s Short) Room() resource.Quantity {
	room := s.Allocatable.DeepCopy()
	room.Sub(s.Fixed)
	return room
}

// Relief returns the fewest large pods, none of them the node's own, whose end
// would make all that is short fit; ok is false when even all of them would not.
func (n Node) Relief() (pods []Holder, ok bool) {
	chosen := map[string]bool{}
	for _, s := range n.Shortages {
		free := s.Free.DeepCopy()
		for _, h := range s.Holders {
			if chosen[h.Namespace+"/"+h.Name] {
				free.Add(h.Held)
			}
		}
		for _, h := range s.Holders {
			if free.Cmp(s.Requested) >= 0 {
				break
			}
			if key := h.Namespace + "/" + h.Name; !h.Fixed && !chosen[key] {
				chosen[key] = true
				free.Add(h.Held)
				pods = append(pods, h)
			}
		}
		if free.Cmp(s.Requested) < 0 {
			return nil, false
		}
	}
	return pods, true
}

// Freed is what pods hold together of a resource of the node.
func (n Node) Freed(name corev1.ResourceName, pods []Holder) resource.Quantity {
	var sum resource.Quantity
	for _, s := range n.Shortages {
		if s.Resource != name {
			continue
		}
		for _, h := range s.Holders {
			for _, p := range pods {
				if p.Namespace == h.Namespace && p.Name == h.Name {
					sum.Add(h.Held)
				}
			}
		}
	}
	return sum
}
