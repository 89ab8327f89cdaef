package manifest

import (
	"context"
	"fmt"
	"strings"

	"github.com/tektoncd/pipeline/pkg/apis/config"
	"github.com/tektoncd/triggers/pkg/apis/triggers/contexts"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"knative.dev/pkg/apis"
)

// FeatureFlags is what the project asks of Tekton's ConfigMap feature-flags,
// beyond Tekton's defaults.
func FeatureFlags() map[string]string {
	return map[string]string{
		// Tekton's own init containers run in namespaces that enforce "restricted".
		"set-security-context": "true",
	}
}

// Context returns a context in which Tekton's code sees FeatureFlags.
func Context(ctx context.Context) (context.Context, error) {
	flags, err := config.NewFeatureFlagsFromMap(FeatureFlags())
	if err != nil {
		return nil, err
	}
	c := *config.FromContextOrDefaults(ctx)
	c.FeatureFlags = flags
	// Triggers' webhook asks for all defaults in this way.
	return contexts.WithUpgradeViaDefaulting(config.ToContext(ctx, &c)), nil
}

// Validate runs what an API server would: the checks of metadata for every object,
// defaulting and validation by Tekton's own code for Tekton's. The objects are not
// changed.
func Validate(ctx context.Context, objects ...Object) error {
	ctx, err := Context(ctx)
	if err != nil {
		return err
	}
	var problems Problems
	for _, o := range objects {
		problems = append(problems, o.validate(apis.WithinCreate(ctx))...)
	}
	return problems.Err()
}

func (o Object) validate(ctx context.Context) Problems {
	problems := o.metadata()
	typed := o.Typed.DeepCopyObject()
	if m, ok := typed.(interface {
		GetName() string
		GetGenerateName() string
		SetName(string)
	}); ok && m.GetName() == "" {
		// An API server makes a name before admission sees the object.
		m.SetName(m.GetGenerateName() + "xxxxx")
	}
	if d, ok := typed.(apis.Defaultable); ok {
		d.SetDefaults(ctx)
	}
	if v, ok := typed.(apis.Validatable); ok {
		problems = append(problems, o.fieldErrors(v.Validate(ctx))...)
	}
	for i, inner := range o.Nested {
		problems = append(problems, o.within(fmt.Sprintf("spec.resourcetemplates[%d]", i), inner.validate(ctx))...)
	}
	return problems
}

// metadata checks names, labels and annotations by Kubernetes' own rules.
func (o Object) metadata() Problems {
	m := o.Meta()
	at := field.NewPath("metadata")
	names := apivalidation.NameIsDNSSubdomain
	if o.Kind.Group == "rbac.authorization.k8s.io" {
		names = pathSegment
	}
	var errs field.ErrorList
	if m.GetName() != "" {
		for _, text := range names(m.GetName(), false) {
			errs = append(errs, field.Invalid(at.Child("name"), m.GetName(), text))
		}
	}
	if m.GetGenerateName() != "" {
		for _, text := range names(m.GetGenerateName(), true) {
			errs = append(errs, field.Invalid(at.Child("generateName"), m.GetGenerateName(), text))
		}
	}
	if ns := m.GetNamespace(); ns != "" {
		for _, text := range apivalidation.ValidateNamespaceName(ns, false) {
			errs = append(errs, field.Invalid(at.Child("namespace"), ns, text))
		}
	}
	errs = append(errs, metav1validation.ValidateLabels(m.GetLabels(), at.Child("labels"))...)
	errs = append(errs, apivalidation.ValidateAnnotations(m.GetAnnotations(), at.Child("annotations"))...)
	var problems Problems
	for _, e := range errs {
		problems = append(problems, o.At(e.Field, e.ErrorBody()))
	}
	return problems
}

// pathSegment is the rule for names of roles: what can stand in a URL.
func pathSegment(name string, _ bool) []string {
	if name == "." || name == ".." || strings.ContainsAny(name, "/%") {
		return []string{`must not be "." or ".." and must not contain "/" or "%"`}
	}
	return nil
}
