package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	triggersv1beta1 "github.com/tektoncd/triggers/pkg/apis/triggers/v1beta1"
	"github.com/tektoncd/triggers/pkg/interceptors"
	"github.com/tektoncd/triggers/pkg/interceptors/cel"
	"github.com/tektoncd/triggers/pkg/interceptors/github"
	"github.com/tektoncd/triggers/pkg/interceptors/gitlab"
	"github.com/tektoncd/triggers/pkg/template"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/trainyard/trainyard/internal/manifest"
)

// namespace is where the Triggers pretend to be.
const namespace = "trainyard"

// patience is how long an interceptor may take: Triggers' own limit.
const patience = 3 * time.Second

// Secrets are the values of the key "secret" of Secrets, by the Secrets' names.
type Secrets map[string]string

// Get does what Triggers' own getter does with Secrets of a cluster.
func (s Secrets) Get(_ context.Context, _ string, ref *triggersv1beta1.SecretRef) ([]byte, error) {
	value, ok := s[ref.SecretName]
	if !ok || ref.SecretKey != "secret" {
		return nil, fmt.Errorf("secret %s has no key %s", ref.SecretName, ref.SecretKey)
	}
	return []byte(value), nil
}

// Listener is an EventListener with its Triggers, out of a cluster.
type Listener struct {
	triggers     map[string]*triggersv1beta1.Trigger
	bindings     map[string]*triggersv1beta1.TriggerBinding
	templates    map[string]*triggersv1beta1.TriggerTemplate
	interceptors map[string]triggersv1beta1.InterceptorInterface
}

// New makes the listener that an EventListener among the objects describes.
func New(ctx context.Context, objects []manifest.Object, secrets Secrets) (*Listener, error) {
	ctx, err := manifest.Context(ctx)
	if err != nil {
		return nil, err
	}
	l := &Listener{
		triggers:  map[string]*triggersv1beta1.Trigger{},
		bindings:  map[string]*triggersv1beta1.TriggerBinding{},
		templates: map[string]*triggersv1beta1.TriggerTemplate{},
		interceptors: map[string]triggersv1beta1.InterceptorInterface{
			"cel":    cel.NewInterceptor(secrets),
			"github": github.NewInterceptor(secrets),
			"gitlab": gitlab.NewInterceptor(secrets),
		},
	}
	var selectors []labels.Selector
	for _, o := range objects {
		switch t := o.Typed.DeepCopyObject().(type) {
		case *triggersv1beta1.EventListener:
			s, err := metav1.LabelSelectorAsSelector(t.Spec.LabelSelector)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o, err)
			}
			selectors = append(selectors, s)
		case *triggersv1beta1.Trigger:
			t.SetDefaults(ctx)
			l.triggers[t.Name] = t
		case *triggersv1beta1.TriggerBinding:
			l.bindings[t.Name] = t
		case *triggersv1beta1.TriggerTemplate:
			l.templates[t.Name] = t
		}
	}
	if len(selectors) != 1 {
		return nil, fmt.Errorf("%d event listeners, want one", len(selectors))
	}
	maps.DeleteFunc(l.triggers, func(_ string, t *triggersv1beta1.Trigger) bool { return !selectors[0].Matches(labels.Set(t.Labels)) })
	return l, nil
}

// Outcome is what a listener makes of a delivery.
type Outcome struct {
	Runs    map[string][]byte // what is to be created, by the name of the Trigger, as JSON
	Refused map[string]error  // why the other Triggers create nothing
}

// Deliver gives a delivery to all Triggers, as the listener does. Names of headers become
// such as a server sees, however they are written.
func (l *Listener) Deliver(ctx context.Context, header http.Header, body []byte) Outcome {
	out := Outcome{Runs: map[string][]byte{}, Refused: map[string]error{}}
	header = interceptors.Canonical(header)
	for _, name := range slices.Sorted(maps.Keys(l.triggers)) {
		objects, err := l.process(ctx, l.triggers[name], header, body)
		if err != nil {
			out.Refused[name] = err
			continue
		}
		for _, o := range objects {
			out.Runs[name] = o
		}
	}
	return out
}

func (l *Listener) process(ctx context.Context, t *triggersv1beta1.Trigger, header http.Header, body []byte) ([]json.RawMessage, error) {
	var object map[string]any
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, fmt.Errorf("invalid event body format: %w", err)
	}
	const event = "12345678-1234-1234-1234-123456789012"
	request := triggersv1beta1.InterceptorRequest{
		Body: string(body), Header: header.Clone(), Extensions: map[string]any{},
		Context: &triggersv1beta1.TriggerContext{EventURL: "/", EventID: event, TriggerID: fmt.Sprintf("namespaces/%s/triggers/%s", namespace, t.Name)},
	}
	for _, i := range t.Spec.Interceptors {
		request.InterceptorParams = interceptors.GetInterceptorParams(i)
		response, err := l.intercept(ctx, i, request)
		if err != nil {
			return nil, err
		}
		if !response.Continue {
			return nil, &Refusal{Interceptor: i.GetName(), Name: *i.Name, Message: response.Status.Message}
		}
		maps.Copy(request.Extensions, response.Extensions)
	}
	resolved, err := template.ResolveTrigger(*t, find(l.bindings), find[triggersv1beta1.ClusterTriggerBinding](nil), find(l.templates))
	if err != nil {
		return nil, err
	}
	params, err := template.ResolveParams(resolved, body, header, request.Extensions, template.NewTriggerContext(event))
	if err != nil {
		return nil, err
	}
	return template.ResolveResources(resolved.TriggerTemplate, params), nil
}

// intercept asks an interceptor as the listener does: by way of JSON.
func (l *Listener) intercept(ctx context.Context, i *triggersv1beta1.TriggerInterceptor, request triggersv1beta1.InterceptorRequest) (*triggersv1beta1.InterceptorResponse, error) {
	if i.Ref.Kind != triggersv1beta1.ClusterInterceptorKind || l.interceptors[i.GetName()] == nil || i.Name == nil {
		return nil, fmt.Errorf("interceptor %q of kind %q: not one of Triggers' own with a name", i.GetName(), i.Ref.Kind)
	}
	var sent triggersv1beta1.InterceptorRequest
	if err := throughJSON(request, &sent); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var received triggersv1beta1.InterceptorResponse
	if err := throughJSON(l.interceptors[i.GetName()].Process(ctx, &sent), &received); err != nil {
		return nil, err
	}
	return &received, nil
}

func throughJSON(from, to any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}

func find[T any](all map[string]*T) func(string) (*T, error) {
	return func(name string) (*T, error) {
		if o, ok := all[name]; ok {
			return o, nil
		}
		return nil, errors.New("there is no " + name)
	}
}

// Refusal says which interceptor of a Trigger stopped a delivery.
type Refusal struct {
	Name        string // of the interceptor in the Trigger
	Interceptor string // what it is
	Message     string
}

// Error names the interceptor and what it said.
func (r *Refusal) Error() string {
	return fmt.Sprintf("interceptor %s (%s): %s", r.Name, r.Interceptor, r.Message)
}
