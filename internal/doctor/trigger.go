package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	triggersv1 "github.com/tektoncd/triggers/pkg/apis/triggers/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/trainyard/trainyard/internal/manifest"
)

// testedTriggers is the release that our Triggers are made for: their expressions use
// functions that older ones lack.
const testedTriggers = "0.37.0"

// What triggers/commit-status installs, and the Secret that it reads.
const (
	statusDeployment = "trainyard-commit-status"
	statusTokens     = "commit-status-tokens"
)

// pushTrigger examines what starts runs on a push, if anything here does: listeners,
// and what they and the queue need. Nobody notices otherwise, since a listener answers
// every push alike, and a run that no queue lets in waits without a word.
func (e *exam) pushTrigger(ctx context.Context) error {
	if e.Triggers == nil {
		return nil
	}
	listeners, err := e.Triggers.TriggersV1beta1().EventListeners(e.o.Namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil // no Tekton Triggers: no push starts anything, and nobody has said it should
	}
	if err != nil {
		return e.cannotSee("trigger", "event listeners", err)
	}
	if len(listeners.Items) == 0 {
		return nil
	}
	p := &push{exam: e, level: Warning}
	for i := range listeners.Items {
		if err := p.listener(ctx, &listeners.Items[i]); err != nil {
			return err
		}
	}
	return firstError(
		func() error { return p.triggersInstalled(ctx) },
		func() error { return p.queue(ctx) },
		func() error { return p.commitStatus(ctx) },
	)
}

// push is the examination of what a push sets going. Its findings are problems once
// a webhook can be set up, which takes a Secret; before that they are warnings, since
// the listener is installed with the rest and not everybody uses it.
type push struct {
	*exam
	level Level
}

func (p *push) say(level Level, remedy string, details []string, format string, args ...any) {
	p.report.add(Finding{Check: "trigger", Level: level, Message: fmt.Sprintf(format, args...), Details: details, Remedy: remedy})
}

// triggersInstalled examines Tekton Triggers itself.
func (p *push) triggersInstalled(ctx context.Context) error {
	for _, ns := range tektonNamespaces() {
		controller, err := p.Kube.AppsV1().Deployments(ns).Get(ctx, "tekton-triggers-controller", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return p.cannotSee("trigger", "deployments and config maps of namespace "+ns, err)
		}
		info, err := p.Kube.CoreV1().ConfigMaps(ns).Get(ctx, "triggers-info", metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return p.cannotSee("trigger", "deployments and config maps of namespace "+ns, err)
		}
		said := controller.Labels["app.kubernetes.io/version"]
		if err == nil {
			said = cmp.Or(info.Data["version"], said)
		}
		p.triggersVersion(ns, said)
		return p.triggersParts(ctx, ns, controller)
	}
	p.say(Warning, "look into the namespace where Tekton Triggers is installed: are its pods running?", nil,
		"no deployment tekton-triggers-controller in %s: its version and state are not known", strings.Join(tektonNamespaces(), " or "))
	return nil
}

func (p *push) triggersVersion(ns, said string) {
	v, err := version.ParseGeneric(said)
	switch {
	case err != nil:
		p.ok("trigger", "Tekton Triggers, a build without a version (%q), in namespace %s", said, ns)
	case v.LessThan(version.MustParseGeneric(testedTriggers)):
		p.say(Warning, "install "+testedTriggers+" or newer: an older one may not know the expressions of triggers/, and then lets no push in", nil,
			"Tekton Triggers %s in namespace %s is older than %s", said, ns, testedTriggers)
	default:
		p.ok("trigger", "Tekton Triggers %s in namespace %s", said, ns)
	}
}

func (p *push) triggersParts(ctx context.Context, ns string, controller *appsv1.Deployment) error {
	parts := []*appsv1.Deployment{controller}
	for _, name := range []string{"tekton-triggers-core-interceptors", "tekton-triggers-webhook"} {
		d, err := p.Kube.AppsV1().Deployments(ns).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			d, err = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns}}, nil
		}
		if err != nil {
			return p.cannotSee("trigger", "deployments and config maps of namespace "+ns, err)
		}
		parts = append(parts, d)
	}
	for _, d := range parts {
		if d.Status.AvailableReplicas > 0 {
			continue
		}
		does := map[string]string{
			"tekton-triggers-controller":        "no listener is made or changed",
			"tekton-triggers-core-interceptors": "every push fails its checks",
			"tekton-triggers-webhook":           "nothing of Triggers can be created or changed",
		}[d.Name]
		p.say(p.level, "kubectl describe deployment "+d.Name+" --namespace "+ns+", and look at its pods", nil,
			"deployment %s/%s has no pod that is ready: %s", ns, d.Name, does)
	}
	return nil
}

// listener examines one listener, its account and its Triggers.
func (p *push) listener(ctx context.Context, l *triggersv1.EventListener) error {
	triggers, err := p.triggersOf(ctx, l)
	if err != nil {
		return err
	}
	if err := p.triggers(ctx, l.Name, triggers); err != nil {
		return err
	}
	if err := p.listenerPod(ctx, l); err != nil {
		return err
	}
	return p.listenerRights(ctx, cmp.Or(l.Spec.ServiceAccountName, "default"))
}

// listenerPod examines that somebody answers the forge.
func (p *push) listenerPod(ctx context.Context, l *triggersv1.EventListener) error {
	var not []string
	for _, c := range l.Status.Conditions {
		if !c.IsTrue() && c.Message != "" {
			not = append(not, string(c.Type)+": "+c.Message)
		}
	}
	name := cmp.Or(l.Status.Configuration.GeneratedResourceName, "el-"+l.Name)
	d, err := p.Kube.AppsV1().Deployments(l.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		p.say(p.level, "see what the controller of Tekton Triggers says: kubectl describe eventlistener "+l.Name, not,
			"listener %s has no deployment %s: nobody answers the forge", l.Name, name)
		return nil
	}
	if err != nil {
		return p.cannotSee("trigger", "deployments", err)
	}
	up, err := p.deployment(ctx, d, "nobody answers the forge", not)
	if err == nil && up && l.Status.Address != nil && l.Status.Address.URL != nil {
		p.ok("trigger", "listener %s answers at %s", l.Name, l.Status.Address.URL)
	}
	return err
}

// deployment examines a Deployment, and what keeps its pods.
func (p *push) deployment(ctx context.Context, d *appsv1.Deployment, without string, details []string) (up bool, err error) {
	if d.Status.AvailableReplicas > 0 {
		return true, nil
	}
	what := fmt.Sprintf("deployment %s has no pod that is ready: %s", d.Name, without)
	remedy := "kubectl describe deployment " + d.Name + ", and look at its pods"
	if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		p.say(p.level, "kubectl scale deployment "+d.Name+" --replicas=1", nil, "deployment %s is scaled down to nothing: %s", d.Name, without)
		return false, nil
	}
	if p.Now().Sub(d.CreationTimestamp.Time) < patience {
		p.say(Warning, "ask again in a minute", nil, "deployment %s was made a moment ago and has no pod that is ready yet", d.Name)
		return false, nil
	}
	pods, err := p.Kube.CoreV1().Pods(d.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector)})
	if err != nil {
		if err := p.cannotSee("trigger", "pods", err); err != nil {
			return false, err
		}
		pods = nil
	}
	if pods != nil {
		for i := range pods.Items {
			pod := &pods.Items[i]
			if _, err := p.pod(ctx, "the pod of deployment "+d.Name+" ("+pod.Name+")", pod); err != nil {
				return false, err
			}
			for _, c := range pod.Status.ContainerStatuses {
				if said := lastWords(p.lastLines(ctx, pod.Namespace, pod.Name, c.Name)); !c.Ready && said != "" {
					details = append(details, pod.Name+" says: "+said)
				}
			}
		}
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Message != "" {
			details = append(details, c.Message)
		}
	}
	p.say(p.level, remedy, details, "%s", what)
	return false, nil
}

// queue examines what lets the runs of pushes in.
func (p *push) queue(ctx context.Context) error {
	found, err := p.service(ctx, service{
		name: queueDeployment, does: "lets the runs of pushes in", without: "the runs that pushes start stay pending",
		rights: "bind it to the Role of triggers/queue: role-binding.yaml there", needs: queueNeeds(),
	})
	if err == nil && !found {
		p.say(p.level, "kubectl apply -k triggers/queue, or what else holds it in your installation", nil,
			"there is no deployment %s: the runs that pushes start stay pending for ever", queueDeployment)
	}
	return err
}

// commitStatus examines what tells the forges, where somebody has switched it on.
func (p *push) commitStatus(ctx context.Context) error {
	found, err := p.service(ctx, service{
		name: statusDeployment, does: "tells the forges how runs fare", without: "no forge is told how a run fares",
		rights: "bind it to the Role of triggers/commit-status: role-binding.yaml there", needs: statusNeeds(),
	})
	if err != nil || !found {
		return err
	}
	s, there, err := p.secret(ctx, statusTokens)
	if err != nil || there && s == nil {
		return err
	}
	var forges []string
	if there {
		for _, key := range sortedNames(s.Data) {
			if len(strings.TrimSpace(string(s.Data[key]))) > 0 {
				forges = append(forges, key)
			}
		}
	}
	if len(forges) == 0 {
		p.say(Warning, "kubectl create secret generic "+statusTokens+" --from-file=github=TOKEN-FILE, or gitlab, or gitea (docs/trigger.md)", nil,
			"deployment %s runs, and Secret %s has no token for it: no forge is told how a run fares", statusDeployment, statusTokens)
		return nil
	}
	p.ok("trigger", "Secret %s has tokens for %s", statusTokens, and(forges))
	return nil
}

// service is a Deployment of ours that does something for pushes.
type service struct {
	name, does, without string
	rights              string // what to do when they are missing
	needs               []right
}

// service examines one by its label, since an overlay may give it another name.
func (p *push) service(ctx context.Context, s service) (found bool, err error) {
	list, err := p.Kube.AppsV1().Deployments(p.o.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + s.name})
	if err != nil {
		return true, p.cannotSee("trigger", "deployments", err)
	}
	for i := range list.Items {
		d := &list.Items[i]
		for _, c := range d.Spec.Template.Spec.Containers {
			if c.Image == manifest.Placeholder || strings.HasSuffix(c.Image, zeroDigest) {
				p.say(p.level, "apply it rendered with the digest of an image: that of a release, of yard render, or of kustomize with an image set", nil,
					"deployment %s has the placeholder %s for an image: %s", d.Name, c.Image, s.without)
			}
		}
		up, err := p.deployment(ctx, d, s.without, nil)
		if err != nil {
			return true, err
		}
		if up {
			p.ok("trigger", "deployment %s %s", d.Name, s.does)
		}
		if err := p.rights(ctx, cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default"), s.without, s.rights, s.needs); err != nil {
			return true, err
		}
	}
	return len(list.Items) > 0, nil
}

// trigger is one of those that a listener asks.
type trigger struct {
	name string
	spec triggersv1.TriggerSpec
}

// triggersOf lists those of this namespace: named, selected, or written into the
// listener itself.
func (p *push) triggersOf(ctx context.Context, l *triggersv1.EventListener) ([]trigger, error) {
	var all []trigger
	named := map[string]bool{}
	for _, t := range l.Spec.Triggers {
		if t.TriggerRef != "" {
			named[t.TriggerRef] = true
			continue
		}
		spec := triggersv1.TriggerSpec{Bindings: t.Bindings, Interceptors: t.Interceptors, Name: t.Name}
		if t.Template != nil {
			spec.Template = *t.Template
		}
		all = append(all, trigger{cmp.Or(t.Name, "of listener "+l.Name), spec})
	}
	selects := func(triggersv1.Trigger) bool { return false }
	here := len(l.Spec.NamespaceSelector.MatchNames) == 0 || slices.ContainsFunc(l.Spec.NamespaceSelector.MatchNames, func(n string) bool { return n == l.Namespace || n == "*" })
	if here && (l.Spec.LabelSelector != nil || len(l.Spec.NamespaceSelector.MatchNames) > 0) {
		selector, err := metav1.LabelSelectorAsSelector(cmp.Or(l.Spec.LabelSelector, &metav1.LabelSelector{}))
		if err != nil {
			p.say(p.level, "correct it", nil, "listener %s: its labelSelector is none: %v", l.Name, err)
			return all, nil
		}
		selects = func(t triggersv1.Trigger) bool { return selector.Matches(labels.Set(t.Labels)) }
	}
	list, err := p.Triggers.TriggersV1beta1().Triggers(l.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return all, p.cannotSee("trigger", "triggers", err)
	}
	for _, t := range list.Items {
		if named[t.Name] || selects(t) {
			all = append(all, trigger{t.Name, t.Spec})
		}
		delete(named, t.Name)
	}
	for _, name := range sortedNames(named) {
		p.say(p.level, "create it, or take it out of the listener", nil, "listener %s names Trigger %s, which does not exist", l.Name, name)
	}
	return all, nil
}

// secretRef is where an interceptor's secret is.
type secretRef struct {
	Name string `json:"secretName"`
	Key  string `json:"secretKey"`
}

// secretsOf lists the secrets that a Trigger's interceptors check pushes with.
func secretsOf(spec triggersv1.TriggerSpec) []secretRef {
	var refs []secretRef
	for _, i := range spec.Interceptors {
		if i == nil {
			continue
		}
		for _, param := range i.Params {
			var ref secretRef
			if param.Name == "secretRef" && json.Unmarshal(param.Value.Raw, &ref) == nil && ref.Name != "" {
				refs = append(refs, ref)
			}
		}
	}
	return refs
}
