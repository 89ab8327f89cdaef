package times

import (
	"time"

	pipelineapi "github.com/tektoncd/pipeline/pkg/apis/pipeline"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How the images of a task were had.
const (
	Cold    = "cold"    // at least one was pulled
	Warm    = "warm"    // all were on the node
	Unknown = "unknown" // no event tells
)

// Task is one attempt at a task. A nil number cannot be told any more.
type Task struct {
	Name    string `json:"name"`
	TaskRun string `json:"task_run"`
	Pod     string `json:"pod,omitempty"`
	Attempt int    `json:"attempt"` // 1 for the first
	State   string `json:"state"`
	Images  string `json:"images"` // cold, warm or unknown

	Total float64 `json:"total_seconds"`
	// From the creation of the TaskRun to a node for its pod.
	Waiting *float64 `json:"waiting_seconds"`
	// What the pod waited for images.
	Pulling *float64 `json:"pulling_seconds"`
	// The rest of the time until the first step began. It holds what of the two
	// above is unknown.
	Starting *float64 `json:"starting_seconds"`
	Working  float64  `json:"working_seconds"` // the sum of its steps
	// Between the steps, and from the last one's end to that of the TaskRun.
	Ending *float64 `json:"ending_seconds"`
	// All but Working.
	Overhead float64 `json:"overhead_seconds"`

	Steps []Step `json:"steps"`
	Pulls []Pull `json:"pulls,omitempty"`

	begin, end time.Time
	work       []span
}

// Step is how long a step worked.
type Step struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// attempt is one try of a TaskRun: Tekton keeps those before the last beside it.
type attempt struct {
	number     int
	begin, end time.Time // end is zero while it runs
	state, pod string
	steps      []pipelinev1.StepState
}

func attempts(tr *pipelinev1.TaskRun) []attempt {
	var all []attempt
	begin := tr.CreationTimestamp.Time
	for i, r := range tr.Status.RetriesStatus {
		a := attempt{number: i + 1, begin: begin, state: "failed", pod: r.PodName, steps: r.Steps}
		if r.CompletionTime != nil {
			a.end = r.CompletionTime.Time
		}
		all = append(all, a)
		begin = a.end
	}
	last := attempt{number: len(all) + 1, begin: begin, state: state(tr.IsSuccessful(), tr.IsDone()), pod: tr.Status.PodName, steps: tr.Status.Steps}
	if tr.Status.CompletionTime != nil {
		last.end = tr.Status.CompletionTime.Time
	}
	return append(all, last)
}

func state(succeeded, done bool) string {
	switch {
	case succeeded:
		return "succeeded"
	case done:
		return "failed"
	}
	return "running"
}

// measure works out one attempt. The pod may be nil, and the events missing.
func measure(tr *pipelinev1.TaskRun, a attempt, pod *corev1.Pod, events []corev1.Event, now time.Time) Task {
	t := Task{Name: name(tr), TaskRun: tr.Name, Pod: a.pod, Attempt: a.number, State: a.state, Images: Unknown, Steps: []Step{}, begin: a.begin, end: a.end}
	if t.end.IsZero() {
		t.end = now
	}
	t.Total = seconds(t.begin, t.end)

	first := time.Time{} // when the first step began
	for _, s := range a.steps {
		w := stepSpan(s, now)
		if w == nil {
			continue
		}
		t.work = append(t.work, *w)
		t.Steps = append(t.Steps, Step{s.Name, w.seconds()})
		t.Working += w.seconds()
		if first.IsZero() || w.from.Before(first) {
			first = w.from
		}
	}
	scheduled := scheduledAt(pod, events)
	for _, ev := range events {
		if p, ok := parsePull(ev.Message); ok && ev.Reason == "Pulled" {
			t.Pulls = append(t.Pulls, p)
		}
	}
	t.Images = temperature(t.Pulls)

	from := t.begin
	if !scheduled.IsZero() {
		t.Waiting = known(seconds(t.begin, scheduled))
		from = scheduled
	}
	if first.IsZero() {
		// No step has begun: all of the rest is start so far.
		t.Starting = known(seconds(from, t.end))
	} else {
		t.Starting = known(seconds(from, first))
		t.Ending = known(max(0, seconds(first, t.end)-t.Working))
	}
	if t.Images != Unknown {
		var sum float64
		for _, p := range t.Pulls {
			if p.Seconds != nil {
				sum += *p.Seconds
			}
		}
		sum = min(sum, *t.Starting) // whole seconds against milliseconds
		t.Pulling = &sum
		t.Starting = known(*t.Starting - sum)
	}
	t.Overhead = max(0, t.Total-t.Working)
	return t
}

func name(tr *pipelinev1.TaskRun) string {
	if n := tr.Labels[pipelineapi.PipelineTaskLabelKey]; n != "" {
		return n
	}
	return tr.Name
}

// stepSpan is when a step worked; nil when it did not. When Tekton ends a pod whose
// image was never had, it writes times for its steps all the same.
func stepSpan(s pipelinev1.StepState, now time.Time) *span {
	switch {
	case s.Terminated != nil && s.ImageID != "" && s.TerminationReason != "Skipped" && !s.Terminated.StartedAt.IsZero():
		return &span{s.Terminated.StartedAt.Time, s.Terminated.FinishedAt.Time}
	case s.Running != nil && !s.Running.StartedAt.IsZero():
		return &span{s.Running.StartedAt.Time, now}
	}
	return nil
}

// scheduledAt is when the pod got its node.
func scheduledAt(pod *corev1.Pod, events []corev1.Event) time.Time {
	if pod != nil {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
				return c.LastTransitionTime.Time
			}
		}
	}
	for _, ev := range events {
		if ev.Reason == "Scheduled" {
			for _, t := range []metav1.Time{ev.FirstTimestamp, metav1.NewTime(ev.EventTime.Time), ev.CreationTimestamp} {
				if !t.IsZero() {
					return t.Time
				}
			}
		}
	}
	return time.Time{}
}

func temperature(pulls []Pull) string {
	if len(pulls) == 0 {
		return Unknown
	}
	for _, p := range pulls {
		if !p.Present {
			return Cold
		}
	}
	return Warm
}

func known(s float64) *float64 { return &s }

// seconds is the time between two moments, never less than none: two clocks that
// count whole seconds may disagree by one.
func seconds(from, to time.Time) float64 { return max(0, to.Sub(from).Seconds()) }
