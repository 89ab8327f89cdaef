package doctor

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/trainyard/trainyard/internal/schedule"
)

// staticVolumes says, for a claim that nobody makes a volume for, why each volume
// that is there does not do.
func (e *exam) staticVolumes(ctx context.Context, what string, c *corev1.PersistentVolumeClaim) error {
	volumes, err := e.Kube.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return e.cannotSee("claim", "persistent volumes", err)
	}
	f := Finding{Check: "claim", Level: Problem, Remedy: "create a volume that matches (pv/ has an example), or name a StorageClass that makes volumes"}
	class := className(c)
	if class == "" {
		f.Message = fmt.Sprintf("%s is not bound: its storageClassName is empty, so it takes only a volume that somebody made, and none matches", what)
	} else {
		f.Message = fmt.Sprintf("%s is not bound: StorageClass %s makes no volumes, and none that somebody made matches", what, class)
	}
	for _, v := range volumes.Items {
		why := mismatch(c, v)
		if why == "" {
			e.ok("claim", "%s has no volume yet; volume %s matches, and is bound when the first pod gets a node", what, v.Name)
			return nil
		}
		f.Details = append(f.Details, fmt.Sprintf("volume %s: %s", v.Name, why))
	}
	f.Details = first(f.Details, 5)
	e.report.add(f)
	return nil
}

// namedVolume examines a claim that asks for one volume by name.
func (e *exam) namedVolume(ctx context.Context, what string, c *corev1.PersistentVolumeClaim) error {
	v, err := e.Kube.CoreV1().PersistentVolumes().Get(ctx, c.Spec.VolumeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		e.problem("claim", "create the volume, or remove volumeName from the claim", "%s is not bound: it asks for volume %s, which does not exist", what, c.Spec.VolumeName)
		return nil
	}
	if err != nil {
		return e.cannotSee("claim", "persistent volumes", err)
	}
	why := mismatch(c, *v)
	if why == "" {
		why = "it matches, so the two should be bound in a moment"
	}
	e.problem("claim", "make the volume and the claim agree", "%s is not bound: it asks for volume %s: %s", what, v.Name, why)
	return nil
}

// mismatch says why a volume cannot serve a claim; empty when it can.
func mismatch(c *corev1.PersistentVolumeClaim, v corev1.PersistentVolume) string {
	asked, has := c.Spec.Resources.Requests[corev1.ResourceStorage], v.Spec.Capacity[corev1.ResourceStorage]
	if ref := v.Spec.ClaimRef; ref != nil && (ref.Namespace != c.Namespace || ref.Name != c.Name || ref.UID != "" && ref.UID != c.UID) {
		return fmt.Sprintf("it belongs to claim %s/%s (%s)", ref.Namespace, ref.Name, v.Status.Phase)
	}
	if class := className(c); v.Spec.StorageClassName != class {
		return fmt.Sprintf("its StorageClass is %q, the claim's %q", v.Spec.StorageClassName, class)
	}
	if has.Cmp(asked) < 0 {
		return fmt.Sprintf("it has %s, the claim asks for %s", schedule.Quantity(corev1.ResourceStorage, has), schedule.Quantity(corev1.ResourceStorage, asked))
	}
	for _, mode := range c.Spec.AccessModes {
		if !slices.Contains(v.Spec.AccessModes, mode) {
			return fmt.Sprintf("its access modes are %s, the claim asks for %s", modesInWords(v.Spec.AccessModes), modesInWords(c.Spec.AccessModes))
		}
	}
	if s, err := metav1.LabelSelectorAsSelector(c.Spec.Selector); c.Spec.Selector != nil && (err != nil || !s.Matches(labels.Set(v.Labels))) {
		return "its labels do not match the claim's selector " + metav1.FormatLabelSelector(c.Spec.Selector)
	}
	filesystem := corev1.PersistentVolumeFilesystem
	if a, b := deref(c.Spec.VolumeMode, filesystem), deref(v.Spec.VolumeMode, filesystem); a != b {
		return fmt.Sprintf("its volume mode is %s, the claim's %s", b, a)
	}
	return ""
}

func deref[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
