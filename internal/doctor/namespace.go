package doctor

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	psa "k8s.io/pod-security-admission/api"
)

// namespace examines the namespace itself; without it nothing else can be.
func (e *exam) namespace(ctx context.Context) (there bool, err error) {
	ns, err := e.Kube.CoreV1().Namespaces().Get(ctx, e.o.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		e.problem("namespace", "create it, or name another with --namespace", "namespace %s does not exist", e.o.Namespace)
		return false, nil
	}
	if err != nil {
		return true, e.cannotSee("namespace", "namespaces", err)
	}
	if ns.DeletionTimestamp != nil {
		e.problem("namespace", "wait until it is gone and create it again", "namespace %s is being deleted: nothing can be created in it", ns.Name)
		return true, nil
	}
	level := ns.Labels[psa.EnforceLevelLabel]
	switch psa.Level(level) {
	case psa.LevelRestricted:
		e.ok("namespace", "namespace %s enforces the Pod Security level restricted", ns.Name)
	case "":
		e.warn("namespace", fmt.Sprintf("kubectl label namespace %s %s=restricted: the pods of this project need no more", ns.Name, psa.EnforceLevelLabel),
			"namespace %s enforces no Pod Security level of its own", ns.Name)
	default:
		e.warn("namespace", fmt.Sprintf("set its label %s to restricted: the pods of this project need no more", psa.EnforceLevelLabel),
			"namespace %s enforces the Pod Security level %s only", ns.Name, level)
	}
	return true, e.quota(ctx)
}

// quota says when a quota is used up already.
func (e *exam) quota(ctx context.Context) error {
	quotas, err := e.Kube.CoreV1().ResourceQuotas(e.o.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return e.cannotSee("quota", "resource quotas", err)
	}
	for _, q := range quotas.Items {
		full := false
		for _, name := range sortedNames(q.Status.Hard) {
			hard, used := q.Status.Hard[name], q.Status.Used[name]
			if hard.Sign() > 0 && used.Cmp(hard) >= 0 {
				full = true
				e.warn("quota", "let runs end, delete what is not needed, or raise the quota", "quota %s is used up for %s: %s of %s", q.Name, name, used.String(), hard.String())
			}
		}
		if !full {
			e.ok("quota", "quota %s has room", q.Name)
		}
	}
	return nil
}
