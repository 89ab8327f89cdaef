package doctor

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tektoncd/pipeline/pkg/workspace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/schedule"
)

// pod examines a pod that has not ended: why it waits, or what keeps it. What says
// whose pod it is. It returns whether it found something.
func (e *exam) pod(ctx context.Context, what string, p *corev1.Pod) (found bool, err error) {
	before := len(e.report.Findings)
	events, err := e.eventsOf(ctx, p.UID)
	if err != nil {
		return false, err
	}
	switch {
	case p.DeletionTimestamp != nil:
		if over := e.Now().Sub(p.DeletionTimestamp.Time); over > patience {
			e.problem("pod", "look whether node "+p.Spec.NodeName+" is alive; kubectl delete pod --force gives the pod up", "%s should be gone for %s and is not", what, ago(over))
		}
	case p.Spec.NodeName == "":
		err = e.unscheduled(ctx, what, p, events)
	default:
		if err = e.nodeOf(ctx, what, p); err == nil {
			e.containers(what, p, events)
		}
	}
	return len(e.report.Findings) > before, err
}

// unscheduled examines a pod that has no node.
func (e *exam) unscheduled(ctx context.Context, what string, p *corev1.Pod, events []corev1.Event) error {
	var said string
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			said = c.Message
		}
	}
	if ev, ok := newestWarning(events, "FailedScheduling"); ok && said == "" {
		said = ev.Message
	}
	switch {
	case len(p.Spec.SchedulingGates) > 0:
		e.problem("pod", "find out who set the gate "+p.Spec.SchedulingGates[0].Name+" and removes it", "%s is held back by the scheduling gate %s", what, p.Spec.SchedulingGates[0].Name)
		return nil
	case said == "" && e.Now().Sub(p.CreationTimestamp.Time) < patience:
		return nil // nobody has looked at it yet
	case said == "":
		e.problem("pod", "look whether the scheduler runs", "%s waits for %s and the scheduler %s has not looked at it", what, ago(e.Now().Sub(p.CreationTimestamp.Time)), cmp.Or(p.Spec.SchedulerName, "default-scheduler"))
		return nil
	}
	var ill []string
	for _, name := range schedule.ClaimsOf(p) {
		if err := e.claim(ctx, name, ""); err != nil {
			return err
		}
		if !e.claims[name] {
			ill = append(ill, name)
		}
	}
	if assistant := assistantOf(p); assistant != "" {
		a, err := e.Kube.CoreV1().Pods(p.Namespace).Get(ctx, assistant+"-0", metav1.GetOptions{})
		if err != nil || a.Spec.NodeName == "" {
			e.warn("pod", "solve what keeps the affinity assistant", "%s waits for the affinity assistant %s, which has no node either", what, assistant)
			return nil
		}
	}
	_, v, err := e.explain(ctx, p)
	if err != nil {
		return err
	}
	message := fmt.Sprintf("%s has waited for a node for %s: it asks for %s", what, ago(e.Now().Sub(p.CreationTimestamp.Time)), amounts(schedule.Requests(p)))
	_, fits := v.Fits()
	switch {
	case len(v.Nodes) > 0 && !fits:
		f := e.shortage(message, v)
		f.Check = "pod"
		f.Details = append(f.Details, "the scheduler says: "+said)
		e.report.add(f)
	case len(ill) > 0:
		e.warn("pod", "solve what is wrong with the claim", "%s has no node, because its claim %s has no volume", what, and(ill))
	case e.Now().Sub(p.CreationTimestamp.Time) < patience:
		e.ok("pod", "%s; the scheduler says: %s", message, said)
	default:
		e.problem("pod", "see what the scheduler says, and kubectl describe pod "+p.Name, "%s; the scheduler says: %s", message, said)
	}
	return nil
}

// assistantOf is the affinity assistant that Tekton puts a pod beside.
func assistantOf(p *corev1.Pod) string {
	if p.Spec.Affinity == nil || p.Spec.Affinity.PodAffinity == nil {
		return ""
	}
	for _, t := range p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		if t.LabelSelector != nil && t.LabelSelector.MatchLabels[workspace.LabelComponent] == workspace.ComponentNameAffinityAssistant {
			return t.LabelSelector.MatchLabels[workspace.LabelInstance]
		}
	}
	return ""
}

// nodeOf examines the node that a pod is on.
func (e *exam) nodeOf(ctx context.Context, what string, p *corev1.Pod) error {
	nodes, err := e.nodes(ctx)
	if err != nil || !e.cache.nodes.seen {
		return err
	}
	for _, n := range nodes {
		if n.Name != p.Spec.NodeName {
			continue
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				e.problem("pod", "look at the node: its kubelet does not report, or reports that it is not ready", "%s is on node %s, which is not ready: %s", what, n.Name, c.Message)
			}
		}
		return nil
	}
	e.problem("pod", "the cluster removes the pod in a few minutes; a task with retries then goes on elsewhere", "%s is on node %s, which does not exist any more", what, p.Spec.NodeName)
	return nil
}

// containers examines the containers of a pod that has a node.
func (e *exam) containers(what string, p *corev1.Pod, events []corev1.Event) {
	before := e.report.Count(Problem)
	creating := false
	for _, s := range append(append([]corev1.ContainerStatus{}, p.Status.InitContainerStatuses...), p.Status.ContainerStatuses...) {
		if w := s.State.Waiting; w != nil {
			creating = creating || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing" || w.Reason == ""
			e.waiting(what, s, *w)
		}
	}
	if e.report.Count(Problem) > before {
		return
	}
	if p.Status.Phase == corev1.PodPending && (creating || len(p.Status.ContainerStatuses) == 0) {
		e.starting(what, p, events)
		return
	}
	e.sidecars(what, p)
}

// waiting examines one container that waits with a reason of its own.
func (e *exam) waiting(what string, s corev1.ContainerStatus, w corev1.ContainerStateWaiting) {
	container := strings.TrimPrefix(s.Name, "step-")
	f := Finding{Check: "pod", Level: Problem}
	c, known := causeOf(w.Message)
	f.Remedy = c.remedy
	switch w.Reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
		f = imageFinding(what, cmp.Or(s.Image, imageIn(w.Message)), w.Message)
		if w.Reason == "InvalidImageName" {
			f.Remedy = "correct the name of the image: an unset parameter leaves a part of it empty"
		}
		if w.Reason == "ErrImageNeverPull" {
			f.Remedy = "load the image into the node, or set imagePullPolicy to IfNotPresent"
		}
		e.report.add(f)
		return
	case "CreateContainerConfigError":
		f.Message = fmt.Sprintf("%s: container %s cannot be made", what, container)
		if strings.Contains(w.Message, "not found") || strings.Contains(w.Message, "find key") {
			f.Remedy = "create what is missing in namespace " + e.o.Namespace + ", and start the run again if it has failed"
		}
	case "CreateContainerError", "RunContainerError", "StartError", "PreCreateHookError", "CrashLoopBackOff":
		f.Message = fmt.Sprintf("%s: container %s cannot be started (%s)", what, container, w.Reason)
	default:
		return
	}
	if known {
		f.Message += ": " + c.means
	}
	if w.Message != "" {
		f.Details = append(f.Details, w.Message)
	}
	if f.Remedy == "" {
		f.Remedy = "correct what the message names"
	}
	e.report.add(f)
}

func imageFinding(what, image, message string) Finding {
	f := Finding{Check: "image", Level: Problem, Message: what + ": an image cannot be pulled: " + cmp.Or(image, "its name is empty"), Remedy: "correct what the message names"}
	if c, ok := causeOf(message); ok {
		f.Message += ": " + c.means
		f.Remedy = c.remedy
	}
	if message != "" {
		f.Details = []string{message}
	}
	return f
}

// starting examines a pod whose containers are still being made: volumes, network,
// init containers.
func (e *exam) starting(what string, p *corev1.Pod, events []corev1.Event) {
	if ev, ok := newestWarning(events, "FailedMount", "FailedAttachVolume", "FailedMapVolume"); ok {
		remedy := "see what the message names; kubectl describe pod " + p.Name
		switch {
		case strings.Contains(ev.Message, "Multi-Attach"):
			remedy = "let the pod on the other node end: a volume of access mode ReadWriteOnce is on one node at a time; Tekton's coschedule: workspaces keeps a run on one"
		case strings.Contains(ev.Message, "not found"), strings.Contains(ev.Message, "non-existent"):
			remedy = "create what is missing in namespace " + e.o.Namespace + ": the pod goes on by itself"
		}
		e.report.add(Finding{Check: "pod", Level: Problem, Message: what + " waits for a volume that cannot be mounted", Details: []string{ev.Message}, Remedy: remedy})
		return
	}
	if ev, ok := newestWarning(events, "FailedCreatePodSandBox", "FailedKillPod", "NetworkNotReady"); ok {
		e.report.add(Finding{Check: "pod", Level: Problem, Message: what + " gets no sandbox on node " + p.Spec.NodeName, Details: []string{ev.Message},
			Remedy: "look at the network plugin and the container runtime of the node"})
		return
	}
	if ev, ok := newestWarning(events, "Failed"); ok && strings.HasPrefix(ev.Message, "Failed to pull image") {
		// Between two tries the container looks as if nothing had happened.
		image, _, _ := strings.Cut(strings.TrimPrefix(ev.Message, `Failed to pull image "`), `"`)
		e.report.add(imageFinding(what, image, ev.Message))
		return
	}
	age := e.Now().Sub(startOf(p))
	for _, s := range p.Status.InitContainerStatuses {
		if r := s.State.Running; r != nil && e.Now().Sub(r.StartedAt.Time) > patience && !isSidecar(p, s.Name) {
			e.problem("pod", "kubectl logs "+p.Name+" -c "+s.Name, "%s is still in its init container %s, for %s", what, s.Name, ago(e.Now().Sub(r.StartedAt.Time)))
			return
		}
	}
	if image := pulling(events); image != "" {
		e.ok("pod", "%s is pulling %s, since %s", what, image, ago(age))
		return
	}
	if age > 2*patience {
		e.problem("pod", "kubectl describe pod "+p.Name+", and look at the kubelet of node "+p.Spec.NodeName, "%s is on node %s for %s and its containers are not made; no event says why", what, p.Spec.NodeName, ago(age))
	}
}

// pulling is the image that a pod has begun to pull last and not ended.
func pulling(events []corev1.Event) string {
	for _, ev := range events {
		switch ev.Reason {
		case "Pulled", "Started", "Created", "Failed", "BackOff":
			return ""
		case "Pulling":
			return strings.Trim(strings.TrimPrefix(ev.Message, "Pulling image "), `"`)
		}
	}
	return ""
}

func startOf(p *corev1.Pod) time.Time {
	if p.Status.StartTime != nil {
		return p.Status.StartTime.Time
	}
	return p.CreationTimestamp.Time
}

func isSidecar(p *corev1.Pod, name string) bool {
	for _, c := range p.Spec.InitContainers {
		if c.Name == name {
			return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		}
	}
	return strings.HasPrefix(name, "sidecar-")
}

// sidecars: Tekton lets the first step begin only when every sidecar is ready.
func (e *exam) sidecars(what string, p *corev1.Pod) {
	if p.Status.Phase != corev1.PodRunning || p.Annotations["tekton.dev/ready"] != "" {
		return
	}
	for _, s := range append(append([]corev1.ContainerStatus{}, p.Status.InitContainerStatuses...), p.Status.ContainerStatuses...) {
		if isSidecar(p, s.Name) && !s.Ready && e.Now().Sub(startOf(p)) > patience {
			e.problem("pod", "kubectl logs "+p.Name+" -c "+s.Name, "%s: the steps wait for the sidecar %s, which is not ready", what, strings.TrimPrefix(s.Name, "sidecar-"))
		}
	}
}
