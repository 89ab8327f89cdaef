package doctor

import (
	"context"
	"fmt"
	"slices"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reference is a ConfigMap or Secret that a container cannot start without. Tekton
// waits for it silently until the run times out.
type reference struct {
	kind, name, key string // kind is ConfigMap or Secret; an empty key is any
}

// references lists what the containers of a task cannot start without.
func references(spec *pipelinev1.TaskSpec) []reference {
	var refs []reference
	add := func(optional *bool, kind, name, key string) {
		if r := (reference{kind, name, key}); name != "" && (optional == nil || !*optional) && !slices.Contains(refs, r) {
			refs = append(refs, r)
		}
	}
	env := func(vars []corev1.EnvVar, from []corev1.EnvFromSource) {
		for _, v := range vars {
			if v.ValueFrom == nil {
				continue
			}
			if s := v.ValueFrom.SecretKeyRef; s != nil {
				add(s.Optional, "Secret", s.Name, s.Key)
			}
			if c := v.ValueFrom.ConfigMapKeyRef; c != nil {
				add(c.Optional, "ConfigMap", c.Name, c.Key)
			}
		}
		for _, f := range from {
			if s := f.SecretRef; s != nil {
				add(s.Optional, "Secret", s.Name, "")
			}
			if c := f.ConfigMapRef; c != nil {
				add(c.Optional, "ConfigMap", c.Name, "")
			}
		}
	}
	if spec.StepTemplate != nil {
		env(spec.StepTemplate.Env, spec.StepTemplate.EnvFrom)
	}
	for _, s := range spec.Steps {
		env(s.Env, s.EnvFrom)
	}
	for _, s := range spec.Sidecars {
		env(s.Env, s.EnvFrom)
	}
	for _, v := range spec.Volumes {
		for _, r := range volumeReferences(v) {
			add(nil, r.kind, r.name, r.key)
		}
	}
	return refs
}

func volumeReferences(v corev1.Volume) []reference {
	var refs []reference
	items := func(kind, name string, optional *bool, items []corev1.KeyToPath) {
		if optional != nil && *optional {
			return
		}
		refs = append(refs, reference{kind: kind, name: name})
		for _, i := range items {
			refs = append(refs, reference{kind, name, i.Key})
		}
	}
	if s := v.Secret; s != nil {
		items("Secret", s.SecretName, s.Optional, s.Items)
	}
	if c := v.ConfigMap; c != nil {
		items("ConfigMap", c.Name, c.Optional, c.Items)
	}
	if v.Projected == nil {
		return refs
	}
	for _, source := range v.Projected.Sources {
		if s := source.Secret; s != nil {
			items("Secret", s.Name, s.Optional, s.Items)
		}
		if c := source.ConfigMap; c != nil {
			items("ConfigMap", c.Name, c.Optional, c.Items)
		}
	}
	return refs
}

// resolve examines that what a task refers to is there.
func (e *exam) resolve(ctx context.Context, task string, spec *pipelinev1.TaskSpec, known params) error {
	for _, r := range references(spec) {
		var all [3]bool
		r.name, all[0] = known.fill(r.name)
		r.key, all[1] = known.fill(r.key)
		if !all[0] || !all[1] || r.name == "" {
			continue // named by what only the run will know, or left empty
		}
		keys, there, err := e.keysOf(ctx, r)
		if err != nil {
			return err
		}
		remedy := fmt.Sprintf("create it in namespace %s; until then the pod of the task waits, and Tekton says nothing until the run times out", e.o.Namespace)
		switch {
		case !there:
			e.problem("reference", remedy, "task %s needs %s %s, which does not exist", task, r.kind, r.name)
		case keys != nil && r.key != "" && !slices.Contains(keys, r.key):
			e.problem("reference", remedy, "task %s needs the key %s of %s %s, which has only %s", task, r.key, r.kind, r.name, and(keys))
		}
	}
	return nil
}

// keysOf returns the keys of a ConfigMap or Secret; nil when it may not be seen.
func (e *exam) keysOf(ctx context.Context, r reference) (keys []string, there bool, err error) {
	if r.kind == "Secret" {
		s, there, err := e.secret(ctx, r.name)
		if s == nil {
			return nil, there, err
		}
		return append([]string{}, sortedNames(s.Data)...), true, nil
	}
	c, err := e.Kube.CoreV1().ConfigMaps(e.o.Namespace).Get(ctx, r.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, true, e.cannotSee("reference", "config maps", err)
	}
	keys = append([]string{}, sortedNames(c.Data)...)
	return append(keys, sortedNames(c.BinaryData)...), true, nil
}
