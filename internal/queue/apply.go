package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/internal/pushrun"
)

// Reasons of the events that the queue writes on a run.
const (
	EventAdmitted   = "Admitted"    // it was let in
	EventQueued     = "Queued"      // it waits
	EventSuperseded = "Superseded"  // it was cancelled for a newer push
	EventUnreadable = "NotQueued"   // it does not say which push it is from
	EventFailed     = "QueueFailed" // the API server refused what the queue wanted
)

// component signs the events.
const component = "trainyard-queue"

// apply does what was decided. What fails for one run does not keep the others;
// overtaken says that a run had changed since it was listed, and was left alone.
func (q *Queue) apply(ctx context.Context, d Decision) (overtaken bool, err error) {
	var errs []error
	for _, a := range d.Actions {
		switch err := q.do(ctx, a); {
		case err == nil:
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			overtaken = true
		case ctx.Err() != nil:
			return false, nil
		default:
			q.tell(ctx, a.Run, corev1.EventTypeWarning, EventFailed, fmt.Sprintf("the queue could not %s it: %v", words(a.Kind), err))
			errs = append(errs, fmt.Errorf("%s run %s: %w", words(a.Kind), a.Run.Name, err))
		}
	}
	for _, w := range d.Waits {
		q.tell(ctx, w.Run, corev1.EventTypeNormal, EventQueued, "it waits "+w.Reason)
	}
	for _, r := range d.Unread {
		q.tell(ctx, r, corev1.EventTypeWarning, EventUnreadable, "it stays held back: "+r.Err.Error())
	}
	return overtaken, errors.Join(errs...)
}

func words(k Kind) string {
	if k == Admit {
		return "admit"
	}
	return "cancel"
}

func (q *Queue) do(ctx context.Context, a Action) error {
	q.beat()
	body, err := patch(a)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := q.Runs.Patch(limited, a.Run.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: component}); err != nil {
		return err
	}
	event := EventSuperseded
	if a.Kind == Admit {
		event = EventAdmitted
	}
	q.tell(ctx, a.Run, corev1.EventTypeNormal, event, a.Reason)
	return nil
}

// patch is the change of a run. It names the version that was judged, so that the API
// server refuses it (409) when the run is another by now.
func patch(a Action) ([]byte, error) {
	metadata := map[string]any{"uid": a.Run.UID, "resourceVersion": a.Run.Version}
	if a.By != "" {
		metadata["annotations"] = map[string]string{pushrun.SupersededByAnnotation: a.By}
	}
	var status any // null removes it
	switch a.Kind {
	case CancelWaiting:
		status = pipelinev1.PipelineRunSpecStatusCancelled
	case CancelStarted:
		status = pipelinev1.PipelineRunSpecStatusCancelledRunFinally
	case Admit:
	}
	return json.Marshal(map[string]any{"metadata": metadata, "spec": map[string]any{"status": status}})
}

// tell logs something about a run and writes it on the run as an event, once for each
// reason. An event that cannot be written is no reason to hold a run back.
func (q *Queue) tell(ctx context.Context, r Run, kind, reason, message string) {
	m := q.runs[r.UID]
	if m == nil || m.told[reason] {
		return
	}
	m.told[reason] = true
	log := q.Log.Info
	if kind == corev1.EventTypeWarning {
		log = q.Log.Warn
	}
	log(message, "event", reason, "run", r.Name, "commit", r.Commit, "repository", r.Group.Repository, "branch", r.Group.Branch)
	now := metav1.NewTime(q.Now())
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := q.Events.Create(ctx, &corev1.Event{
		// As client-go names them: the run, and when.
		ObjectMeta:     metav1.ObjectMeta{Namespace: q.Namespace, Name: fmt.Sprintf("%s.%x", r.Name, now.UnixNano())},
		InvolvedObject: corev1.ObjectReference{APIVersion: "tekton.dev/v1", Kind: "PipelineRun", Namespace: q.Namespace, Name: r.Name, UID: r.UID, ResourceVersion: r.Version},
		Type:           kind, Reason: reason, Message: message,
		Source: corev1.EventSource{Component: component}, ReportingController: component,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{}); err != nil && ctx.Err() == nil {
		q.Log.Warn("an event could not be written", "run", r.Name, "error", err)
	}
}
