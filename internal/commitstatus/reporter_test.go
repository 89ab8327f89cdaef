package commitstatus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/pkg/client/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/pushrun"
)

// cluster is a fake of Tekton's API. Its watches do not begin with what there is, as
// the newest API servers' do.
type cluster struct {
	*fake.Clientset
	t *testing.T
}

func (cluster) IsWatchListSemanticsUnSupported() bool { return true }

func newCluster(t *testing.T, objects ...runtime.Object) cluster {
	return cluster{fake.NewSimpleClientset(objects...), t}
}

func (c cluster) create(run *pipelinev1.PipelineRun) {
	c.t.Helper()
	if _, err := c.TektonV1().PipelineRuns(run.Namespace).Create(c.t.Context(), run, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// update gives a run of the cluster another state, and leaves its annotations.
func (c cluster) update(run *pipelinev1.PipelineRun) {
	c.t.Helper()
	now := c.get(run.Name)
	now.Spec, now.Status = run.Spec, run.Status
	if _, err := c.TektonV1().PipelineRuns(run.Namespace).Update(c.t.Context(), now, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c cluster) get(name string) *pipelinev1.PipelineRun {
	c.t.Helper()
	run, err := c.TektonV1().PipelineRuns("team").Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return run
}

// kept is the state that a run says the forge knows.
func (c cluster) kept(name string) State {
	s, _ := read(c.get(name).Annotations)
	return s.State
}

// lines is a log that many write.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type running struct {
	log    *lines
	events *record.FakeRecorder
	stop   func()
}

// start runs a reporter, which is stopped at the end of the test at the latest.
func start(t *testing.T, c cluster, clients map[pushrun.Forge]*Client) running {
	t.Helper()
	c.ClearActions()
	log := &lines{}
	events := record.NewFakeRecorder(1000)
	r := &Reporter{
		Tekton: c, Namespace: "team", Forges: clients, Telling: Telling{Context: "trainyard"},
		Log: slog.New(slog.NewTextHandler(log, nil)), Events: events,
		Pace: Pace{Between: time.Millisecond, First: 5 * time.Millisecond, Most: 20 * time.Millisecond, Resync: time.Second},
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("it ended with %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("it does not end")
		}
		if strings.Contains(log.String(), secret) {
			t.Error("the token is in the log")
		}
		for {
			select {
			case e := <-events.Events:
				if strings.Contains(e, secret) {
					t.Error("the token is in an event")
				}
				continue
			default:
			}
			break
		}
	})
	t.Cleanup(stop)
	// The fake's watches have only what happens after they began.
	until(t, "the runs are watched", func() bool {
		return slices.ContainsFunc(c.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() == "watch" })
	})
	time.Sleep(20 * time.Millisecond)
	return running{log, events, stop}
}

// until waits for a condition.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it did not come to be: %s", what)
		}
	}
}

// calm has every run looked at once more, and waits until that must have happened.
func (c cluster) calm() {
	c.t.Helper()
	runs, err := c.TektonV1().PipelineRuns("team").List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, run := range runs.Items {
		if _, err := c.TektonV1().PipelineRuns("team").Patch(c.t.Context(), run.Name, types.MergePatchType, []byte(`{"metadata": {"annotations": {"looked": "at"}}}`), metav1.PatchOptions{}); err != nil {
			c.t.Fatal(err)
		}
	}
	time.Sleep(250 * time.Millisecond)
}

func one(t *testing.T, kind pushrun.Forge, f *forge) map[pushrun.Forge]*Client {
	return map[pushrun.Forge]*Client{kind: clientOf(t, kind, f.URL)}
}

func TestARunIsToldFromItsFirstToItsLastState(t *testing.T) {
	t.Parallel()
	for kind, want := range map[pushrun.Forge]string{
		pushrun.GitHub: "pending pending success",
		pushrun.GitLab: "pending running success",
		pushrun.Gitea:  "pending pending success",
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			f, c := newForge(t), newCluster(t)
			start(t, c, one(t, kind, f))
			run := pushed("r", kind)
			run.Spec.Status = pipelinev1.PipelineRunSpecStatusPending
			c.create(run)
			until(t, "pending", func() bool { return c.kept("r") == Pending })
			run.Spec.Status = ""
			c.update(ended(run, corev1.ConditionUnknown, "Running", "Tasks Completed: 0"))
			until(t, "running", func() bool { return c.kept("r") == Running })
			c.update(ended(run, corev1.ConditionUnknown, "Running", "Tasks Completed: 1"))
			c.update(ended(run, corev1.ConditionTrue, "Succeeded", ""))
			until(t, "success", func() bool { return c.kept("r") == Success })
			c.calm()
			if f.states() != want {
				t.Errorf("told %q, want %q", f.states(), want)
			}
			if last := f.all()[2]; last.Description != "succeeded; run team/r" || last.Label != "trainyard" {
				t.Errorf("%+v", last)
			}
		})
	}
}

func TestAStartRepeatsNothing(t *testing.T) {
	t.Parallel()
	f, c := newForge(t), newCluster(t)
	going := ended(pushed("going", pushrun.GitHub), corev1.ConditionUnknown, "Running", "")
	c.create(ended(pushed("done", pushrun.GitHub), corev1.ConditionTrue, "Succeeded", ""))
	c.create(going)
	first := start(t, c, one(t, pushrun.GitHub, f))
	until(t, "both told", func() bool { return c.kept("done") == Success && c.kept("going") == Running })
	first.stop()

	second := start(t, c, one(t, pushrun.GitHub, f))
	c.calm()
	if n := f.requests(); n != 2 {
		t.Errorf("%d requests after the second start: %+v", n, f.all())
	}
	second.stop()

	// What happens while nobody looks is told after the next start.
	c.update(ended(going, corev1.ConditionFalse, "PipelineRunTimeout", ""))
	start(t, c, one(t, pushrun.GitHub, f))
	until(t, "the end", func() bool { return c.kept("going") == Error })
	if f.requests() != 3 {
		t.Errorf("%+v", f.all())
	}
}

func TestADoneRunIsNotToldAgainWhenSettingsChange(t *testing.T) {
	t.Parallel()
	f, c := newForge(t), newCluster(t)
	run := ended(pushed("r", pushrun.GitHub), corev1.ConditionTrue, "Succeeded", "")
	run.Annotations[pushrun.ReportedAnnotation] = `{"state": "failure", "description": "as it was told", "context": "of old"}`
	c.create(run)
	start(t, c, one(t, pushrun.GitHub, f))
	c.calm()
	if f.requests() != 0 {
		t.Errorf("%+v", f.all())
	}
}

func TestAnAnnotationThatIsNoStatusCountsForNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "success", `{"state": "great"}`, `{`, `[]`} {
		f, c := newForge(t), newCluster(t)
		run := ended(pushed("r", pushrun.GitHub), corev1.ConditionTrue, "Succeeded", "")
		run.Annotations[pushrun.ReportedAnnotation] = text
		c.create(run)
		r := start(t, c, one(t, pushrun.GitHub, f))
		until(t, text, func() bool { return c.kept("r") == Success })
		r.stop()
	}
}

func TestAfterTwoFailuresItSucceeds(t *testing.T) {
	t.Parallel()
	f, c := newForge(t), newCluster(t)
	f.answers(says(500, `{}`), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	start(t, c, one(t, pushrun.GitHub, f))
	c.create(ended(pushed("r", pushrun.GitHub), corev1.ConditionTrue, "Succeeded", ""))
	until(t, "success", func() bool { return c.kept("r") == Success })
	if f.requests() != 3 || f.states() != "success" {
		t.Errorf("%d requests, told %q", f.requests(), f.states())
	}
}

// While a forge is down a run goes on: what is told in the end is how it fares then.
func TestWhatIsToldLateIsTheLatest(t *testing.T) {
	t.Parallel()
	f, c := newForge(t), newCluster(t)
	var down atomic.Bool
	down.Store(true)
	for range 1000 {
		f.answers(func(w http.ResponseWriter, r *http.Request) {
			if down.Load() {
				says(503, ``)(w, r)
				return
			}
			f.mu.Lock()
			f.next = nil
			f.mu.Unlock()
			f.ServeHTTP(w, r)
		})
	}
	start(t, c, one(t, pushrun.GitHub, f))
	run := ended(pushed("r", pushrun.GitHub), corev1.ConditionUnknown, "Running", "")
	c.create(run)
	until(t, "two tries", func() bool { return f.requests() >= 2 })
	c.update(ended(run, corev1.ConditionTrue, "Succeeded", ""))
	time.Sleep(50 * time.Millisecond)
	down.Store(false)
	until(t, "success", func() bool { return c.kept("r") == Success })
	c.calm()
	if f.states() != "success" {
		t.Errorf("told %q", f.states())
	}
}

func TestOneForgeDoesNotWaitForAnother(t *testing.T) {
	t.Parallel()
	slow, quick, c := newForge(t), newForge(t), newCluster(t)
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	slow.answers(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-held
		answer(w, http.StatusCreated, "{}")
	})
	start(t, c, map[pushrun.Forge]*Client{
		pushrun.GitHub: clientOf(t, pushrun.GitHub, slow.URL),
		pushrun.GitLab: clientOf(t, pushrun.GitLab, quick.URL),
	})
	t.Cleanup(release)
	c.create(ended(pushed("a", pushrun.GitHub), corev1.ConditionTrue, "Succeeded", ""))
	until(t, "the slow one is asked", func() bool { return slow.requests() == 1 })
	c.create(ended(pushed("b", pushrun.GitLab), corev1.ConditionTrue, "Succeeded", ""))
	until(t, "the quick one is told", func() bool { return c.kept("b") == Success })
	if c.kept("a") != "" {
		t.Error("the slow one has answered: this shows nothing")
	}
	release()
	until(t, "the slow one is told", func() bool { return c.kept("a") == Success })
}

func TestAForgeThatLimitsIsLeftInPeace(t *testing.T) {
	t.Parallel()
	f, c := newForge(t), newCluster(t)
	f.answers(says(429, `{}`, "Retry-After", "1"))
	for i := range 5 {
		c.create(ended(pushed(fmt.Sprint("r", i), pushrun.Gitea), corev1.ConditionTrue, "Succeeded", ""))
	}
	start(t, c, one(t, pushrun.Gitea, f))
	until(t, "the first", func() bool { return f.requests() == 1 })
	begin := time.Now()
	time.Sleep(500 * time.Millisecond)
	if n := f.requests(); n != 1 {
		t.Errorf("%d requests within a wait", n)
	}
	until(t, "all", func() bool { return len(f.all()) == 5 })
	if time.Since(begin) < 900*time.Millisecond {
		t.Error("it did not wait as long as it was to")
	}
}

func TestWhatIsRefusedIsSaidOnceAndNotTriedAgain(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"401": says(401, `{"message": "Bad credentials"}`),
		"403": says(403, `{"message": "Resource not accessible"}`),
		"404": says(404, `{"message": "Not Found"}`),
		"422": says(422, `{"message": "No commit found"}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, c := newForge(t), newCluster(t)
			f.answers(answer)
			clients := one(t, pushrun.GitHub, f)
			r := start(t, c, clients)
			run := ended(pushed("r", pushrun.GitHub), corev1.ConditionUnknown, "Running", "")
			c.create(run)
			until(t, "asked", func() bool { return strings.Contains(r.log.String(), "refused") })
			c.calm()
			if n := f.requests(); n != 1 {
				t.Errorf("%d requests", n)
			}
			if n := strings.Count(r.log.String(), "refused the commit status ("+name+")"); n != 1 {
				t.Errorf("said %d times: %s", n, r.log)
			}
			select {
			case e := <-r.events.Events:
				if !strings.HasPrefix(e, "Warning CommitStatusRefused GitHub refused the commit status ("+name+")") {
					t.Error(e)
				}
			default:
				t.Error("no event")
			}
			if len(r.events.Events) != 0 {
				t.Error("a second event")
			}
			// The next state is another question.
			c.update(ended(run, corev1.ConditionTrue, "Succeeded", ""))
			until(t, "success", func() bool { return c.kept("r") == Success })
			if f.states() != "success" {
				t.Errorf("told %q", f.states())
			}
		})
	}
}

func TestATokenThatCannotBeReadIsSaidOnce(t *testing.T) {
	t.Parallel()
	f, c := newForge(t), newCluster(t)
	client := clientOf(t, pushrun.Gitea, f.URL)
	client.tokenFile = tokenFile(t, secret+" and "+secret)
	r := start(t, c, map[pushrun.Forge]*Client{pushrun.Gitea: client})
	c.create(ended(pushed("r", pushrun.Gitea), corev1.ConditionTrue, "Succeeded", ""))
	until(t, "refused", func() bool { return strings.Contains(r.log.String(), "write it as one line") })
	c.calm()
	if n := strings.Count(r.log.String(), "refused"); f.requests() != 0 || n != 2 { // once a line: message and error
		t.Errorf("%d requests: %s", f.requests(), r.log)
	}
}

func TestANewTokenIsTriedByItself(t *testing.T) {
	t.Parallel()
	f, c := newForge(t), newCluster(t)
	client := clientOf(t, pushrun.Gitea, f.URL)
	replace := func(content string) {
		t.Helper()
		next := client.tokenFile + ".next" // a mounted Secret, too, changes in one step
		if err := os.WriteFile(next, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, client.tokenFile); err != nil {
			t.Fatal(err)
		}
	}
	replace("expired")
	start(t, c, map[pushrun.Forge]*Client{pushrun.Gitea: client})
	c.create(ended(pushed("r", pushrun.Gitea), corev1.ConditionTrue, "Succeeded", ""))
	until(t, "refused", func() bool { return f.requests() == 1 })
	c.calm()
	replace(secret)
	until(t, "success", func() bool { return c.kept("r") == Success })
	if f.requests() != 2 {
		t.Errorf("%d requests", f.requests())
	}
}

func TestRunsThatAreNotOursAreLeftAlone(t *testing.T) {
	t.Parallel()
	f, c := newForge(t), newCluster(t)
	byHand := ended(pushed("by-hand", pushrun.GitHub), corev1.ConditionTrue, "Succeeded", "")
	byHand.Labels = nil
	elsewhere := ended(pushed("elsewhere", pushrun.GitHub), corev1.ConditionTrue, "Succeeded", "")
	elsewhere.Namespace = "other"
	bad := ended(pushed("bad", pushrun.GitHub), corev1.ConditionTrue, "Succeeded", "")
	bad.Annotations[pushrun.RepositoryLabel] = "owner/../../x"
	without := clientOf(t, pushrun.GitLab, f.URL)
	without.tokenFile += "-none"
	for _, run := range []*pipelinev1.PipelineRun{
		byHand, elsewhere, bad,
		ended(pushed("no-client", pushrun.Gitea), corev1.ConditionTrue, "Succeeded", ""),
		ended(pushed("no-token", pushrun.GitLab), corev1.ConditionTrue, "Succeeded", ""),
	} {
		c.create(run)
	}
	clients := one(t, pushrun.GitHub, f)
	clients[pushrun.GitLab] = without
	r := start(t, c, clients)
	c.calm()
	if f.requests() != 0 {
		t.Errorf("%+v", f.all())
	}
	for _, name := range []string{"by-hand", "bad", "no-client", "no-token"} {
		if c.kept(name) != "" {
			t.Errorf("%s: %v", name, c.get(name).Annotations)
		}
	}
	if strings.Contains(r.log.String(), "tried again") {
		t.Errorf("a forge without a token is no failure: %s", r.log)
	}
	if n := strings.Count(r.log.String(), "a run is left alone"); n != 1 || !strings.Contains(r.log.String(), "owner/../../x") {
		t.Errorf("%d times: %s", n, r.log)
	}
}

func TestARunThatVanishesIsDropped(t *testing.T) {
	t.Parallel()
	f, c := newForge(t), newCluster(t)
	for range 1000 {
		f.answers(says(500, `{}`))
	}
	start(t, c, one(t, pushrun.GitHub, f))
	c.create(ended(pushed("r", pushrun.GitHub), corev1.ConditionTrue, "Succeeded", ""))
	until(t, "tried", func() bool { return f.requests() >= 2 })
	if err := c.TektonV1().PipelineRuns("team").Delete(t.Context(), "r", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.calm()
	n := f.requests()
	c.calm()
	if f.requests() != n {
		t.Error("it is still told")
	}
}

// The forge knows, and only the note at the run is missing: it is that which is tried
// again.
func TestWhatCouldNotBeNotedIsNotToldAgain(t *testing.T) {
	t.Parallel()
	f, c := newForge(t), newCluster(t)
	var refuse atomic.Int32
	refuse.Store(3)
	c.PrependReactor("patch", "pipelineruns", func(clienttesting.Action) (bool, runtime.Object, error) {
		if refuse.Add(-1) >= 0 {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "tekton.dev", Resource: "pipelineruns"}, "r", errors.New("no"))
		}
		return false, nil, nil
	})
	r := start(t, c, one(t, pushrun.GitLab, f))
	c.create(ended(pushed("r", pushrun.GitLab), corev1.ConditionTrue, "Succeeded", ""))
	until(t, "noted", func() bool { return c.kept("r") == Success })
	if f.requests() != 1 || !strings.Contains(r.log.String(), "note at run r") {
		t.Errorf("%d requests: %s", f.requests(), r.log)
	}
}

// To be stopped in the middle of a request would leave it open whether it was told.
func TestWhatWasBegunIsEnded(t *testing.T) {
	t.Parallel()
	f, c := newForge(t), newCluster(t)
	begun, release := make(chan struct{}), make(chan struct{})
	f.answers(func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-release
		f.ServeHTTP(w, r)
	})
	for _, name := range []string{"r", "s", "t"} {
		c.create(ended(pushed(name, pushrun.GitHub), corev1.ConditionTrue, "Succeeded", ""))
	}
	r := start(t, c, one(t, pushrun.GitHub, f))
	select {
	case <-begun:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was begun")
	}
	time.AfterFunc(100*time.Millisecond, func() { close(release) })
	r.stop()
	noted := 0
	for _, name := range []string{"r", "s", "t"} {
		if c.kept(name) == Success {
			noted++
		}
	}
	if len(f.all()) != 1 || noted != 1 {
		t.Errorf("told %d, noted %d", len(f.all()), noted)
	}
}

func TestTheTaskThatFailedIsNamed(t *testing.T) {
	t.Parallel()
	f, c := newForge(t), newCluster(t)
	task := func(name, reason, message string, status corev1.ConditionStatus, second int) *pipelinev1.TaskRun {
		run := &pipelinev1.TaskRun{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "r-" + name, CreationTimestamp: metav1.Unix(int64(second), 0),
			Labels: map[string]string{"tekton.dev/pipelineRun": "r", "tekton.dev/pipelineTask": name},
		}}
		run.Status.Status = ended(&pipelinev1.PipelineRun{}, status, reason, message).Status.Status
		return run
	}
	other := task("prepare", "Failed", "of another run", corev1.ConditionFalse, 1)
	other.Name, other.Labels["tekton.dev/pipelineRun"] = "s-prepare", "s"
	for _, run := range []*pipelinev1.TaskRun{
		other,
		task("evaluate", "TaskRunCancelled", "cancelled", corev1.ConditionFalse, 2),
		task("fetch-source", "Succeeded", "", corev1.ConditionTrue, 1),
		task("train", "Failed", `"step-train" exited with code 137: OOMKilled`, corev1.ConditionFalse, 2),
		task("report", "Failed", "later", corev1.ConditionFalse, 3),
	} {
		if _, err := c.TektonV1().TaskRuns("team").Create(t.Context(), run, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	start(t, c, one(t, pushrun.GitHub, f))
	c.create(ended(pushed("r", pushrun.GitHub), corev1.ConditionFalse, "Failed", "Tasks Completed: 2"))
	until(t, "failure", func() bool { return c.kept("r") == Failure })
	want := []told{{pushrun.GitHub, "owner/name", commit, "failure", `tasks train, report failed: "step-train" exited with code 137: OOMKilled; run team/r`, "", "trainyard"}}
	if diff := cmp.Diff(want, f.all()); diff != "" {
		t.Error(diff)
	}
}

func TestWhoMayNotSeeRunsIsToldSoAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.PrependReactor("list", "pipelineruns", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "tekton.dev", Resource: "pipelineruns"}, "", errors.New("no"))
	})
	r := &Reporter{Tekton: c, Namespace: "team", Log: slog.New(slog.DiscardHandler), Events: record.NewFakeRecorder(1)}
	err := r.Run(t.Context())
	if exitcode.Of(err) != exitcode.IO || !strings.Contains(err.Error(), "list the runs of namespace team") {
		t.Error(err)
	}
}
