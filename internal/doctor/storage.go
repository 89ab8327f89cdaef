package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/schedule"
)

// patience is how long the parts of a cluster may take for what they do themselves.
const patience = 30 * time.Second

const (
	defaultClassAnnotation     = "storageclass.kubernetes.io/is-default-class"
	defaultClassAnnotationBeta = "storageclass.beta.kubernetes.io/is-default-class"
	noProvisioner              = "kubernetes.io/no-provisioner"
)

// storage examines, before a run, where its claim would come from.
func (e *exam) storage(ctx context.Context, claim string) error {
	if claim != "" {
		return e.claim(ctx, claim, "")
	}
	classes, err := e.classes(ctx)
	if err != nil || !e.cache.classes.seen {
		return err
	}
	var defaults []string
	for _, c := range classes {
		if isDefault(c) {
			defaults = append(defaults, c.Name)
		}
	}
	switch len(defaults) {
	case 0:
		e.warn("claim", "name a storageClassName in the volumeClaimTemplate, give an existing claim, or mark a class as default", "the cluster has no default StorageClass (it has %s): a claim that names none is never bound", classNames(classes))
	default:
		e.ok("claim", "claims that name no StorageClass get %s", and(defaults))
	}
	return nil
}

func isDefault(c storagev1.StorageClass) bool {
	return c.Annotations[defaultClassAnnotation] == "true" || c.Annotations[defaultClassAnnotationBeta] == "true"
}

func classNames(classes []storagev1.StorageClass) string {
	var names []string
	for _, c := range classes {
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return "none at all"
	}
	return strings.Join(names, ", ")
}

// claim examines a PersistentVolumeClaim. For is what it is for, as in "workspace
// shared"; it may be empty.
func (e *exam) claim(ctx context.Context, name, use string) error {
	if _, done := e.claims[name]; done {
		return nil
	}
	before := e.report.Count(Problem)
	err := e.lookAtClaim(ctx, name, use)
	e.claims[name] = e.report.Count(Problem) == before
	return err
}

func (e *exam) lookAtClaim(ctx context.Context, name, use string) error {
	if use != "" {
		use = " (" + use + ")"
	}
	c, err := e.Kube.CoreV1().PersistentVolumeClaims(e.o.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		e.problem("claim", "create the claim (pv/ has files for it), or use a volumeClaimTemplate", "claim %s%s does not exist in namespace %s", name, use, e.o.Namespace)
		return nil
	}
	if err != nil {
		return e.cannotSee("claim", "persistent volume claims", err)
	}
	what := fmt.Sprintf("claim %s%s", name, use)
	switch {
	case c.DeletionTimestamp != nil:
		e.problem("claim", "let what mounts it end, or use another claim", "%s is being deleted and waits for the pods that mount it: no new pod can", what)
	case c.Status.Phase == corev1.ClaimLost:
		e.problem("claim", "restore the volume, or delete the claim and create it again (its data are gone)", "%s is lost: its volume %s does not exist any more", what, c.Spec.VolumeName)
	case c.Status.Phase == corev1.ClaimBound:
		e.boundClaim(what, c)
		return e.claimUsers(ctx, what, c)
	default:
		return e.pendingClaim(ctx, what, c)
	}
	return nil
}

func (e *exam) boundClaim(what string, c *corev1.PersistentVolumeClaim) {
	size := c.Status.Capacity[corev1.ResourceStorage]
	modes := c.Status.AccessModes
	if len(modes) == 0 {
		modes = c.Spec.AccessModes
	}
	written := fmt.Sprintf("%s is bound to volume %s: %s, %s", what, c.Spec.VolumeName, schedule.Quantity(corev1.ResourceStorage, size), modesInWords(modes))
	switch {
	case slices.Contains(modes, corev1.ReadWriteOnce) || slices.Contains(modes, corev1.ReadWriteMany):
		e.ok("claim", "%s", written)
	case slices.Contains(modes, corev1.ReadWriteOncePod):
		e.problem("claim", "use a claim with access mode ReadWriteOnce or ReadWriteMany", "%s: only one pod at a time may mount it, and Tekton's affinity assistant is already one", written)
	default:
		e.problem("claim", "use a claim with access mode ReadWriteOnce or ReadWriteMany", "%s: the tasks have to write to it", written)
	}
}

func modesInWords(modes []corev1.PersistentVolumeAccessMode) string {
	var words []string
	for _, m := range modes {
		words = append(words, string(m))
	}
	return strings.Join(words, ", ")
}

// claimUsers says who has a claim mounted besides the run itself.
func (e *exam) claimUsers(ctx context.Context, what string, c *corev1.PersistentVolumeClaim) error {
	pods, err := e.Kube.CoreV1().Pods(e.o.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return e.cannotSee("claim", "pods", err)
	}
	var users []string
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || p.Labels[pipelineRunLabel] == e.run && e.run != "" {
			continue
		}
		if slices.Contains(schedule.ClaimsOf(&p), c.Name) {
			users = append(users, p.Name)
		}
	}
	if len(users) > 0 {
		e.warn("claim", "give each run a claim of its own (volumeClaimTemplate), or let the others end first", "%s is mounted by other pods too: %s", what, and(first(users, 3)))
	}
	return nil
}

// pendingClaim finds out why a claim has no volume.
func (e *exam) pendingClaim(ctx context.Context, what string, c *corev1.PersistentVolumeClaim) error {
	if c.Spec.VolumeName != "" {
		return e.namedVolume(ctx, what, c)
	}
	events, err := e.eventsOf(ctx, c.UID)
	if err != nil {
		return err
	}
	classes, err := e.classes(ctx)
	if err != nil {
		return err
	}
	name, class := className(c), (*storagev1.StorageClass)(nil)
	for i := range classes {
		if classes[i].Name == name {
			class = &classes[i]
		}
	}
	failed, isFailed := newestWarning(events, "ProvisioningFailed", "FailedBinding")
	switch {
	case name == "" && c.Spec.StorageClassName == nil:
		e.problem("claim", "name one of the classes in the claim, or mark one as default: "+classNames(classes), "%s is not bound: it names no StorageClass and the cluster has no default", what)
	case name == "":
		return e.staticVolumes(ctx, what, c)
	case class == nil && e.cache.classes.seen:
		e.problem("claim", "correct the name, or create the class", "%s is not bound: StorageClass %s does not exist; there are %s", what, name, classNames(classes))
	case isFailed && class != nil && class.Provisioner != noProvisioner:
		e.problem("claim", "look at the provisioner "+class.Provisioner+" and at what the claim asks for", "%s is not bound: StorageClass %s could not make a volume: %s", what, name, failed.Message)
	case class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer && c.Annotations["volume.kubernetes.io/selected-node"] == "":
		e.ok("claim", "%s has no volume yet: StorageClass %s makes one when the first pod that mounts it gets a node", what, name)
	case class != nil && class.Provisioner == noProvisioner:
		return e.staticVolumes(ctx, what, c)
	case e.Now().Sub(c.CreationTimestamp.Time) < patience:
		e.ok("claim", "%s has no volume yet: StorageClass %s is making one", what, name)
	default:
		provisioner := "its provisioner"
		if class != nil {
			provisioner = class.Provisioner
		}
		e.problem("claim", "look at the pods and logs of "+provisioner, "%s is not bound, %s after it was created: StorageClass %s leaves it to %s, which has not made a volume", what, ago(e.Now().Sub(c.CreationTimestamp.Time)), name, provisioner)
	}
	return nil
}

// className is the class that a claim names, by field or by the old annotation.
func className(c *corev1.PersistentVolumeClaim) string {
	if name := c.Annotations[corev1.BetaStorageClassAnnotation]; name != "" {
		return name
	}
	if c.Spec.StorageClassName == nil {
		return ""
	}
	return *c.Spec.StorageClassName
}
