//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/pushrun"
	"github.com/trainyard/trainyard/internal/trigger/deliveries"
)

const elsewhere = "https://git.example.com/trainyard/trainyard"

func TestFiftyDeliveriesOfOnePushAreOneRun(t *testing.T) {
	l := connect(t).newListener(t, deliveries.AnyFile(elsewhere))
	d := l.push(t, pushrun.NoCommit, strings.Repeat("a", 40))
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			if _, err := l.post(t.Context(), d.Header, d.Body); err != nil {
				t.Errorf("delivery %d: %v", i, err)
			}
		})
	}
	group.Wait()
	// The run of another push says that the listener is done with these.
	other := l.push(t, pushrun.NoCommit, strings.Repeat("b", 40))
	if _, err := l.post(t.Context(), other.Header, other.Body); err != nil {
		t.Fatal(err)
	}
	l.have(t, map[string]bool{"trainyard-" + strings.Repeat("a", 40): true, "trainyard-" + strings.Repeat("b", 40): true})
	l.lives(t)
}

// The largest body that GitHub sends, from somebody who does not know the secret.
func TestAHugeBodyThatNobodySignedStartsNothing(t *testing.T) {
	l := connect(t).newListener(t, deliveries.AnyFile(elsewhere))
	commit := strings.Repeat("c", 40)
	d := l.push(t, pushrun.NoCommit, commit)
	d.Body = []byte(strings.Replace(string(d.Body), "{", `{"padding": "`+strings.Repeat("x", 25<<20)+`", `, 1))
	for range 3 {
		if _, err := l.post(t.Context(), d.Header, d.Body); err != nil {
			t.Error(err)
		}
	}
	other := l.push(t, pushrun.NoCommit, strings.Repeat("d", 40))
	if _, err := l.post(t.Context(), other.Header, other.Body); err != nil {
		t.Fatal(err)
	}
	l.have(t, map[string]bool{"trainyard-" + strings.Repeat("d", 40): true})
	l.lives(t)
}

// With the queue of triggers/queue beside the listener, one push trains at a time, and
// the last one does.
func TestTwentyPushesInTenSeconds(t *testing.T) {
	l := connect(t).newListener(t, deliveries.AnyFile(elsewhere))
	l.twenty(t)
}

// twenty pushes one commit after the other and watches what the queue makes of them.
func (l listener) twenty(t *testing.T) {
	l.standIn(t)
	l.apply(t, l.namespace, "sa/trainyard-build.yaml", "sa/trainyard-train.yaml", "triggers/queue")
	l.until(t, 2*time.Minute, "the queue is there", func(ctx context.Context) (bool, string, error) {
		d, err := l.kube.AppsV1().Deployments(l.namespace).Get(ctx, "trainyard-queue", metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		return d.Status.AvailableReplicas == 1, fmt.Sprintf("%+v", d.Status), nil
	})
	began := time.Now()
	ticks := time.NewTicker(500 * time.Millisecond)
	defer ticks.Stop()
	before, want := pushrun.NoCommit, map[string]bool{}
	most := 0
	for i := range 20 {
		commit := fmt.Sprintf("%040x", i+1)
		d := l.push(t, before, commit)
		if status, err := l.post(t.Context(), d.Header, d.Body); err != nil || status != 202 {
			t.Errorf("push %d: %d, %v", i, status, err)
		}
		before = commit
		want["trainyard-"+commit] = true
		most = max(most, l.active(t))
		<-ticks.C
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Logf("the pushes took %v", took)
	}
	last := "trainyard-" + before
	var list *pipelinev1.PipelineRunList
	l.until(t, 5*time.Minute, "all runs have ended", func(ctx context.Context) (bool, string, error) {
		most = max(most, l.active(t))
		var err error
		list, err = l.tekton.TektonV1().PipelineRuns(l.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", err
		}
		done := 0
		for _, run := range list.Items {
			if run.IsDone() {
				done++
			}
		}
		return done == len(want), fmt.Sprintf("%d of %d", done, len(want)), nil
	})
	if most > 1 {
		t.Errorf("%d runs of one branch were active at once", most)
	}
	trained := 0
	for _, run := range list.Items {
		superseded := run.Annotations[pushrun.SupersededByAnnotation]
		switch {
		case !want[run.Name]:
			t.Errorf("there is a run %s", run.Name)
		case run.Status.GetCondition("Succeeded").IsTrue():
			trained++
			if superseded != "" {
				t.Errorf("run %s was superseded by %s, and trained", run.Name, superseded)
			}
		case run.Name == last:
			t.Errorf("the last push did not train: %s", message(&run))
		case superseded == "":
			t.Errorf("run %s did not train, and does not say for which: %s", run.Name, message(&run))
		}
	}
	t.Logf("of 20 pushes %d trained, the others were superseded", trained)
	if trained == 20 {
		t.Error("each of 20 pushes trained: the policy latest did not hold")
	}
	l.lives(t)
}

// active counts runs that have begun and not ended.
func (l listener) active(t *testing.T) int {
	t.Helper()
	list, err := l.tekton.TektonV1().PipelineRuns(l.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, run := range list.Items {
		if run.Status.StartTime != nil && !run.IsDone() && !run.IsPending() {
			n++
		}
	}
	return n
}

// standIn installs a pipeline that takes the parameters of train-and-promote and takes a
// few seconds to do nothing, in its place.
func (l listener) standIn(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.Checkout, "pipelines/train-and-promote.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var pipeline pipelinev1.Pipeline
	if err := yaml.UnmarshalStrict(text, &pipeline); err != nil {
		t.Fatal(err)
	}
	pipeline.Spec.Results, pipeline.Spec.Finally = nil, nil
	names := []string{"fetch-source", "build-image", "train"} // those that runs have settings for
	pipeline.Spec.Tasks = nil
	for i, name := range names {
		task := pipelinev1.PipelineTask{
			Name: name,
			TaskSpec: &pipelinev1.EmbeddedTask{TaskSpec: pipelinev1.TaskSpec{Steps: []pipelinev1.Step{{
				Name: "work", Image: l.Images["shell"], SecurityContext: nonrootUser(), Command: []string{"sleep"}, Args: []string{"2"},
				ComputeResources: corev1.ResourceRequirements{},
			}}}},
		}
		if i > 0 {
			task.RunAfter = []string{names[i-1]}
		}
		pipeline.Spec.Tasks = append(pipeline.Spec.Tasks, task)
	}
	pipeline.ObjectMeta = metav1.ObjectMeta{Name: pipeline.Name}
	if _, err := l.tekton.TektonV1().Pipelines(l.namespace).Create(t.Context(), &pipeline, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
