package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonfake "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/trainyard/trainyard/internal/pushrun"
)

const ns = "team"

var runsResource = schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: "pipelineruns"}

// server is an API server that heeds versions, with a queue that works on it. It
// lives in a bubble of package synctest: time passes when nothing else does.
type server struct {
	t      *testing.T
	tekton *tektonfake.Clientset
	kube   *kubefake.Clientset
	queue  *Queue
	log    safeBuffer
	stop   func() error
	serial int
	// refuse answers requests in the server's place.
	refuse atomic.Pointer[func(verb, name string) error]
	mu     sync.Mutex
	asked  map[string]int // requests by verb
}

// safeBuffer may be read while the queue writes its log into it.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (v *server) count(verb string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.asked[verb]
}

func (v *server) refuses(f func(verb, name string) error) { v.refuse.Store(&f) }

func newServer(t *testing.T, s Settings) *server {
	v := &server{t: t, tekton: tektonfake.NewSimpleClientset(), kube: kubefake.NewClientset(), asked: map[string]int{}}
	v.tekton.PrependReactor("*", "pipelineruns", func(a clienttesting.Action) (bool, runtime.Object, error) {
		v.mu.Lock()
		v.asked[a.GetVerb()]++
		v.mu.Unlock()
		name := ""
		if n, ok := a.(interface{ GetName() string }); ok {
			name = n.GetName()
		}
		if refuse := v.refuse.Load(); refuse != nil {
			if err := (*refuse)(a.GetVerb(), name); err != nil {
				return true, nil, err
			}
		}
		if p, ok := a.(clienttesting.PatchAction); ok {
			return v.patched(p)
		}
		return false, nil, nil
	})
	v.queue = New(Config{
		Namespace: ns, Runs: v.tekton.TektonV1().PipelineRuns(ns), Events: v.kube.CoreV1().Events(ns), Settings: s,
		Log: slog.New(slog.NewTextHandler(&v.log, nil)), Now: time.Now, After: time.After,
	})
	return v
}

// patched does what a real API server does with the version in a merge patch.
func (v *server) patched(p clienttesting.PatchAction) (bool, runtime.Object, error) {
	pr := v.get(p.GetName())
	if pr == nil {
		return true, nil, apierrors.NewNotFound(runsResource.GroupResource(), p.GetName())
	}
	var change struct {
		Metadata struct {
			UID             types.UID         `json:"uid"`
			ResourceVersion string            `json:"resourceVersion"`
			Annotations     map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec map[string]*string `json:"spec"`
	}
	if err := json.Unmarshal(p.GetPatch(), &change); err != nil || p.GetPatchType() != types.MergePatchType {
		v.t.Errorf("patch %s: %v", p.GetPatch(), err)
	}
	if change.Metadata.UID != pr.UID || change.Metadata.ResourceVersion != pr.ResourceVersion {
		return true, nil, apierrors.NewConflict(runsResource.GroupResource(), pr.Name, errors.New("the object has been modified"))
	}
	for k, value := range change.Metadata.Annotations {
		pr.Annotations[k] = value
	}
	status, given := change.Spec["status"]
	if !given || len(change.Spec) != 1 {
		v.t.Errorf("patch %s", p.GetPatch())
	}
	pr.Spec.Status = ""
	if status != nil {
		pr.Spec.Status = pipelinev1.PipelineRunSpecStatus(*status)
	}
	v.update(pr)
	return true, pr, nil
}

func (v *server) get(name string) *pipelinev1.PipelineRun {
	o, err := v.tekton.Tracker().Get(runsResource, ns, name)
	if err != nil {
		return nil
	}
	return o.(*pipelinev1.PipelineRun).DeepCopy()
}

func (v *server) update(pr *pipelinev1.PipelineRun) {
	v.serial++
	pr.ResourceVersion = fmt.Sprint(v.serial)
	if err := v.tekton.Tracker().Update(runsResource, pr, ns); err != nil {
		v.t.Error(err)
	}
}

// push creates a run as the listener does. Its commit is the letter of its name.
func (v *server) push(name, before, branch string) {
	v.t.Helper()
	commit := func(s string) string { return strings.Repeat(fmt.Sprintf("%x", (s + "\x00")[0]&15), 40) }
	v.serial++
	pr := &pipelinev1.PipelineRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ns, Name: name, UID: types.UID("uid-" + name), ResourceVersion: fmt.Sprint(v.serial), CreationTimestamp: metav1.Now().Rfc3339Copy(),
			Labels:      map[string]string{pushrun.TriggerLabel: pushrun.TriggerPush, pushrun.ForgeLabel: "gitea", pushrun.CommitLabel: commit(name)},
			Annotations: map[string]string{pushrun.RepositoryLabel: "o/r", pushrun.BranchLabel: branch, pushrun.BeforeAnnotation: commit(before)},
		},
		Spec: pipelinev1.PipelineRunSpec{Status: pipelinev1.PipelineRunSpecStatusPending},
	}
	if err := v.tekton.Tracker().Create(runsResource, pr, ns); err != nil {
		v.t.Fatal(err)
	}
}

func (v *server) change(name string, f func(*pipelinev1.PipelineRun)) {
	pr := v.get(name)
	f(pr)
	v.update(pr)
}

func (v *server) finish(name string) {
	v.change(name, func(pr *pipelinev1.PipelineRun) { pr.Status.MarkSucceeded("Succeeded", "") })
}

func (v *server) start() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- v.queue.Run(ctx) }()
	v.stop = func() error { cancel(); return <-ended }
}

// states names each run's spec.status, in the order of the names given.
func (v *server) want(after time.Duration, states string) {
	v.t.Helper()
	time.Sleep(after)
	synctest.Wait()
	var got []string
	for _, field := range strings.Fields(states) {
		name, _, _ := strings.Cut(field, "=")
		state := "gone"
		if pr := v.get(name); pr != nil {
			state = map[pipelinev1.PipelineRunSpecStatus]string{"": "in", "PipelineRunPending": "held", "Cancelled": "cancelled", "CancelledRunFinally": "ended"}[pr.Spec.Status]
			if by := pr.Annotations[pushrun.SupersededByAnnotation]; by != "" {
				state += ":" + by
			}
		}
		got = append(got, name+"="+state)
	}
	if s := strings.Join(got, " "); s != states {
		v.t.Errorf("%s, want %s\n%s", s, states, v.log.String())
	}
}

func (v *server) events() string {
	list, err := v.kube.CoreV1().Events(ns).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		v.t.Fatal(err)
	}
	var lines []string
	for _, e := range list.Items {
		lines = append(lines, fmt.Sprintf("%s %s %s %s", e.InvolvedObject.Name, e.Type, e.Reason, e.Message))
	}
	return strings.Join(lines, "\n")
}

// within runs a test in a bubble, and ends its queue.
func within(t *testing.T, s Settings, test func(v *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		v := newServer(t, s)
		v.start()
		test(v)
		if err := v.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestRunsAreLetInOneAfterTheOther(t *testing.T) {
	within(t, Settings{Policy: InTurn}, func(v *server) {
		v.push("a", "", "main")
		v.want(time.Second, "a=in")
		v.push("b", "a", "main")
		v.push("c", "b", "main")
		v.push("x", "", "other")
		v.want(time.Second, "a=in b=held c=held x=in")
		v.finish("a")
		v.want(time.Second, "a=in b=in c=held")
		v.change("b", func(pr *pipelinev1.PipelineRun) { pr.Spec.Status = pipelinev1.PipelineRunSpecStatusCancelled })
		v.want(time.Second, "c=held")
		v.finish("b")
		v.want(time.Second, "c=in")
		got := v.events()
		for _, line := range []string{
			"a Normal Admitted no other run of branch main of o/r is active",
			"c Normal Queued it waits until run a of the same branch has ended",
			"c Normal Admitted no other run of branch main of o/r is active",
		} {
			if strings.Count(got, line) != 1 {
				v.t.Errorf("%d events %q in\n%s", strings.Count(got, line), line, got)
			}
		}
		e, err := v.kube.CoreV1().Events(ns).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			v.t.Fatal(err)
		}
		o := e.Items[0].InvolvedObject
		if want := (corev1.ObjectReference{APIVersion: "tekton.dev/v1", Kind: "PipelineRun", Namespace: ns, Name: o.Name, UID: types.UID("uid-" + o.Name), ResourceVersion: o.ResourceVersion}); o != want {
			v.t.Errorf("%+v", o)
		}
	})
}

func TestOvertakenRunsSayByWhich(t *testing.T) {
	within(t, Settings{Policy: Cancel, Settle: 5 * time.Second}, func(v *server) {
		v.push("a", "", "main")
		v.want(time.Second, "a=in")
		v.push("b", "a", "main")
		v.push("c", "b", "main")
		v.want(4*time.Second, "a=in b=held c=held")
		// Nothing happens, and yet it looks again.
		v.want(2*time.Second, "a=ended:c b=cancelled:c c=held")
		v.finish("a")
		v.want(time.Second, "c=held")
		v.finish("b")
		v.want(time.Second, "c=in")
		if got := v.events(); !strings.Contains(got, "a Normal Superseded cancelled: run c is of a newer push to the branch") || !strings.Contains(got, "b Normal Superseded not started: run c is of a newer push") {
			v.t.Error(got)
		}
	})
}

func TestOtherRunsAreNotTouched(t *testing.T) {
	within(t, Settings{Policy: Latest}, func(v *server) {
		v.push("a", "", "main")
		v.push("b", "", "main")
		v.push("c", "", "main")
		v.change("a", func(pr *pipelinev1.PipelineRun) { pr.Labels = map[string]string{"person": "ann"} })
		v.change("b", func(pr *pipelinev1.PipelineRun) { pr.Labels[pushrun.CommitLabel] = "main" })
		v.change("c", func(pr *pipelinev1.PipelineRun) { pr.DeletionTimestamp = &metav1.Time{Time: time.Now()} })
		v.push("d", "", "main")
		v.want(3*time.Minute, "a=held b=held c=held d=in")
		if got := v.events(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `b Warning NotQueued it stays held back: run team/b: its label trainyard.dev/commit is "main"`) {
			v.t.Error(got)
		}
	})
}

func TestARunThatChangedMeanwhileIsJudgedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newServer(t, Settings{Policy: Latest})
		// Changes that do not matter to a queue do not wake it.
		v.tekton.PrependWatchReactor("pipelineruns", func(clienttesting.Action) (bool, watch.Interface, error) { return true, watch.NewFake(), nil })
		v.push("a", "", "main")
		changes := 0
		v.refuses(func(verb, name string) error {
			if verb != "patch" || changes > 1 {
				return nil
			}
			changes++
			if changes == 1 { // Tekton says that it has seen it
				v.change(name, func(pr *pipelinev1.PipelineRun) { pr.Status.MarkRunning("PipelineRunPending", "") })
			} else { // a person does not want it
				v.change(name, func(pr *pipelinev1.PipelineRun) { pr.Spec.Status = pipelinev1.PipelineRunSpecStatusCancelled })
			}
			return nil
		})
		v.start()
		v.want(5*time.Second, "a=cancelled")
		if changes != 2 || v.count("patch") != 2 || v.events() != "" {
			t.Errorf("%d changes, %d patches, events %q", changes, v.count("patch"), v.events())
		}
		if err := v.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnErrorOfOneRunHoldsNoOtherBack(t *testing.T) {
	within(t, Settings{Policy: Latest}, func(v *server) {
		var works atomic.Bool
		v.refuses(func(verb, name string) error {
			if verb == "patch" && name == "a" && !works.Load() {
				return errors.New("admission webhook denied the request")
			}
			return nil
		})
		v.push("a", "", "main")
		v.push("b", "", "other")
		v.want(10*time.Second, "a=held b=in")
		if got := v.events(); strings.Count(got, "a Warning QueueFailed the queue could not admit it: admission webhook denied the request") != 1 {
			v.t.Error(got)
		}
		if n := v.count("patch"); n < 3 || n > 6 {
			v.t.Errorf("%d patches in ten seconds", n)
		}
		works.Store(true)
		v.want(30*time.Second, "a=in b=in")
	})
}

func TestTheAPIServerGoesAndComesBack(t *testing.T) {
	within(t, Settings{Policy: Latest}, func(v *server) {
		v.want(time.Second, "")
		var up atomic.Bool
		v.refuses(func(string, string) error {
			if !up.Load() {
				return errors.New("connection refused")
			}
			return nil
		})
		v.push("a", "", "main")
		v.want(10*time.Minute, "a=held")
		if n := v.count("list"); n > 30 {
			v.t.Errorf("%d lists in ten minutes", n)
		}
		v.probes(http.StatusOK, http.StatusServiceUnavailable)
		if !strings.Contains(v.log.String(), "list the runs of pushes in namespace team: connection refused") {
			v.t.Error(v.log.String())
		}
		up.Store(true)
		v.want(lastBackoff, "a=in")
		v.probes(http.StatusOK, http.StatusOK)
		v.push("b", "", "other")
		v.want(time.Second, "b=in")
	})
}

func (v *server) probes(health, ready int) {
	v.t.Helper()
	for path, want := range map[string]int{"/healthz": health, "/readyz": ready} {
		w := httptest.NewRecorder()
		v.queue.Health().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			v.t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
}

func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newServer(t, Settings{Policy: Latest})
		v.probes(http.StatusServiceUnavailable, http.StatusServiceUnavailable)
		v.start()
		v.want(time.Second, "")
		v.probes(http.StatusOK, http.StatusOK)
		v.want(time.Hour, "") // in which nothing is to be done
		v.probes(http.StatusOK, http.StatusOK)
		hang := make(chan struct{})
		v.refuses(func(string, string) error { <-hang; return nil })
		v.want(stillness+resync, "")
		v.probes(http.StatusServiceUnavailable, http.StatusServiceUnavailable)
		close(hang)
		v.want(time.Second, "")
		v.probes(http.StatusOK, http.StatusOK)
		if err := v.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestProgressOfARunIsNoReasonToList(t *testing.T) {
	within(t, Settings{Policy: Latest}, func(v *server) {
		v.push("a", "", "main")
		v.want(time.Second, "a=in")
		before := v.count("list")
		for n := range 20 {
			v.change("a", func(pr *pipelinev1.PipelineRun) { pr.Status.MarkRunning("Running", "%d tasks", n) })
			v.want(time.Second, "a=in")
		}
		if n := v.count("list") - before; n > 1 {
			v.t.Errorf("%d lists for progress", n)
		}
	})
}

func TestAWatchThatSaysNothingOrBreaks(t *testing.T) {
	for name, source := range map[string]struct {
		watch func() (watch.Interface, error)
		say   string
	}{
		"silent": {func() (watch.Interface, error) { return watch.NewFake(), nil }, ""},
		"closed": {func() (watch.Interface, error) { return watch.NewEmptyWatch(), nil }, ""},
		"too old, at once": {func() (watch.Interface, error) {
			return nil, apierrors.NewResourceExpired("too old resource version")
		}, ""},
		"too old, later": {func() (watch.Interface, error) {
			w := watch.NewFakeWithChanSize(1, false)
			status := apierrors.NewResourceExpired("too old resource version").Status()
			w.Error(&status)
			return w, nil
		}, ""},
		"refused": {func() (watch.Interface, error) {
			return nil, apierrors.NewForbidden(runsResource.GroupResource(), "", errors.New("no right to watch"))
		}, "no right to watch"},
		"broken": {func() (watch.Interface, error) {
			w := watch.NewFakeWithChanSize(1, false)
			w.Error(&metav1.Status{Status: metav1.StatusFailure, Message: "etcd is gone", Reason: metav1.StatusReasonInternalError})
			return w, nil
		}, "etcd is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newServer(t, Settings{Policy: InTurn})
				v.tekton.PrependWatchReactor("pipelineruns", func(clienttesting.Action) (bool, watch.Interface, error) {
					w, err := source.watch()
					return true, w, err
				})
				v.start()
				v.want(time.Second, "")
				v.push("a", "", "main")
				v.want(resync+time.Second, "a=in")
				v.finish("a")
				v.push("b", "a", "main")
				v.want(resync+time.Second, "b=in")
				if logged := strings.Contains(v.log.String(), "ERROR"); logged != (source.say != "") || !strings.Contains(v.log.String(), source.say) {
					t.Errorf("%s", v.log.String())
				}
				// 130 seconds, and never more than one look each pause.
				if n := v.count("list"); n > int(130*time.Second/pause) {
					t.Errorf("%d lists", n)
				}
				if err := v.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestListsOfManyPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newServer(t, Settings{Policy: InTurn})
		v.push("b", "", "main")
		v.push("a", "", "main")
		var asked []string
		v.tekton.PrependReactor("list", "pipelineruns", func(a clienttesting.Action) (bool, runtime.Object, error) {
			o := a.(clienttesting.ListActionImpl).ListOptions
			asked = append(asked, o.Continue)
			if o.Limit != pageSize || o.LabelSelector != pushrun.Selector {
				t.Errorf("%+v", o)
			}
			page := &pipelinev1.PipelineRunList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
			if o.Continue == "" {
				page.Continue = "more"
				page.Items = []pipelinev1.PipelineRun{*v.get("b")}
			} else {
				page.Items = []pipelinev1.PipelineRun{*v.get("a")}
			}
			return true, page, nil
		})
		runs, version, err := v.queue.list(t.Context())
		if err != nil || len(runs) != 2 || version != "7" || strings.Join(asked, ",") != ",more" {
			t.Errorf("%v %s %v %q", runs, version, err, asked)
		}
	})
}

// The link between two pushes of one second is remembered when the run between them
// is deleted.
func TestADeletedRunStillTellsTheOrder(t *testing.T) {
	within(t, Settings{Policy: Latest, Settle: 2 * time.Second, MaxRunning: 1}, func(v *server) {
		v.push("x", "", "other")
		v.want(time.Second, "x=in")
		v.push("c", "", "main")
		v.push("b", "c", "main")
		v.push("a", "b", "main")
		v.want(time.Second, "c=held b=held a=held")
		if err := v.tekton.Tracker().Delete(runsResource, ns, "b"); err != nil {
			v.t.Fatal(err)
		}
		v.want(5*time.Second, "c=cancelled:a a=held")
		v.finish("x")
		v.finish("c")
		v.want(time.Second, "a=in")
		v.finish("a")
		v.want(2*time.Minute, "a=in")
		if n := len(v.queue.runs); n != 3 {
			v.t.Errorf("%d runs in mind, want those that are there", n)
		}
	})
}

func TestPatch(t *testing.T) {
	run := Run{Name: "a", UID: "u", Version: "7"}
	for want, a := range map[string]Action{
		`{"metadata":{"resourceVersion":"7","uid":"u"},"spec":{"status":null}}`:                                                                    {Kind: Admit, Run: run},
		`{"metadata":{"annotations":{"trainyard.dev/superseded-by":"b"},"resourceVersion":"7","uid":"u"},"spec":{"status":"Cancelled"}}`:           {Kind: CancelWaiting, Run: run, By: "b"},
		`{"metadata":{"annotations":{"trainyard.dev/superseded-by":"b"},"resourceVersion":"7","uid":"u"},"spec":{"status":"CancelledRunFinally"}}`: {Kind: CancelStarted, Run: run, By: "b"},
	} {
		if got, err := patch(a); err != nil || string(got) != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
}

func TestRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newServer(t, Settings{})
		v.push("a", "", "main")
		for name, c := range map[string]struct {
			change func(*pipelinev1.PipelineRun)
			want   State
		}{
			"held back":                     {func(*pipelinev1.PipelineRun) {}, Waiting},
			"let in":                        {func(pr *pipelinev1.PipelineRun) { pr.Spec.Status = "" }, Active},
			"cancelled":                     {func(pr *pipelinev1.PipelineRun) { pr.Spec.Status = "Cancelled" }, Ending},
			"cancelled, finally runs":       {func(pr *pipelinev1.PipelineRun) { pr.Spec.Status = "CancelledRunFinally" }, Ending},
			"stopped":                       {func(pr *pipelinev1.PipelineRun) { pr.Spec.Status = "StoppedRunFinally" }, Ending},
			"deleted while it works":        {func(pr *pipelinev1.PipelineRun) { pr.Spec.Status = ""; pr.DeletionTimestamp = &metav1.Time{} }, Ending},
			"deleted while it is held back": {func(pr *pipelinev1.PipelineRun) { pr.DeletionTimestamp = &metav1.Time{} }, Done},
			"failed":                        {func(pr *pipelinev1.PipelineRun) { pr.Spec.Status = ""; pr.Status.MarkFailed("Failed", "") }, Done},
			"cancelled and done":            {func(pr *pipelinev1.PipelineRun) { pr.Spec.Status = "Cancelled"; pr.Status.MarkFailed("Cancelled", "") }, Done},
		} {
			pr := v.get("a")
			c.change(pr)
			if got, pushed := Read(pr); !pushed || got.State != c.want || got.Err != nil || got.Before != "" {
				t.Errorf("%s: %+v", name, got)
			}
		}
		pr := v.get("a")
		pr.Labels = nil
		if _, pushed := Read(pr); pushed {
			t.Error("a run without labels is taken for one of a push")
		}
	})
}
