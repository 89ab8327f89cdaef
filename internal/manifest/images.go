package manifest

import (
	"fmt"
	"regexp"

	"github.com/google/go-containerregistry/pkg/name"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	pipelinev1beta1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Placeholder is the image of the tool's steps before rendering.
const Placeholder = "ghcr.io/trainyard/yard"

// oneParameter matches an image that is one parameter and nothing else.
var oneParameter = regexp.MustCompile(`^\$\(params\.([a-zA-Z_][a-zA-Z0-9_.-]*)\)$`)

// ImageUse is one place of an object that names an image.
type ImageUse struct {
	Field  string // for example spec.steps[0].image
	Image  string
	params pipelinev1.ParamSpecs // those that it may refer to
}

// CheckImages tells where an object breaks the rule for images: each is pinned by
// digest with its registry, or is one whole parameter that is described and whose
// default, if any, is pinned. The placeholder is allowed where rendering has still
// to come.
func CheckImages(placeholder bool, objects ...Object) error {
	var problems Problems
	for _, o := range objects {
		for _, use := range o.Images() {
			if placeholder && use.Image == Placeholder {
				continue
			}
			if message := use.check(); message != "" {
				problems = append(problems, o.At(use.Field, message))
			}
		}
	}
	return problems.Err()
}

func (u ImageUse) check() string {
	if u.Image == Placeholder {
		return fmt.Sprintf("%s is a placeholder that rendering has to replace: see yard render --help", Placeholder)
	}
	m := oneParameter.FindStringSubmatch(u.Image)
	if m == nil {
		return checkPinned(u.Image)
	}
	for _, p := range u.params {
		if p.Name != m[1] {
			continue
		}
		if p.Type != "" && p.Type != pipelinev1.ParamTypeString {
			return fmt.Sprintf("parameter %s is an image, but of type %s", p.Name, p.Type)
		}
		if p.Description == "" {
			return fmt.Sprintf("parameter %s is an image without a description", p.Name)
		}
		if p.Default == nil {
			return ""
		}
		if message := checkPinned(p.Default.StringVal); message != "" {
			return fmt.Sprintf("default of parameter %s: %s", p.Name, message)
		}
		return ""
	}
	return fmt.Sprintf("parameter %s is not declared", m[1])
}

func checkPinned(image string) string {
	// Strict: without a registry the node decides where the image comes from.
	if _, err := name.NewDigest(image, name.StrictValidation); err != nil {
		return fmt.Sprintf("image %q is not pinned: write registry/repository@sha256:digest, or one parameter", image)
	}
	return ""
}

// Images lists the images that an object names: steps and their kin, those of pods
// that it describes, and image volumes, in the order of the fields.
func (o Object) Images() []ImageUse {
	var uses []ImageUse
	for i, inner := range o.Nested {
		for _, use := range inner.Images() {
			use.Field = fmt.Sprintf("spec.resourcetemplates[%d].%s", i, use.Field)
			uses = append(uses, use)
		}
	}
	return append(uses, o.ownImages()...)
}

func (o Object) ownImages() []ImageUse {
	switch t := o.Typed.(type) {
	case *pipelinev1.Task:
		return taskImages("spec", &t.Spec, nil)
	case *pipelinev1.TaskRun:
		return taskImages("spec.taskSpec", t.Spec.TaskSpec, nil)
	case *pipelinev1.Pipeline:
		return pipelineImages("spec", &t.Spec)
	case *pipelinev1.PipelineRun:
		return pipelineImages("spec.pipelineSpec", t.Spec.PipelineSpec)
	case *pipelinev1beta1.StepAction:
		return []ImageUse{{"spec.image", t.Spec.Image, t.Spec.Params}}
	case *corev1.Pod:
		return podImages("spec", &t.Spec)
	case *corev1.PodTemplate:
		return podImages("template.spec", &t.Template.Spec)
	case *corev1.ReplicationController:
		if t.Spec.Template == nil {
			return nil
		}
		return podImages("spec.template.spec", &t.Spec.Template.Spec)
	case *appsv1.Deployment:
		return podImages("spec.template.spec", &t.Spec.Template.Spec)
	case *appsv1.StatefulSet:
		return podImages("spec.template.spec", &t.Spec.Template.Spec)
	case *appsv1.DaemonSet:
		return podImages("spec.template.spec", &t.Spec.Template.Spec)
	case *appsv1.ReplicaSet:
		return podImages("spec.template.spec", &t.Spec.Template.Spec)
	case *batchv1.Job:
		return podImages("spec.template.spec", &t.Spec.Template.Spec)
	case *batchv1.CronJob:
		return podImages("spec.jobTemplate.spec.template.spec", &t.Spec.JobTemplate.Spec.Template.Spec)
	}
	return nil
}

func pipelineImages(at string, p *pipelinev1.PipelineSpec) []ImageUse {
	if p == nil {
		return nil
	}
	var uses []ImageUse
	add := func(list string, tasks []pipelinev1.PipelineTask) {
		for i, t := range tasks {
			if t.TaskSpec != nil {
				uses = append(uses, taskImages(fmt.Sprintf("%s.%s[%d].taskSpec", at, list, i), &t.TaskSpec.TaskSpec, p.Params)...)
			}
		}
	}
	add("tasks", p.Tasks)
	add("finally", p.Finally)
	return uses
}

// taskImages takes parameters of the pipeline around the task too: Tekton hands
// them down to embedded tasks.
func taskImages(at string, t *pipelinev1.TaskSpec, outer pipelinev1.ParamSpecs) []ImageUse {
	if t == nil {
		return nil
	}
	params := append(append(pipelinev1.ParamSpecs{}, t.Params...), outer...)
	var uses []ImageUse
	if t.StepTemplate != nil && t.StepTemplate.Image != "" {
		uses = append(uses, ImageUse{at + ".stepTemplate.image", t.StepTemplate.Image, params})
	}
	for i, s := range t.Steps {
		if s.Image != "" { // else from a step action or the template
			uses = append(uses, ImageUse{fmt.Sprintf("%s.steps[%d].image", at, i), s.Image, params})
		}
	}
	for i, s := range t.Sidecars {
		uses = append(uses, ImageUse{fmt.Sprintf("%s.sidecars[%d].image", at, i), s.Image, params})
	}
	return append(uses, volumeImages(at, t.Volumes, params)...)
}

func podImages(at string, p *corev1.PodSpec) []ImageUse {
	var uses []ImageUse
	for i, c := range p.InitContainers {
		uses = append(uses, ImageUse{Field: fmt.Sprintf("%s.initContainers[%d].image", at, i), Image: c.Image})
	}
	for i, c := range p.Containers {
		uses = append(uses, ImageUse{Field: fmt.Sprintf("%s.containers[%d].image", at, i), Image: c.Image})
	}
	return append(uses, volumeImages(at, p.Volumes, nil)...)
}

func volumeImages(at string, volumes []corev1.Volume, params pipelinev1.ParamSpecs) []ImageUse {
	var uses []ImageUse
	for i, v := range volumes {
		if v.Image != nil {
			uses = append(uses, ImageUse{fmt.Sprintf("%s.volumes[%d].image.reference", at, i), v.Image.Reference, params})
		}
	}
	return uses
}
