package commitstatus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	pipelineapi "github.com/tektoncd/pipeline/pkg/apis/pipeline"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tekton "github.com/tektoncd/pipeline/pkg/client/clientset/versioned"
	informers "github.com/tektoncd/pipeline/pkg/client/informers/externalversions/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"knative.dev/pkg/apis"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/pushrun"
)

// Reporter tells forges of the runs of one namespace.
type Reporter struct {
	Tekton    tekton.Interface
	Namespace string
	// Forges are those that can be told. One without a token is told nothing.
	Forges  map[pushrun.Forge]*Client
	Telling Telling
	Log     *slog.Logger
	Events  record.EventRecorder
	Pace    Pace
}

// Pace is how fast a forge is told. The zero value is that of forges on the Internet.
type Pace struct {
	Between     time.Duration // least time between two requests to one forge; 1 s
	First, Most time.Duration // bounds of the time until a status is tried again; 2 s, 5 min
	Resync      time.Duration // how often every run is looked at again; 5 min
}

func (p Pace) withDefaults() Pace {
	return Pace{
		// "If you are making a large number of POST … requests, wait at least one
		// second between each request": GitHub's best practices.
		Between: cmp.Or(p.Between, time.Second),
		First:   cmp.Or(p.First, 2*time.Second),
		Most:    cmp.Or(p.Most, 5*time.Minute),
		Resync:  cmp.Or(p.Resync, 5*time.Minute),
	}
}

type queue = workqueue.TypedRateLimitingInterface[string] // of names of runs

// work is what a Reporter holds while it runs.
type work struct {
	*Reporter
	pace   Pace
	runs   cache.Store
	queues map[pushrun.Forge]queue

	mu    sync.Mutex
	known map[types.UID]memory
}

// memory is what is known of a run and is not in its annotation.
type memory struct {
	told    *Status // the forge knows it, though the run may not say so yet
	refused *refusal
	bad     bool // it was said that the run is no good
}

// refusal is what need not be tried again.
type refusal struct {
	status Status
	token  [32]byte
}

// Run tells what there is to tell until the context ends, which is no error. It fails
// at once when it may not see the runs. The client of Tekton has to be one that no
// clock ends, as it watches.
func (r *Reporter) Run(ctx context.Context) error {
	first, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	_, err := r.Tekton.TektonV1().PipelineRuns(r.Namespace).List(first, metav1.ListOptions{LabelSelector: pushrun.Selector, Limit: 1})
	if err != nil {
		return exitcode.Errorf(exitcode.IO, "list the runs of namespace %s: %w", r.Namespace, err)
	}
	w := &work{Reporter: r, pace: r.Pace.withDefaults(), queues: map[pushrun.Forge]queue{}, known: map[types.UID]memory{}}
	for forge := range r.Forges {
		w.queues[forge] = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](w.pace.First, w.pace.Most))
	}
	informer := informers.NewFilteredPipelineRunInformer(r.Tekton, r.Namespace, w.pace.Resync, cache.Indexers{},
		func(o *metav1.ListOptions) { o.LabelSelector = pushrun.Selector })
	w.runs = informer.GetStore()
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		r.Log.Warn("cannot watch the runs, and goes on trying", "namespace", r.Namespace, "error", err.Error())
	}); err != nil {
		return err
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    w.see,
		UpdateFunc: func(_, now any) { w.see(now) },
		DeleteFunc: w.forget,
	}); err != nil {
		return err
	}
	var all sync.WaitGroup
	all.Go(func() { informer.RunWithContext(ctx) })
	for forge, q := range w.queues {
		all.Go(func() { w.tellAll(ctx, forge, q) })
	}
	<-ctx.Done()
	for _, q := range w.queues {
		q.ShutDown()
	}
	all.Wait()
	return nil
}

// see takes notice of a run.
func (w *work) see(object any) {
	run, ok := object.(*pipelinev1.PipelineRun)
	if !ok {
		return
	}
	push, pushed, err := pushrun.Read(run)
	if err != nil {
		w.change(run.UID, func(m *memory) {
			if !m.bad {
				m.bad = true
				w.Log.Warn("a run is left alone", "error", err.Error())
				w.Events.Event(run, corev1.EventTypeWarning, "CommitStatusRefused", err.Error())
			}
		})
		return
	}
	if q, ok := w.queues[push.Forge]; ok && pushed {
		q.Add(run.Name)
	}
}

// forget drops what was kept of a run that is gone.
func (w *work) forget(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	if run, ok := object.(*pipelinev1.PipelineRun); ok {
		w.mu.Lock()
		delete(w.known, run.UID)
		w.mu.Unlock()
	}
}

func (w *work) change(uid types.UID, f func(*memory)) memory {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.known[uid]
	f(&m)
	w.known[uid] = m
	return m
}

// tellAll works for one forge, one request after the other, so that a slow one keeps
// no other waiting, and one that limits us is left in peace.
func (w *work) tellAll(ctx context.Context, forge pushrun.Forge, q queue) {
	for {
		name, shut := q.Get()
		if shut || ctx.Err() != nil {
			return // what is left is told after the next start
		}
		asked, err := w.tell(ctx, forge, name)
		var later *LaterError
		switch {
		case ctx.Err() != nil:
		case err == nil:
			q.Forget(name)
		case errors.As(err, &later) && later.After > 0:
			w.Log.Warn("a forge makes us wait", "run", name, "error", err.Error())
			q.AddAfter(name, later.After)
		default:
			w.Log.Warn("a commit status is tried again", "run", name, "error", err.Error())
			q.AddRateLimited(name)
		}
		q.Done(name)
		pause := time.Duration(0)
		if asked {
			pause = w.pace.Between
		}
		if later != nil {
			pause = max(pause, later.After)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// tell tells the forge of one run, if it does not know already. It says whether the
// forge was asked at all.
func (w *work) tell(ctx context.Context, forge pushrun.Forge, name string) (asked bool, err error) {
	object, there, err := w.runs.GetByKey(w.Namespace + "/" + name)
	if err != nil || !there {
		return false, err
	}
	run := object.(*pipelinev1.PipelineRun)
	push, pushed, err := pushrun.Read(run)
	if err != nil || !pushed || push.Forge != forge {
		return false, nil // see has said so
	}
	client := w.Forges[forge]
	t, err := client.token()
	if errors.Is(err, errNoToken) {
		return false, nil
	}
	m := w.change(run.UID, func(*memory) {})
	annotated, kept := read(run.Annotations)
	last, told := annotated, kept
	if m.told != nil && (!told || last.State.before(m.told.State)) {
		last, told = *m.told, true
	}
	var status Status
	due := !told || !last.State.Final()
	if due {
		failed, err := w.failed(ctx, run)
		if err != nil {
			return false, err
		}
		status = w.Telling.From(run, push, failed)
		due = !told || last.State.before(status.State)
	}
	if due {
		if err == nil && m.refused != nil && *m.refused == (refusal{status, t.mark()}) {
			return false, nil
		}
		if err == nil {
			// A request that was begun is ended, and what it told is kept, also when we
			// are to stop: or the next of us would tell it again.
			err = client.post(context.WithoutCancel(ctx), t, push, status)
			asked = true
		}
		var refused *RefusedError
		if errors.As(err, &refused) {
			w.refuse(run, refusal{status, t.mark()}, refused)
			return asked, nil
		}
		if err != nil {
			return asked, err
		}
		last = status
		w.change(run.UID, func(m *memory) { m.told, m.refused = &last, nil })
		w.Log.Info("told", "forge", string(forge), "repository", push.Repository, "commit", push.Commit, "run", run.Name,
			"state", string(status.State), "description", status.Description)
	} else if kept && annotated == last {
		return asked, nil
	}
	return asked, w.keep(context.WithoutCancel(ctx), run, last)
}

// keep writes what the forge knows into the run.
func (w *work) keep(ctx context.Context, run *pipelinev1.PipelineRun, s Status) error {
	patch, err := s.write(string(run.UID))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	_, err = w.Tekton.TektonV1().PipelineRuns(run.Namespace).Patch(ctx, run.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "trainyard-commit-status"})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("note at run %s what was told: %w", run.Name, err)
	}
	return nil
}

// refuse says once that a forge does not take a status.
func (w *work) refuse(run *pipelinev1.PipelineRun, r refusal, err *RefusedError) {
	said := false
	w.change(run.UID, func(m *memory) {
		said = m.refused != nil && *m.refused == r
		m.refused = &r
	})
	if said {
		return
	}
	w.Log.Error("a commit status was refused", "run", run.Name, "error", err.Error())
	w.Events.Event(run, corev1.EventTypeWarning, "CommitStatusRefused", err.Error())
}

// failed finds the tasks of a run that failed, if that is why the run did.
func (w *work) failed(ctx context.Context, run *pipelinev1.PipelineRun) ([]TaskFailure, error) {
	cond := run.Status.GetCondition(apis.ConditionSucceeded)
	if cond == nil || cond.Reason != pipelinev1.PipelineRunReasonFailed.String() {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	list, err := w.Tekton.TektonV1().TaskRuns(run.Namespace).List(ctx, metav1.ListOptions{LabelSelector: pipelineapi.PipelineRunLabelKey + "=" + run.Name})
	if err != nil {
		return nil, fmt.Errorf("list the tasks of run %s: %w", run.Name, err)
	}
	slices.SortStableFunc(list.Items, func(a, b pipelinev1.TaskRun) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var failed []TaskFailure
	for i := range list.Items {
		t := &list.Items[i]
		cond := t.Status.GetCondition(apis.ConditionSucceeded)
		if cond != nil && cond.IsFalse() && cond.Reason != pipelinev1.TaskRunReasonCancelled.String() {
			failed = append(failed, TaskFailure{Task: t.Labels[pipelineapi.PipelineTaskLabelKey], Message: cond.Message})
		}
	}
	return failed, nil
}
