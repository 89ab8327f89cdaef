package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	pipelineapi "github.com/tektoncd/pipeline/pkg/apis/pipeline"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/pod"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/pkg/reconciler/volumeclaim"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/internal/exitcode"
)

const (
	succeeded        = "Succeeded" // the type of the condition that says how a run is
	pipelineRunLabel = pipelineapi.PipelineRunLabelKey
)

// Run examines a PipelineRun, or a TaskRun of that name: why it does not start,
// hangs, or failed.
func (d *Doctor) Run(ctx context.Context, name string, o Options) (*Report, error) {
	e := d.exam(o.withDefaults())
	pr, err := d.Tekton.TektonV1().PipelineRuns(o.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		return e.report, e.pipelineRun(ctx, pr)
	}
	if !apierrors.IsNotFound(err) {
		return nil, exitcode.Errorf(exitcode.IO, "read PipelineRun %s/%s: %w", o.Namespace, name, err)
	}
	tr, err := d.Tekton.TektonV1().TaskRuns(o.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, exitcode.Errorf(exitcode.BadInput, "there is no PipelineRun and no TaskRun %s in namespace %s", name, o.Namespace)
	}
	if err != nil {
		return nil, exitcode.Errorf(exitcode.IO, "read TaskRun %s/%s: %w", o.Namespace, name, err)
	}
	e.report.Subject = "TaskRun " + o.Namespace + "/" + name
	if tr.IsSuccessful() {
		e.ok("run", "TaskRun %s succeeded", name)
		return e.report, nil
	}
	e.takeParams(tr.Spec.Params)
	return e.report, firstError(
		func() error { return e.taskRun(ctx, tr) },
		func() error { return e.surroundings(ctx, []string{tr.Spec.ServiceAccountName}) },
		func() error { return e.workspaces(ctx, tr, tr.UID, tr.Spec.Workspaces, tr.IsDone()) },
		func() error { return e.services(ctx) },
	)
}

// surroundings examines what every run needs.
func (e *exam) surroundings(ctx context.Context, accounts []string) error {
	if there, err := e.namespace(ctx); err != nil || !there {
		return err
	}
	var named []string
	for _, a := range accounts {
		if a = cmp.Or(a, "default"); !slices.Contains(named, a) {
			named = append(named, a)
		}
	}
	return firstError(
		func() error { return e.tekton(ctx) },
		func() error { return e.serviceAccounts(ctx, named) },
	)
}

func (e *exam) takeParams(given pipelinev1.Params) {
	for _, p := range given {
		switch p.Value.Type {
		case pipelinev1.ParamTypeArray:
			e.lists[p.Name] = p.Value.ArrayVal
		case pipelinev1.ParamTypeString, "":
			e.params[p.Name] = p.Value.StringVal
		}
	}
}

// pipelineRun examines a PipelineRun and everything below it.
func (e *exam) pipelineRun(ctx context.Context, pr *pipelinev1.PipelineRun) error {
	e.run = pr.Name
	e.report.Subject = "PipelineRun " + pr.Namespace + "/" + pr.Name
	cond := pr.Status.GetCondition(succeeded)
	if pr.IsSuccessful() {
		e.ok("run", "it succeeded: %s", cond.GetMessage())
		return nil
	}
	e.takeParams(pr.Spec.Params)
	if spec := pr.Status.PipelineSpec; spec != nil {
		e.params = e.params.withDefaults(spec.Params)
	}
	e.podTemplate = pr.Spec.TaskRunTemplate.PodTemplate
	accounts := []string{pr.Spec.TaskRunTemplate.ServiceAccountName}
	for _, s := range pr.Spec.TaskRunSpecs {
		if s.ServiceAccountName != "" {
			accounts = append(accounts, s.ServiceAccountName)
		}
		if s.ComputeResources != nil || len(s.StepSpecs) > 0 {
			e.sizes[s.PipelineTaskName] = sizes{s.ComputeResources, s.StepSpecs}
		}
	}
	return firstError(
		func() error { return e.tasksOf(ctx, pr) },
		func() error { return e.state(ctx, pr) },
		func() error { return e.assistants(ctx, pr) },
		func() error { return e.surroundings(ctx, accounts) },
		func() error { return e.workspaces(ctx, pr, pr.UID, pr.Spec.Workspaces, pr.IsDone() || pr.IsPending()) },
		func() error { return e.remaining(ctx, pr) },
		func() error { return e.services(ctx) },
	)
}

// tasksOf examines the TaskRuns that there are.
func (e *exam) tasksOf(ctx context.Context, pr *pipelinev1.PipelineRun) error {
	runs, err := e.Tekton.TektonV1().TaskRuns(pr.Namespace).List(ctx, metav1.ListOptions{LabelSelector: pipelineRunLabel + "=" + pr.Name})
	if err != nil {
		return e.cannotSee("run", "task runs", err)
	}
	slices.SortStableFunc(runs.Items, func(a, b pipelinev1.TaskRun) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range runs.Items {
		e.begun = append(e.begun, taskName(&runs.Items[i]))
		if err := e.taskRun(ctx, &runs.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// state says what the PipelineRun as a whole says of itself.
func (e *exam) state(ctx context.Context, pr *pipelinev1.PipelineRun) error {
	if pr.IsPending() {
		return e.heldBack(ctx, pr)
	}
	cond := pr.Status.GetCondition(succeeded)
	age := e.Now().Sub(pr.CreationTimestamp.Time)
	switch {
	case cond == nil && age < patience:
		e.ok("run", "it was created %s ago", ago(age))
	case cond == nil:
		e.problem("run", "look whether Tekton's controller runs (see below)", "Tekton has taken no notice of it, %s after it was created", ago(age))
	case cond.IsUnknown():
		message := fmt.Sprintf("it runs for %s: %s", ago(e.Now().Sub(started(pr))), cond.Message)
		if len(e.begun) == 0 && age > patience {
			e.problem("run", "see the message, and whether Tekton's parts run (see below)", "%s after it was created no task has begun (%s): %s", ago(age), cond.Reason, cond.Message)
			return nil
		}
		e.ok("run", "%s", message)
	default:
		e.failedRun(pr, cond.Reason, cond.Message)
	}
	return nil
}

func (e *exam) failedRun(pr *pipelinev1.PipelineRun, reason, message string) {
	switch pipelinev1.PipelineRunReason(reason) {
	case pipelinev1.PipelineRunReasonFailed:
		if e.report.Count(Problem) == 0 {
			e.problem("run", "tkn pipelinerun describe "+pr.Name, "it failed: %s", message)
		}
		return
	case pipelinev1.PipelineRunReasonCancelled:
		e.problem("run", "start it again", "it was cancelled: %s", message)
		return
	case pipelinev1.PipelineRunReasonTimedOut:
		e.problem("run", "raise spec.timeouts of the run; what it saved is on the workspace, so a new run with the same run directory goes on", "it ran into its timeout: %s", message)
		return
	}
	remedy := map[pipelinev1.PipelineRunReason]string{
		pipelinev1.PipelineRunReasonCouldntGetPipeline: "kubectl apply the pipeline in this namespace, or correct pipelineRef",
		pipelinev1.PipelineRunReasonCouldntGetTask:     "kubectl apply the tasks in this namespace, or correct the reference to the bundle",
		pipelinev1.PipelineRunReasonParameterMissing:   "give the parameters that the message names",
		pipelinev1.PipelineRunReasonInvalidBindings:    "give the workspaces that the message names",
		pipelinev1.PipelineRunReasonFailedValidation:   "correct what the message names; a result that is missing comes from a task that failed or was skipped",
	}[pipelinev1.PipelineRunReason(reason)]
	if c, ok := causeOf(message); ok && remedy == "" {
		remedy = c.remedy
	}
	e.problem("run", cmp.Or(remedy, "correct what the message names and start it again"), "it failed before or beside its tasks (%s): %s", reason, message)
}

// assistants examines the pods by which Tekton keeps a run on one node.
func (e *exam) assistants(ctx context.Context, pr *pipelinev1.PipelineRun) error {
	if pr.IsDone() {
		return nil
	}
	sets, err := e.Kube.AppsV1().StatefulSets(pr.Namespace).List(ctx, metav1.ListOptions{LabelSelector: pipelineRunLabel + "=" + pr.Name})
	if err != nil {
		return e.cannotSee("affinity-assistant", "stateful sets", err)
	}
	for _, s := range sets.Items {
		what := "the affinity assistant " + s.Name
		p, err := e.Kube.CoreV1().Pods(s.Namespace).Get(ctx, s.Name+"-0", metav1.GetOptions{})
		if err == nil {
			if p.Status.Phase == corev1.PodPending {
				if _, err := e.pod(ctx, what, p); err != nil {
					return err
				}
			}
			continue
		}
		if !apierrors.IsNotFound(err) {
			return e.cannotSee("affinity-assistant", "pods", err)
		}
		events, err := e.eventsOf(ctx, s.UID)
		if err != nil {
			return err
		}
		if ev, ok := newestWarning(events, "FailedCreate"); ok {
			e.report.add(refusal("affinity-assistant", "the pod of "+what+", without which no pod of the run gets a node", ev.Message))
		}
	}
	return nil
}

// workspaces examines what a run binds its workspaces to.
func (e *exam) workspaces(ctx context.Context, owner metav1.Object, uid types.UID, bindings []pipelinev1.WorkspaceBinding, without bool) error {
	for _, w := range bindings {
		use := "workspace " + w.Name
		var err error
		switch {
		case w.PersistentVolumeClaim != nil:
			err = e.claim(ctx, w.PersistentVolumeClaim.ClaimName, use)
		case w.VolumeClaimTemplate != nil:
			if without {
				continue // Tekton has not made it yet, or may have deleted it
			}
			name := volumeclaim.GeneratePVCNameFromWorkspaceBinding(w.VolumeClaimTemplate.Name, w, metav1.OwnerReference{UID: uid})
			if e.Now().Sub(owner.GetCreationTimestamp().Time) > patience {
				err = e.claim(ctx, name, use)
			}
		case w.Secret != nil:
			err = e.resolve(ctx, use, &pipelinev1.TaskSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: w.Secret}}}}, e.params)
		case w.ConfigMap != nil:
			err = e.resolve(ctx, use, &pipelinev1.TaskSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: w.ConfigMap}}}}, e.params)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remaining examines the tasks that have not begun.
func (e *exam) remaining(ctx context.Context, pr *pipelinev1.PipelineRun) error {
	if pr.IsDone() || pr.Status.PipelineSpec == nil {
		return nil
	}
	spec := pr.Status.PipelineSpec.DeepCopy()
	begun := func(t pipelinev1.PipelineTask) bool { return slices.Contains(e.begun, t.Name) }
	spec.Tasks, spec.Finally = slices.DeleteFunc(spec.Tasks, begun), slices.DeleteFunc(spec.Finally, begun)
	return e.pipelineTasks(ctx, spec)
}

func started(pr *pipelinev1.PipelineRun) time.Time {
	if pr.Status.StartTime != nil {
		return pr.Status.StartTime.Time
	}
	return pr.CreationTimestamp.Time
}

// podTemplate is what the run says of its pods.
type podTemplate = pod.PodTemplate
