//go:build e2e

package e2e

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/trainyard/trainyard/internal/pushrun"
	"github.com/trainyard/trainyard/internal/queue"
)

const pushes = 20

// Twenty pushes to one branch in ten seconds, under each policy: never are two runs at
// work, the last push is trained, and every other run ends as the policy says.
func TestQueueOfTwentyPushesInTenSeconds(t *testing.T) {
	t.Parallel()
	e := connect(t)
	for policy, c := range map[queue.Policy]struct {
		// deliver is the order in which the listener hears of the pushes.
		deliver func() []int
		check   func(*testing.T, *burst)
	}{
		queue.InTurn: {inOrder, allSucceedInOrder},
		queue.Latest: {pairsSwapped, overtakenRunsNeverStart},
		queue.Cancel: {pairsSwapped, overtakenRunsEnd},
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			b := &burst{env: e, namespace: e.namespace(t), policy: policy}
			b.watch(t)
			b.openQueue(t)
			start := time.Now()
			for i, n := range c.deliver() {
				b.deliver(t, n)
				time.Sleep(time.Until(start.Add(time.Duration(i+1) * 10 * time.Second / pushes)))
			}
			e.until(t, 5*time.Minute, "all runs are done", func(ctx context.Context) (bool, string, error) {
				b.runs = map[int]pipelinev1.PipelineRun{}
				list, err := e.tekton.TektonV1().PipelineRuns(b.namespace).List(ctx, metav1.ListOptions{LabelSelector: pushrun.Selector})
				if err != nil {
					return false, "", err
				}
				left := ""
				for _, run := range list.Items {
					b.runs[b.number(run.Name)] = run
					if !run.IsDone() {
						left += " " + run.Name + " " + message(&run) + ";"
					}
				}
				return left == "" && len(b.runs) == pushes, left, nil
			})
			c.check(t, b)
			b.neverTwo(t)
			if last := b.runs[pushes-1]; !last.IsSuccessful() {
				t.Errorf("the last push: %s", message(&last))
			}
		})
	}
}

func inOrder() []int {
	order := make([]int, pushes)
	for i := range order {
		order[i] = i
	}
	return order
}

// pairsSwapped is what deliveries that overtake each other make of an order; even the
// last push is heard of before the last but one.
func pairsSwapped() []int {
	order := inOrder()
	for i := 0; i < pushes; i += 2 {
		order[i], order[i+1] = order[i+1], order[i]
	}
	return order
}

// burst is the pushes to one branch, and what became of their runs.
type burst struct {
	env       env
	namespace string
	policy    queue.Policy
	runs      map[int]pipelinev1.PipelineRun // at the end, by number of the push
	seen      chan []string
}

// commit of a push. It says nothing about the order, as is usual.
func (b *burst) commit(n int) string {
	if n < 0 {
		return pushrun.NoCommit
	}
	sum := sha1.Sum(fmt.Appendf(nil, "%s %d", b.policy, n))
	return hex.EncodeToString(sum[:])
}

func (b *burst) name(n int) string { return "r-" + b.commit(n) }

func (b *burst) number(name string) int {
	for n := range pushes {
		if b.name(n) == name {
			return n
		}
	}
	return -1
}

// openQueue runs the queue in this process, as its Deployment would.
func (b *burst) openQueue(t *testing.T) {
	settings := queue.Defaults()
	settings.Policy = b.policy
	q := queue.New(queue.Config{
		Namespace: b.namespace, Settings: settings, Now: time.Now, After: time.After,
		Log:  slog.New(slog.NewTextHandler(t.Output(), nil)),
		Runs: b.env.tekton.TektonV1().PipelineRuns(b.namespace), Events: b.env.kube.CoreV1().Events(b.namespace),
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// deliver creates the run of a push as the listener does. Under the policy that lets
// all of them in, most skip their only task, which takes Tekton a second.
func (b *burst) deliver(t *testing.T, n int) {
	t.Helper()
	works := "yes"
	if b.policy == queue.InTurn && n%10 > 0 && n < pushes-1 {
		works = "no"
	}
	_, err := b.env.tekton.TektonV1().PipelineRuns(b.namespace).Create(t.Context(), &pipelinev1.PipelineRun{
		ObjectMeta: metav1.ObjectMeta{
			Name:   b.name(n),
			Labels: map[string]string{pushrun.TriggerLabel: pushrun.TriggerPush, pushrun.ForgeLabel: "gitea", pushrun.CommitLabel: b.commit(n)},
			Annotations: map[string]string{
				pushrun.RepositoryLabel: "trainyard/trainyard", pushrun.BranchLabel: "main", pushrun.BeforeAnnotation: b.commit(n - 1),
			},
		},
		Spec: pipelinev1.PipelineRunSpec{
			Status:          pipelinev1.PipelineRunSpecStatusPending,
			TaskRunTemplate: nonroot(),
			PipelineSpec: &pipelinev1.PipelineSpec{Tasks: []pipelinev1.PipelineTask{{
				Name: "work",
				// A node under load cannot always make a container; that is not the queue's.
				Retries: 3,
				When:    pipelinev1.WhenExpressions{{Input: works, Operator: selection.In, Values: []string{"yes"}}},
				TaskSpec: &pipelinev1.EmbeddedTask{TaskSpec: pipelinev1.TaskSpec{Steps: []pipelinev1.Step{{
					Name: "work", Image: b.env.Images["shell"], Command: []string{"true"}, SecurityContext: restricted(),
				}}}},
			}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// watch notes after each change of a run which are at work: those that are neither
// held back nor done, nor cancelled before they began.
func (b *burst) watch(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	w, err := b.env.tekton.TektonV1().PipelineRuns(b.namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.seen = make(chan []string, 10000)
	go func() {
		defer close(b.seen)
		atWork := map[string]bool{}
		for event := range w.ResultChan() {
			run, ok := event.Object.(*pipelinev1.PipelineRun)
			if !ok {
				return
			}
			status := run.Spec.Status
			if event.Type != watch.Deleted && !run.IsDone() && (status == "" || status == pipelinev1.PipelineRunSpecStatusCancelledRunFinally) {
				atWork[run.Name] = true
			} else {
				delete(atWork, run.Name)
			}
			var names []string
			for name := range atWork {
				names = append(names, name)
			}
			b.seen <- names
		}
	}()
}

// neverTwo is the promise of the queue, by what was watched and by when tasks worked.
func (b *burst) neverTwo(t *testing.T) {
	t.Helper()
	instants, atWork := 0, 0
	for drained := false; !drained; {
		select {
		case names, open := <-b.seen:
			if !open {
				t.Fatal("the watch broke")
			}
			instants++
			atWork = max(atWork, len(names))
			if len(names) > 1 {
				t.Errorf("at work together: %v", names)
			}
		default:
			drained = true
		}
	}
	if instants < 3*pushes || atWork != 1 {
		t.Errorf("%d runs at work in %d instants: too few to have seen anything", atWork, instants)
	}
	tasks, err := b.env.tekton.TektonV1().TaskRuns(b.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(tasks.Items, func(x, y pipelinev1.TaskRun) int {
		return x.CreationTimestamp.Compare(y.CreationTimestamp.Time)
	})
	for i := 1; i < len(tasks.Items); i++ {
		if before, task := tasks.Items[i-1], tasks.Items[i]; before.Status.CompletionTime.After(task.CreationTimestamp.Time) {
			t.Errorf("task %s ended at %s, and %s was created at %s", before.Name, before.Status.CompletionTime, task.Name, task.CreationTimestamp)
		}
	}
	t.Logf("%d changes watched, %d tasks ran", instants, len(tasks.Items))
}

// allSucceedInOrder: nothing is lost, and the pushes are trained as they were pushed.
func allSucceedInOrder(t *testing.T, b *burst) {
	for n := range pushes {
		run := b.runs[n]
		if !run.IsSuccessful() || run.Annotations[pushrun.SupersededByAnnotation] != "" {
			t.Errorf("push %d: %s", n, message(&run))
		}
		if before, is := b.runs[n-1]; is && run.Status.StartTime.Before(before.Status.CompletionTime) {
			t.Errorf("push %d began at %s, before the one before it ended, at %s", n, run.Status.StartTime, before.Status.CompletionTime)
		}
	}
}

// overtakenRunsNeverStart: what began has succeeded, the rest was never started.
func overtakenRunsNeverStart(t *testing.T, b *burst) {
	began := 0
	for n := range pushes {
		run := b.runs[n]
		if run.IsSuccessful() {
			began++
			continue
		}
		b.overtaken(t, n)
		if run.Spec.Status != pipelinev1.PipelineRunSpecStatusCancelled || len(run.Status.ChildReferences) > 0 {
			t.Errorf("push %d began and was cancelled: %s", n, message(&run))
		}
	}
	if began < 2 || began > pushes/2 {
		t.Errorf("%d of %d runs began", began, pushes)
	}
}

// overtakenRunsEnd: a run that had begun is cancelled too, in a way that lets its
// finally tasks run.
func overtakenRunsEnd(t *testing.T, b *burst) {
	ended := 0
	for n := range pushes {
		run := b.runs[n]
		if run.IsSuccessful() {
			continue
		}
		b.overtaken(t, n)
		if run.Spec.Status == pipelinev1.PipelineRunSpecStatusCancelledRunFinally {
			ended++
		}
	}
	t.Logf("%d runs were cancelled at work", ended)
}

// overtaken checks what a superseded run says of itself.
func (b *burst) overtaken(t *testing.T, n int) {
	t.Helper()
	run := b.runs[n]
	condition := run.Status.GetCondition("Succeeded")
	if condition == nil || condition.Reason != pipelinev1.PipelineRunReasonCancelled.String() {
		t.Errorf("push %d: %s", n, message(&run))
	}
	if by := b.number(run.Annotations[pushrun.SupersededByAnnotation]); by <= n {
		t.Errorf("push %d was overtaken by %d", n, by)
	}
	events, err := b.env.kube.CoreV1().Events(b.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(run.UID) + ",reason=" + queue.EventSuperseded})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return strings.Contains(e.Message, "is of a newer push") }) {
		t.Errorf("push %d: no event says why", n)
	}
}
