package times

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	pipelineapi "github.com/tektoncd/pipeline/pkg/apis/pipeline"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tekton "github.com/tektoncd/pipeline/pkg/client/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Report is where the seconds of a run went.
type Report struct {
	Kind      string `json:"kind"` // PipelineRun or TaskRun
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     string `json:"state"`

	Total float64 `json:"total_seconds"` // from creation to the end, or to now
	// While at least one step worked.
	Working float64 `json:"working_seconds"`
	// While no task was there to wait for.
	Between float64 `json:"between_tasks_seconds"`
	// All but Working, and its share for each task.
	Overhead        float64 `json:"overhead_seconds"`
	OverheadPerTask float64 `json:"overhead_per_task_seconds"`

	Tasks []Task   `json:"tasks"`
	Notes []string `json:"notes,omitempty"` // what could not be told, and why
}

// Clock measures runs.
type Clock struct {
	Kube   kubernetes.Interface
	Tekton tekton.Interface
	Now    func() time.Time
}

// Measure reads a PipelineRun, or a TaskRun of that name, and what is left of its
// pods and events.
func (c Clock) Measure(ctx context.Context, namespace, name string) (*Report, error) {
	r := &Report{Namespace: namespace, Name: name, Tasks: []Task{}}
	pr, err := c.Tekton.TektonV1().PipelineRuns(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		return r, c.pipelineRun(ctx, r, pr)
	}
	if !apierrors.IsNotFound(err) {
		return nil, exitcode.Errorf(exitcode.IO, "read PipelineRun %s/%s: %w", namespace, name, err)
	}
	tr, err := c.Tekton.TektonV1().TaskRuns(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, exitcode.Errorf(exitcode.BadInput, "there is no PipelineRun and no TaskRun %s in namespace %s", name, namespace)
	}
	if err != nil {
		return nil, exitcode.Errorf(exitcode.IO, "read TaskRun %s/%s: %w", namespace, name, err)
	}
	r.Kind, r.State = "TaskRun", state(tr.IsSuccessful(), tr.IsDone())
	end := c.Now()
	if tr.Status.CompletionTime != nil {
		end = tr.Status.CompletionTime.Time
	}
	return r, c.fill(ctx, r, []pipelinev1.TaskRun{*tr}, span{tr.CreationTimestamp.Time, end})
}

func (c Clock) pipelineRun(ctx context.Context, r *Report, pr *pipelinev1.PipelineRun) error {
	r.Kind, r.State = "PipelineRun", state(pr.IsSuccessful(), pr.IsDone())
	runs, err := c.Tekton.TektonV1().TaskRuns(r.Namespace).List(ctx, metav1.ListOptions{LabelSelector: pipelineapi.PipelineRunLabelKey + "=" + pr.Name})
	if err != nil {
		return exitcode.Errorf(exitcode.IO, "read the TaskRuns of %s/%s: %w", r.Namespace, r.Name, err)
	}
	slices.SortStableFunc(runs.Items, func(a, b pipelinev1.TaskRun) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	if missing := len(pr.Status.ChildReferences) - len(runs.Items); missing > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d of its TaskRuns were deleted: their time counts as overhead", missing))
	}
	end := c.Now()
	if pr.Status.CompletionTime != nil {
		end = pr.Status.CompletionTime.Time
	}
	return c.fill(ctx, r, runs.Items, span{pr.CreationTimestamp.Time, end})
}

// fill measures the tasks and adds up.
func (c Clock) fill(ctx context.Context, r *Report, runs []pipelinev1.TaskRun, whole span) error {
	events, seen, err := c.events(ctx, r.Namespace)
	if err != nil {
		return err
	}
	if !seen {
		r.Notes = append(r.Notes, "events may not be seen with these rights, so pulls and cold starts cannot be told")
	}
	var there, work []span
	podsGone, eventsGone := 0, 0
	for i := range runs {
		for _, a := range attempts(&runs[i]) {
			pod, err := c.pod(ctx, r.Namespace, a.pod)
			if err != nil {
				return err
			}
			var own []corev1.Event
			if pod != nil {
				own = events[pod.UID]
			}
			t := measure(&runs[i], a, pod, own, c.Now())
			r.Tasks = append(r.Tasks, t)
			there, work = append(there, span{t.begin, t.end}), append(work, t.work...)
			switch {
			case pod == nil && a.pod != "":
				podsGone++
			case t.Images == Unknown && len(t.Steps) > 0:
				eventsGone++
			}
		}
	}
	if podsGone > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("the pod is gone of %s: there, starting holds what it waited for a node and for images", tasks(podsGone)))
	}
	if eventsGone > 0 && seen {
		r.Notes = append(r.Notes, fmt.Sprintf("no event is left of %s (they are kept for an hour): there, starting holds what it waited for images", tasks(eventsGone)))
	}
	r.Total = whole.seconds()
	r.Working = covered(work)
	r.Between = max(0, r.Total-covered(there))
	r.Overhead = max(0, r.Total-r.Working)
	if len(r.Tasks) > 0 {
		r.OverheadPerTask = r.Overhead / float64(len(r.Tasks))
	}
	return nil
}

func tasks(n int) string {
	if n == 1 {
		return "1 task"
	}
	return fmt.Sprintf("%d tasks", n)
}

// pod returns nil when there is none any more.
func (c Clock) pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	if name == "" {
		return nil, nil
	}
	p, err := c.Kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, exitcode.Errorf(exitcode.IO, "read pod %s/%s: %w", namespace, name, err)
	}
	return p, nil
}

// events returns those about pods, by the pod's UID.
func (c Clock) events(ctx context.Context, namespace string) (byPod map[types.UID][]corev1.Event, seen bool, err error) {
	byPod = map[types.UID][]corev1.Event{}
	for next := ""; ; {
		l, err := c.Kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod", Limit: 500, Continue: next})
		if apierrors.IsForbidden(err) {
			return byPod, false, nil
		}
		if err != nil {
			return nil, false, exitcode.Errorf(exitcode.IO, "read the events of namespace %s: %w", namespace, err)
		}
		for _, ev := range l.Items {
			byPod[ev.InvolvedObject.UID] = append(byPod[ev.InvolvedObject.UID], ev)
		}
		if next = l.Continue; next == "" {
			return byPod, true, nil
		}
	}
}
