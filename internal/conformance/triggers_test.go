package conformance

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	triggersv1beta1 "github.com/tektoncd/triggers/pkg/apis/triggers/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/trainyard/trainyard/internal/manifest"
)

// trigger is as much of a Trigger as is the same for all forges, or must not be.
type trigger struct {
	*triggersv1beta1.Trigger
	params []map[string]string // of each interceptor, as JSON
}

func triggersOf(t *testing.T, objects []manifest.Object) (all []trigger) {
	t.Helper()
	for _, o := range objects {
		tr, ok := o.Typed.(*triggersv1beta1.Trigger)
		if !ok {
			continue
		}
		one := trigger{Trigger: tr}
		for _, i := range tr.Spec.Interceptors {
			params := map[string]string{}
			for _, p := range i.Params {
				params[p.Name] = string(p.Value.Raw)
			}
			one.params = append(one.params, params)
		}
		all = append(all, one)
	}
	return all
}

func interceptorsOf(tr trigger) (all []string) {
	for _, i := range tr.Spec.Interceptors {
		all = append(all, *i.Name+" "+i.GetName()+" "+string(i.Ref.Kind))
	}
	return all
}

// The secret first, then the settings, the forge's fields, the filter; one of each.
func TestTriggersAskForTheSecretFirst(t *testing.T) {
	r := load(t)
	want := map[string]string{"github": "github", "gitlab": "gitlab", "gitea": "github"}
	all := triggersOf(t, r.objects)
	if len(all) != len(want) {
		t.Errorf("%d Triggers, want %d", len(all), len(want))
	}
	for _, tr := range all {
		order := []string{"secret " + want[tr.Name] + " ClusterInterceptor", "allowed cel ClusterInterceptor", "push cel ClusterInterceptor", "filter cel ClusterInterceptor"}
		if !slices.Equal(interceptorsOf(tr), order) {
			t.Errorf("Trigger %s: interceptors %q, want %q", tr.Name, interceptorsOf(tr), order)
			continue
		}
		var ref triggersv1beta1.SecretRef
		if err := json.Unmarshal([]byte(tr.params[0]["secretRef"]), &ref); err != nil || ref.SecretName != tr.Name+"-webhook" || ref.SecretKey != "secret" {
			t.Errorf("Trigger %s: secret %+v, %v", tr.Name, ref, err)
		}
		if tr.params[0]["eventTypes"] == "" {
			t.Errorf("Trigger %s: takes every event", tr.Name)
		}
		example := slices.ContainsFunc(r.objects, func(o manifest.Object) bool {
			s, ok := o.Typed.(*corev1.Secret)
			if !ok || s.Name != ref.SecretName {
				return false
			}
			_, ok = s.StringData[ref.SecretKey]
			return ok
		})
		if !example {
			t.Errorf("Trigger %s: triggers/examples has no Secret %s with the key %s", tr.Name, ref.SecretName, ref.SecretKey)
		}
	}
}

// What is allowed is decided once. The settings differ in nothing but the address.
func TestTheFilterIsTheSameInAllTriggers(t *testing.T) {
	all := triggersOf(t, load(t).objects)
	host := regexp.MustCompile(`https://[a-z.]+/`)
	for _, tr := range all[1:] {
		for key, text := range tr.params[3] {
			if all[0].params[3][key] != text {
				t.Errorf("Triggers %s and %s: interceptor filter, %s differ:\n%s\n%s", all[0].Name, tr.Name, key, all[0].params[3][key], text)
			}
		}
		one, other := host.ReplaceAllString(all[0].params[1]["overlays"], ""), host.ReplaceAllString(tr.params[1]["overlays"], "")
		if one != other {
			t.Errorf("Triggers %s and %s: settings differ:\n%s\n%s", all[0].Name, tr.Name, one, other)
		}
	}
}

// No label, no run: the listener takes the Triggers that it selects.
func TestTheListenerSelectsTheTriggers(t *testing.T) {
	r := load(t)
	for _, o := range r.objects {
		l, ok := o.Typed.(*triggersv1beta1.EventListener)
		if !ok {
			continue
		}
		s, err := metav1.LabelSelectorAsSelector(l.Spec.LabelSelector)
		if err != nil {
			t.Fatal(err)
		}
		for _, tr := range triggersOf(t, r.objects) {
			if s.Empty() || !s.Matches(labels.Set(tr.Labels)) {
				t.Errorf("%s does not select Trigger %s by a label", o, tr.Name)
			}
		}
		if len(l.Spec.NamespaceSelector.MatchNames) > 0 {
			t.Errorf("%s looks into other namespaces", o)
		}
	}
}

// Triggers escapes nothing, so that what a template gets must have been checked: it is
// in extensions.run and extensions.push, never the body or a header.
func TestTemplatesGetWhatWasCheckedOnly(t *testing.T) {
	r := load(t)
	given := map[string]string{}
	for _, o := range r.objects {
		b, ok := o.Typed.(*triggersv1beta1.TriggerBinding)
		if !ok {
			continue
		}
		for _, p := range b.Spec.Params {
			if _, twice := given[p.Name]; twice {
				t.Errorf("parameter %s is bound twice", p.Name)
			}
			given[p.Name] = p.Value
			reference := regexp.MustCompile(`^\$\(extensions\.(push\.(forge|repository|branch|commit|before)|run\.[a-z]+)\)$`)
			if strings.Contains(p.Value, "$") && !reference.MatchString(p.Value) {
				t.Errorf("%s: parameter %s is %s", o, p.Name, p.Value)
			}
		}
	}
	for _, o := range r.objects {
		template, ok := o.Typed.(*triggersv1beta1.TriggerTemplate)
		if !ok {
			continue
		}
		declared := map[string]bool{}
		for _, p := range template.Spec.Params {
			declared[p.Name] = true
			if _, ok := given[p.Name]; !ok {
				t.Errorf("%s: nothing binds parameter %s", o, p.Name)
			}
			if p.Description == "" || p.Default != nil {
				t.Errorf("%s: parameter %s has no description, or a default that would hide a missing value", o, p.Name)
			}
		}
		used := map[string]bool{}
		for _, inner := range template.Spec.ResourceTemplates {
			for _, m := range regexp.MustCompile(`\$\(([^)]*)\)`).FindAllStringSubmatch(string(inner.Raw), -1) {
				name, ok := strings.CutPrefix(m[1], "tt.params.")
				used[name] = true
				if !ok || !declared[name] {
					t.Errorf("%s: uses $(%s)", o, m[1])
				}
			}
		}
		for name := range given {
			if !used[name] || !declared[name] {
				t.Errorf("%s: parameter %s is bound and not used", o, name)
			}
		}
	}
}

// One run a push, named by the push.
func TestATemplateMakesOneRunThatWaits(t *testing.T) {
	r := load(t)
	if len(r.pushed) != 1 {
		t.Fatalf("%d runs in templates, want one", len(r.pushed))
	}
	run := r.pushed[0]
	if run.Name == "" || run.GenerateName != "" || run.Spec.Status != "PipelineRunPending" {
		t.Errorf("name %q, generateName %q, status %q: a second delivery would start a second run, or one that does not wait", run.Name, run.GenerateName, run.Spec.Status)
	}
}
