package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/schedule"
)

// explain looks at all nodes for a pod. Without the right to see the nodes the
// cluster has none.
func (e *exam) explain(ctx context.Context, p *corev1.Pod) (schedule.Cluster, schedule.Verdict, error) {
	var c schedule.Cluster
	nodes, err := e.nodes(ctx)
	if err != nil || len(nodes) == 0 {
		return c, schedule.Verdict{}, err
	}
	pods, err := e.allPods(ctx)
	if err != nil || !e.cache.pods.seen {
		return c, schedule.Verdict{}, err
	}
	c = schedule.Cluster{Nodes: nodes, Pods: pods, Claims: map[string]corev1.PersistentVolumeClaim{}, Volumes: map[string]corev1.PersistentVolume{}}
	for _, name := range schedule.ClaimsOf(p) {
		claim, err := e.Kube.CoreV1().PersistentVolumeClaims(p.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			continue // what is wrong with a claim is said elsewhere
		}
		c.Claims[name] = *claim
		if claim.Spec.VolumeName == "" {
			continue
		}
		volume, err := e.Kube.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			if !apierrors.IsNotFound(err) {
				if err := e.cannotSee("claim", "persistent volumes", err); err != nil {
					return c, schedule.Verdict{}, err
				}
			}
			continue
		}
		c.Volumes[volume.Name] = *volume
	}
	return c, c.Explain(p), nil
}

// shownNodes is how many nodes are described one by one, the best first.
const shownNodes = 4

// shortage writes a verdict into a finding: what each node lacks, who holds it,
// and what would make it fit.
func (e *exam) shortage(message string, v schedule.Verdict) Finding {
	f := Finding{Check: "capacity", Level: Problem, Message: message, Scheduling: &v}
	lacking := v.Lacking()
	for _, n := range lacking[:min(len(lacking), shownNodes)] {
		for _, s := range n.Shortages {
			f.Details = append(f.Details, shortInWords(n.Name, s)...)
		}
	}
	if more := len(lacking) - shownNodes; more > 0 {
		f.Details = append(f.Details, fmt.Sprintf("%d more nodes lack more", more))
	}
	barred := map[string][]string{} // obstacle to nodes
	for _, n := range v.Nodes {
		for _, o := range n.Obstacles {
			barred[o] = append(barred[o], n.Name)
		}
	}
	for _, o := range sortedNames(barred) {
		f.Details = append(f.Details, fmt.Sprintf("%s cannot take it: %s", nodesInWords(barred[o]), o))
	}
	f.Remedy = relief(v)
	return f
}

func nodesInWords(names []string) string {
	if len(names) == 1 {
		return "node " + names[0]
	}
	return "nodes " + and(first(names, 3))
}

func shortInWords(node string, s schedule.Short) []string {
	if len(s.Holders) == 0 {
		return []string{fmt.Sprintf("node %s: %s asked, and it has %s in all", node, schedule.Amount(s.Resource, s.Requested), schedule.Quantity(s.Resource, s.Allocatable))}
	}
	lines := []string{fmt.Sprintf("node %s: %s asked, %s free: of %s allocatable, %s %s",
		node, schedule.Amount(s.Resource, s.Requested), schedule.Quantity(s.Resource, s.Free), schedule.Quantity(s.Resource, s.Allocatable),
		held(s.Pods), schedule.Quantity(s.Resource, s.Held))}
	var largest []string
	for i, h := range s.Holders {
		if i == 3 {
			break
		}
		largest = append(largest, fmt.Sprintf("%s/%s %s", h.Namespace, h.Name, schedule.Quantity(s.Resource, h.Held)))
	}
	if len(largest) > 0 && s.Resource != corev1.ResourcePods {
		lines = append(lines, "most is held by "+strings.Join(largest, ", "))
	}
	return lines
}

func held(pods int) string {
	if pods == 1 {
		return "1 pod holds"
	}
	return fmt.Sprintf("%d pods hold", pods)
}

// relief says what would make it fit.
func relief(v schedule.Verdict) string {
	lacking := v.Lacking()
	if len(lacking) == 0 {
		return "change what the pod demands of its node, or make a node meet it: more resources would not help"
	}
	// The nearest that can be freed; otherwise the nearest.
	n := lacking[max(0, freeable(v))]
	var most, now []string
	for _, s := range n.Shortages {
		if room := s.Room(); room.Cmp(s.Requested) < 0 {
			if s.Resource == corev1.ResourcePods || room.Sign() <= 0 {
				return fmt.Sprintf("add a node: %s has none of %s to give", n.Name, s.Resource)
			}
			most = append(most, schedule.Amount(s.Resource, room))
		}
		if s.Free.Sign() > 0 {
			now = append(now, schedule.Amount(s.Resource, s.Free))
		}
	}
	if len(most) > 0 {
		said := fmt.Sprintf("no pod's end would help: beside its own pods, node %s has room for at most %s; ask for no more than that, or add a larger node", n.Name, and(most))
		if len(now) > 0 && and(now) != and(most) {
			said += fmt.Sprintf(" (%s is free there now)", and(now))
		}
		return said
	}
	pods, ok := n.Relief()
	if !ok {
		return "add a node, or ask for less"
	}
	var names []string
	for _, p := range pods {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	var freed []string
	for _, s := range n.Shortages {
		if s.Resource != corev1.ResourcePods {
			freed = append(freed, schedule.Amount(s.Resource, n.Freed(s.Resource, pods)))
		}
	}
	said := fmt.Sprintf("it fits on node %s when %s ", n.Name, and(first(names, 5)))
	if len(names) == 1 {
		said += "ends or is scaled down"
	} else {
		said += "end or are scaled down"
	}
	if len(freed) > 0 && len(names) == 1 {
		said += fmt.Sprintf(" (it holds %s)", and(freed))
	} else if len(freed) > 0 {
		said += fmt.Sprintf(" (they hold %s)", and(freed))
	}
	if len(now) == len(n.Shortages) {
		said += fmt.Sprintf("; or at once when it asks for at most %s", and(now))
	}
	return said
}

// freeable is the first of the lacking nodes that would do if other pods ended; -1
// when none would.
func freeable(v schedule.Verdict) int {
	return slices.IndexFunc(v.Lacking(), func(n schedule.Node) bool { _, ok := n.Relief(); return ok })
}

// podOf is the pod that Tekton would make of a task, as far as the scheduler cares.
func podOf(namespace, name string, task *pipelinev1.TaskSpec) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	var common corev1.ResourceRequirements
	if task.StepTemplate != nil {
		common = task.StepTemplate.ComputeResources
	}
	for _, s := range task.Steps {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: s.Name, Resources: requirements(common, s.ComputeResources)})
	}
	for _, s := range task.Sidecars {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: s.Name, Resources: requirements(s.ComputeResources)})
	}
	return p
}

// sizes are the resources that a run gives a task in place of the task's own.
type sizes struct {
	whole *corev1.ResourceRequirements // of all steps together
	steps []pipelinev1.TaskRunStepSpec
}

func (s sizes) containers(own []corev1.Container) []corev1.Container {
	if s.whole != nil {
		// Tekton spreads them over the steps; the sum is what counts.
		return []corev1.Container{{Resources: requirements(*s.whole)}}
	}
	out := slices.Clone(own)
	for i := range out {
		for _, step := range s.steps {
			if step.Name == out[i].Name {
				out[i].Resources = requirements(step.ComputeResources)
			}
		}
	}
	return out
}

// requirements merges in order, and fills in what the API server would: a limit
// without a request is one.
func requirements(layers ...corev1.ResourceRequirements) corev1.ResourceRequirements {
	out := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, l := range layers {
		for name, q := range l.Limits {
			out.Limits[name] = q
		}
		for name, q := range l.Requests {
			out.Requests[name] = q
		}
	}
	for name, q := range out.Limits {
		if _, ok := out.Requests[name]; !ok {
			out.Requests[name] = q
		}
	}
	return out
}
