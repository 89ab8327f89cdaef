package doctor

import (
	"cmp"
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// oldestTekton is the first release with all that the tasks use: stable step
// results, StepActions and the affinity assistant that inherits the run's account.
const oldestTekton = "1.0.0"

// tektonNamespaces are where Tekton is installed: by its own manifests, and by
// OpenShift Pipelines.
func tektonNamespaces() []string { return []string{"tekton-pipelines", "openshift-pipelines"} }

// tekton examines that Tekton is there, runs, and is set up as the tasks need it.
func (e *exam) tekton(ctx context.Context) error {
	_, err := e.Tekton.TektonV1().PipelineRuns(e.o.Namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		e.problem("tekton", "install Tekton Pipelines "+oldestTekton+" or newer", "the cluster does not know tekton.dev/v1: Tekton Pipelines is not installed, or too old")
		return nil
	}
	if err != nil {
		if err := e.cannotSee("tekton", "pipeline runs", err); err != nil {
			return err
		}
	}
	for _, ns := range tektonNamespaces() {
		controller, err := e.Kube.AppsV1().Deployments(ns).Get(ctx, "tekton-pipelines-controller", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			// The namespace is Tekton's own: many users may not look into it. The
			// version alone is for everybody.
			if err := e.cannotSee("tekton", "deployments and config maps of namespace "+ns, err); err != nil {
				return err
			}
			info, err := e.Kube.CoreV1().ConfigMaps(ns).Get(ctx, "pipelines-info", metav1.GetOptions{})
			if err != nil {
				return nil // said already
			}
			e.tektonVersion(ns, info.Data["version"])
			return nil
		}
		return firstError(
			func() error { return e.versionOf(ctx, ns, controller) },
			func() error { e.tektonPart(controller); return nil },
			func() error { return e.tektonParts(ctx, ns) },
			func() error { return e.tektonFlags(ctx, ns) },
		)
	}
	e.warn("tekton", "look into the namespace where Tekton is installed: are its pods running?", "no deployment tekton-pipelines-controller in %s: its version and settings are not known", strings.Join(tektonNamespaces(), " or "))
	return nil
}

// versionOf asks for the version of an installation that may be looked into.
func (e *exam) versionOf(ctx context.Context, ns string, controller *appsv1.Deployment) error {
	info, err := e.Kube.CoreV1().ConfigMaps(ns).Get(ctx, "pipelines-info", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return e.cannotSee("tekton", "config maps of namespace "+ns, err)
	}
	var said string
	if err == nil {
		said = info.Data["version"]
	}
	e.tektonVersion(ns, cmp.Or(said, controller.Labels["app.kubernetes.io/version"]))
	return nil
}

func (e *exam) tektonVersion(ns, said string) {
	v, err := version.ParseGeneric(said)
	switch {
	case err != nil:
		e.ok("tekton", "Tekton Pipelines, a build without a version (%q), in namespace %s", said, ns)
	case v.LessThan(version.MustParseGeneric(oldestTekton)):
		e.problem("tekton", "install "+oldestTekton+" or newer", "Tekton Pipelines %s in namespace %s is older than %s, which the tasks need", said, ns, oldestTekton)
	default:
		e.ok("tekton", "Tekton Pipelines %s in namespace %s", said, ns)
	}
}

func (e *exam) tektonParts(ctx context.Context, ns string) error {
	for _, part := range []struct {
		namespaces []string
		name       string
	}{
		{[]string{ns}, "tekton-pipelines-webhook"},
		{[]string{"tekton-pipelines-resolvers", ns}, "tekton-pipelines-remote-resolvers"},
	} {
		found := false
		for _, where := range part.namespaces {
			d, err := e.Kube.AppsV1().Deployments(where).Get(ctx, part.name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return e.cannotSee("tekton", "deployments of namespace "+where, err)
			}
			found = true
			e.tektonPart(d)
			break
		}
		if !found && strings.HasSuffix(part.name, "resolvers") {
			e.warn("tekton", "install Tekton's resolvers if tasks come from a bundle or from git", "Tekton's resolvers are not installed: only tasks in the namespace can be used")
		}
	}
	return nil
}

func (e *exam) tektonPart(d *appsv1.Deployment) {
	if d.Status.AvailableReplicas > 0 {
		return
	}
	does := map[string]string{
		"tekton-pipelines-controller":       "no run makes progress",
		"tekton-pipelines-webhook":          "nothing of Tekton can be created or changed",
		"tekton-pipelines-remote-resolvers": "tasks from bundles and git are not found",
	}[d.Name]
	e.problem("tekton", "kubectl describe deployment "+d.Name+" --namespace "+d.Namespace+", and look at its pods", "deployment %s/%s has no pod that is ready: %s", d.Namespace, d.Name, does)
}

func (e *exam) tektonFlags(ctx context.Context, ns string) error {
	flags, err := e.Kube.CoreV1().ConfigMaps(ns).Get(ctx, "feature-flags", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		flags = &corev1.ConfigMap{} // all at their defaults
	} else if err != nil {
		return e.cannotSee("tekton", "config maps of namespace "+ns, err)
	}
	set := func(flag, value string) string {
		return "kubectl patch configmap feature-flags --namespace " + ns + ` --type merge --patch '{"data":{"` + flag + `":"` + value + `"}}'`
	}
	if flags.Data["set-security-context"] == "true" {
		e.ok("tekton", "set-security-context is true: Tekton's own containers may run in a restricted namespace")
	} else {
		e.problem("tekton", set("set-security-context", "true"), "Tekton's feature flag set-security-context is not true: a namespace that enforces the Pod Security level restricted refuses every pod of Tekton's")
	}
	if mode := cmp.Or(flags.Data["coschedule"], "workspaces"); mode != "workspaces" {
		e.warn("tekton", set("coschedule", "workspaces")+", unless the volumes can be mounted on several nodes", "Tekton's feature flag coschedule is %s: pods that share a claim of access mode ReadWriteOnce may be sent to different nodes, where they wait for ever", mode)
	}
	if mode := cmp.Or(flags.Data["results-from"], "termination-message"); mode != "termination-message" {
		e.warn("tekton", set("results-from", "termination-message"), "Tekton's feature flag results-from is %s: the tasks are made for the budget of termination-message", mode)
	}
	if flags.Data["disable-creds-init"] == "true" {
		e.ok("tekton", "disable-creds-init is true: credentials reach steps only where a task mounts them")
	}
	return nil
}
