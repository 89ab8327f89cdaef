package prune

import (
	"context"

	pipelineapi "github.com/tektoncd/pipeline/pkg/apis/pipeline"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Claim is a claim that goes with its run.
type Claim struct {
	Name string `json:"name"`
	Size int64  `json:"bytes"`
}

// owned returns the claims that go with a run each: those that it alone owns. A claim
// that somebody made for several runs has no such owner.
func (p *Pruner) owned(ctx context.Context, namespace string) (map[types.UID][]Claim, error) {
	claims := map[types.UID][]Claim{}
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return p.Kube.CoreV1().PersistentVolumeClaims(namespace).List(ctx, o)
	}
	err := each(ctx, list, "PersistentVolumeClaims of namespace "+namespace, "", func(c *corev1.PersistentVolumeClaim) {
		if len(c.OwnerReferences) != 1 || c.OwnerReferences[0].Kind != pipelineapi.PipelineRunControllerName {
			return
		}
		size, bound := c.Status.Capacity[corev1.ResourceStorage]
		if !bound {
			size = c.Spec.Resources.Requests[corev1.ResourceStorage]
		}
		owner := c.OwnerReferences[0].UID
		claims[owner] = append(claims[owner], Claim{c.Name, size.Value()})
	})
	return claims, err
}

// user is a pod or a run that has not ended and uses a claim.
type user struct {
	what string // kind and name
	run  string // PipelineRun that it is part of, or is
}

// users returns who uses which claim.
func (p *Pruner) users(ctx context.Context, namespace string) (map[string][]user, error) {
	using := map[string][]user{}
	pods := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return p.Kube.CoreV1().Pods(namespace).List(ctx, o)
	}
	err := each(ctx, pods, "Pods of namespace "+namespace, "", func(pod *corev1.Pod) {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			return
		}
		for _, v := range pod.Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				name := v.PersistentVolumeClaim.ClaimName
				using[name] = append(using[name], user{"pod " + pod.Name, pod.Labels[pipelineapi.PipelineRunLabelKey]})
			}
		}
	})
	if err != nil {
		return nil, err
	}
	// A run that waits has no pod yet.
	err = p.eachRun(ctx, namespace, "", func(pr *pipelinev1.PipelineRun) {
		if pr.IsDone() {
			return
		}
		for _, w := range pr.Spec.Workspaces {
			if w.PersistentVolumeClaim != nil {
				name := w.PersistentVolumeClaim.ClaimName
				using[name] = append(using[name], user{"PipelineRun " + pr.Name, pr.Name})
			}
		}
	})
	return using, err
}
