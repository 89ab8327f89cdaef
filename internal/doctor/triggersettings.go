package doctor

import (
	"context"
	"fmt"
	"strings"

	triggersv1 "github.com/tektoncd/triggers/pkg/apis/triggers/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// zeroDigest is what files have in place of a digest that nobody can know beforehand.
const zeroDigest = "@sha256:0000000000000000000000000000000000000000000000000000000000000000"

// placeholderRegistry is the registry of the settings that somebody has to write.
const placeholderRegistry = "registry.example.com"

// triggers examines what the Triggers of a listener refer to. There is one for each
// kind of forge and few have all of them, so a Secret that is not there is a problem
// only when none is.
func (p *push) triggers(ctx context.Context, listener string, all []trigger) error {
	if len(all) == 0 {
		p.say(p.level, "kubectl apply -k triggers, and look at the labels that the listener selects", nil, "listener %s has no Trigger: it answers every push and starts nothing", listener)
		return nil
	}
	var open, without []trigger
	var good []trigger
	for _, t := range all {
		refs := secretsOf(t.spec)
		if len(refs) == 0 {
			without = append(without, t)
			continue
		}
		there, sound, err := p.webhookSecrets(ctx, t.name, refs)
		switch {
		case err != nil:
			return err
		case !there:
			open = append(open, t)
			continue
		}
		p.level = Problem
		if sound {
			good = append(good, t)
		}
	}
	if len(without) > 0 {
		p.level = Problem // whoever wrote a Trigger without a Secret uses it
	}
	for _, t := range without {
		p.say(Warning, "give an interceptor of it a secretRef, before all others", nil, "Trigger %s checks no secret: whoever reaches the listener may start runs", t.name)
	}
	if len(open) == len(all) {
		var secrets []string
		for _, t := range open {
			for _, ref := range secretsOf(t.spec) {
				secrets = append(secrets, ref.Name)
			}
		}
		// Nor does it have to: it is installed with the rest.
		p.ok("trigger", "listener %s takes no push until there is a Secret %s with the secret of a forge's webhook (docs/trigger.md)", listener, or(secrets))
		return nil
	}
	for _, t := range all {
		if err := p.references(ctx, t); err != nil {
			return err
		}
	}
	for _, t := range open { // most have one forge
		p.ok("trigger", "Trigger %s takes no push: there is no Secret %s", t.name, secretsOf(t.spec)[0].Name)
	}
	for _, t := range good {
		p.ok("trigger", "Trigger %s takes the pushes that are signed with Secret %s", t.name, secretsOf(t.spec)[0].Name)
	}
	return nil
}

// or joins words as a sentence does: "a", "a or b", "a, b or c".
func or(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// webhookSecrets examines the Secrets of a Trigger: whether they are there at all, and
// whether what is in them can be what the forge has. What may not be seen is taken to
// be good.
func (p *push) webhookSecrets(ctx context.Context, trigger string, refs []secretRef) (there, sound bool, err error) {
	sound = true
	for _, ref := range refs {
		s, there, err := p.secret(ctx, ref.Name)
		if err != nil || !there {
			return false, false, err
		}
		if s == nil {
			continue // said already
		}
		value, has := s.Data[ref.Key]
		remedy := fmt.Sprintf("kubectl create secret generic %s --from-literal=%s=…, with what the forge's webhook has as its secret", ref.Name, ref.Key)
		var what string
		switch {
		case !has:
			what = fmt.Sprintf("Secret %s has no key %s, only %s", s.Name, ref.Key, and(sortedNames(s.Data)))
			if len(s.Data) == 0 {
				what = fmt.Sprintf("Secret %s has no key %s and no other", s.Name, ref.Key)
			}
		case len(value) == 0:
			what = fmt.Sprintf("Secret %s: the value of %s is empty", s.Name, ref.Key)
		case strings.TrimSpace(string(value)) != string(value):
			what = fmt.Sprintf("Secret %s: the value of %s has a space or line break at an end, which counts too", s.Name, ref.Key)
			remedy = "create it again without (printf, not echo), unless the webhook's secret has it too"
		default:
			continue
		}
		sound = false
		p.say(Problem, remedy, nil, "%s: Trigger %s refuses every push", what, trigger)
	}
	return true, sound, nil
}

// references examines bindings and template of a Trigger.
func (p *push) references(ctx context.Context, t trigger) error {
	api := p.Triggers.TriggersV1beta1()
	for _, b := range t.spec.Bindings {
		switch {
		case b == nil:
		case b.Ref == "" && b.Value != nil:
			p.placeholders("Trigger "+t.name, []triggersv1.Param{{Name: b.Name, Value: *b.Value}})
		case b.Ref != "" && b.Kind != triggersv1.ClusterTriggerBindingKind:
			binding, err := api.TriggerBindings(p.o.Namespace).Get(ctx, b.Ref, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				p.say(p.level, "create it (triggers/ has ours), or name another", nil, "Trigger %s refers to TriggerBinding %s, which does not exist: no push starts a run", t.name, b.Ref)
				continue
			}
			if err != nil {
				return p.cannotSee("trigger", "trigger bindings", err)
			}
			p.placeholders("TriggerBinding "+binding.Name, binding.Spec.Params)
		}
	}
	if ref := t.spec.Template.Ref; ref != nil {
		_, err := api.TriggerTemplates(p.o.Namespace).Get(ctx, *ref, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			p.say(p.level, "create it (triggers/ has ours), or name another", nil, "Trigger %s refers to TriggerTemplate %s, which does not exist: no push starts a run", t.name, *ref)
			return nil
		}
		if err != nil {
			return p.cannotSee("trigger", "trigger templates", err)
		}
	}
	return nil
}

// placeholders says which settings nobody has written yet.
func (p *push) placeholders(where string, params []triggersv1.Param) {
	for _, param := range params {
		switch {
		case strings.HasSuffix(param.Value, zeroDigest):
			p.say(p.level, "name an image that exists: yard plan prints the digest of a builder's tag", nil, "%s: %s is still the placeholder with a digest of zeros: runs of pushes fail", where, param.Name)
		case param.Value == placeholderRegistry, strings.HasPrefix(param.Value, placeholderRegistry+"/"):
			p.say(p.level, "name your registry and repository there", nil, "%s: %s is still the placeholder %s: runs of pushes fail", where, param.Name, param.Value)
		}
	}
}
