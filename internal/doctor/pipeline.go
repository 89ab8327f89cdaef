package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/manifest"
)

// pipeline examines a pipeline by name: its tasks, what they refer to, and whether
// each would fit on a node now.
func (e *exam) pipeline(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	p, err := e.Tekton.TektonV1().Pipelines(e.o.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		e.problem("pipeline", "kubectl apply its file from pipelines/ in this namespace, or name another with --pipeline", "pipeline %s does not exist in namespace %s", name, e.o.Namespace)
		return nil
	}
	if err != nil {
		return e.cannotSee("pipeline", "pipelines", err)
	}
	e.params = e.params.withDefaults(p.Spec.Params)
	var open []string
	for _, s := range p.Spec.Params {
		if s.Default == nil {
			open = append(open, s.Name)
		}
	}
	if len(open) > 0 {
		e.ok("pipeline", "pipeline %s exists; a run has to give the parameters %s", name, and(open))
	} else {
		e.ok("pipeline", "pipeline %s exists; every parameter has a default", name)
	}
	return e.pipelineTasks(ctx, &p.Spec)
}

// pipelineTasks examines all tasks of a pipeline with the parameters that are known.
func (e *exam) pipelineTasks(ctx context.Context, spec *pipelinev1.PipelineSpec) error {
	sound, fitting := 0, []asked(nil)
	for _, t := range append(append([]pipelinev1.PipelineTask{}, spec.Tasks...), spec.Finally...) {
		task, err := e.taskSpec(ctx, t)
		if err != nil {
			return err
		}
		if task == nil {
			continue
		}
		sound++
		// What the pipeline gives but only a run can tell must not fall back to
		// the task's default.
		given := e.params.inner(t.Params)
		known := params{}.withDefaults(task.Params).without(t.Params)
		for k, v := range given {
			known[k] = v
		}
		if err := e.resolve(ctx, t.Name, task, known); err != nil {
			return err
		}
		e.placeholder(t.Name, task, known)
		list, err := e.fits(ctx, t.Name, task)
		if err != nil {
			return err
		}
		if list != nil {
			fitting = append(fitting, asked{t.Name, list})
		}
	}
	e.room(fitting)
	if sound > 0 {
		e.ok("pipeline", "%s found", count(sound, "task"))
	}
	return nil
}

// placeholder reports a step whose image was never filled in: the tasks name the
// tool without a digest, for rendering to replace.
func (e *exam) placeholder(name string, task *pipelinev1.TaskSpec, known params) {
	const remedy = "apply tasks that were rendered with the digest of an image: those of a release, of yard render, or of kustomize with an image set"
	for _, s := range task.Steps {
		image, ok := known.fill(s.Image)
		switch {
		case !ok:
		case image == manifest.Placeholder:
			e.problem("pipeline", remedy, "task %s: step %s has the placeholder %s for an image, which nobody publishes without a digest", name, s.Name, image)
		case strings.HasSuffix(image, zeroDigest):
			e.problem("pipeline", remedy, "task %s: step %s has an image whose digest is zeros: none was set", name, s.Name)
		}
	}
}

// taskSpec finds the specification of a task of a pipeline; nil when it is not
// there or not in the cluster.
func (e *exam) taskSpec(ctx context.Context, t pipelinev1.PipelineTask) (*pipelinev1.TaskSpec, error) {
	if t.TaskSpec != nil {
		return &t.TaskSpec.TaskSpec, nil
	}
	ref := t.TaskRef
	if ref == nil || ref.APIVersion != "" && !strings.HasPrefix(ref.APIVersion, "tekton.dev/") {
		return nil, nil // a custom task: another controller's
	}
	if ref.Resolver != "" {
		e.remoteTask(t)
		return nil, nil
	}
	task, err := e.Tekton.TektonV1().Tasks(e.o.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		e.problem("pipeline", "kubectl apply -f tasks/"+ref.Name+".yaml in this namespace", "task %s of the pipeline refers to Task %s, which does not exist in namespace %s", t.Name, ref.Name, e.o.Namespace)
		return nil, nil
	}
	if err != nil {
		return nil, e.cannotSee("pipeline", "tasks", err)
	}
	return &task.Spec, nil
}

// remoteTask notes where a task comes from that the cluster does not hold.
func (e *exam) remoteTask(t pipelinev1.PipelineTask) {
	if t.TaskRef.Resolver != "bundles" {
		e.ok("pipeline", "task %s comes through the resolver %s, and is not looked into", t.Name, t.TaskRef.Resolver)
		return
	}
	for _, p := range t.TaskRef.Params {
		if p.Name != "bundle" {
			continue
		}
		bundle, known := e.params.fill(p.Value.StringVal)
		switch {
		case !known:
			e.ok("pipeline", "task %s comes from a bundle that only the run names", t.Name)
		case !strings.Contains(bundle, "@sha256:"):
			e.bundle(bundle)
			e.warn("pipeline", "refer to the bundle by digest (yard bundle list prints it)", "the bundle %s is referred to by tag: it may change between two runs, and Tekton fetches it for every one", bundle)
		default:
			e.bundle(bundle)
		}
	}
}

func (e *exam) bundle(ref string) {
	for _, b := range e.bundles {
		if b == ref {
			return
		}
	}
	e.bundles = append(e.bundles, ref)
}

// fits examines whether the pod that Tekton would make of a task finds a node now.
// It returns what the task asks for when it does; tasks that ask for nothing
// always fit, as far as anybody can say.
func (e *exam) fits(ctx context.Context, name string, task *pipelinev1.TaskSpec) (corev1.ResourceList, error) {
	p := podOf(e.o.Namespace, name, task)
	if given, ok := e.sizes[name]; ok {
		p.Spec.Containers = given.containers(p.Spec.Containers)
	}
	if t := e.podTemplate; t != nil {
		p.Spec.NodeSelector, p.Spec.Tolerations, p.Spec.Affinity = t.NodeSelector, t.Tolerations, t.Affinity
	}
	c, v, err := e.explain(ctx, p)
	if err != nil || len(c.Nodes) == 0 || len(v.Requests) == 0 {
		return nil, err
	}
	if _, ok := v.Fits(); ok {
		return v.Requests, nil
	}
	f := e.shortage(fmt.Sprintf("task %s would wait for a node: it asks for %s", name, amounts(v.Requests)), v)
	if freeable(v) >= 0 {
		f.Level = Warning // it would only wait until others end
	}
	e.report.add(f)
	return nil, nil
}

// asked is what a task asks for.
type asked struct {
	task string
	list corev1.ResourceList
}

// room says that tasks fit, by the one that asks for most.
func (e *exam) room(fitting []asked) {
	if len(fitting) == 0 {
		return
	}
	most := slices.MaxFunc(fitting, func(a, b asked) int {
		return cmp.Or(a.list.Cpu().Cmp(*b.list.Cpu()), a.list.Memory().Cmp(*b.list.Memory()))
	})
	e.ok("capacity", "%s of known size would fit on a node now; the largest is %s: %s", count(len(fitting), "task"), most.task, amounts(most.list))
}
