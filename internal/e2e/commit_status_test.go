//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tekton "github.com/tektoncd/pipeline/pkg/client/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trainyard/trainyard/internal/commitstatus"
	"github.com/trainyard/trainyard/internal/pushrun"
)

// statusForge takes commit statuses as GitHub, GitLab and Gitea do, and keeps them by
// the commit's first digit. It lets nobody in to Gitea.
type statusForge struct {
	*httptest.Server
	mu   sync.Mutex
	told map[string][]string
}

func newStatusForge(t *testing.T) *statusForge {
	f := &statusForge{told: map[string][]string{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *statusForge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var s struct {
		State       string `json:"state"`
		Description string `json:"description"`
		TargetURL   string `json:"target_url"`
	}
	github := strings.HasPrefix(r.URL.EscapedPath(), "/repos/owner/name/statuses/") && r.Header.Get("Authorization") == "Bearer of-github"
	gitlab := strings.HasPrefix(r.URL.EscapedPath(), "/api/v4/projects/owner%2Fname/statuses/") && r.Header.Get("PRIVATE-TOKEN") == "of-gitlab"
	switch {
	case err != nil || r.Method != http.MethodPost || json.Unmarshal(body, &s) != nil:
		w.WriteHeader(http.StatusBadRequest)
	case !github && !gitlab:
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"message": "not you"}`)
	default:
		f.mu.Lock()
		defer f.mu.Unlock()
		commit := filepath.Base(r.URL.Path)[:1]
		f.told[commit] = append(f.told[commit], strings.TrimSpace(s.State+": "+s.Description+" "+s.TargetURL))
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"id": 1}`)
	}
}

func (f *statusForge) all() map[string][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string][]string{}
	for commit, told := range f.told {
		all[commit] = append([]string(nil), told...)
	}
	return all
}

// statusRun is a run as a push starts one, of one task that runs a script. The task's
// results are the pipeline's.
func (e env) statusRun(namespace, name string, forge pushrun.Forge, commit, script string) *pipelinev1.PipelineRun {
	names := []string{"verdict", "reasons", "report-uri"}
	var taskResults []pipelinev1.TaskResult
	var results []pipelinev1.PipelineResult
	for _, n := range names {
		taskResults = append(taskResults, pipelinev1.TaskResult{Name: n})
		results = append(results, pipelinev1.PipelineResult{Name: n, Value: *pipelinev1.NewStructuredValues("$(tasks.judge.results." + n + ")")})
	}
	return &pipelinev1.PipelineRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels: map[string]string{
				pushrun.TriggerLabel: pushrun.TriggerPush, pushrun.ForgeLabel: string(forge),
				pushrun.RepositoryLabel: "name", pushrun.CommitLabel: strings.Repeat(commit, 40),
			},
			Annotations: map[string]string{pushrun.RepositoryLabel: "owner/name", pushrun.BranchLabel: "main"},
		},
		Spec: pipelinev1.PipelineRunSpec{
			TaskRunTemplate: nonroot(),
			PipelineSpec: &pipelinev1.PipelineSpec{
				Results: results,
				Tasks: []pipelinev1.PipelineTask{{
					Name: "judge",
					TaskSpec: &pipelinev1.EmbeddedTask{TaskSpec: pipelinev1.TaskSpec{
						Results: taskResults,
						Steps: []pipelinev1.Step{{
							Name: "judge", Image: e.Images["shell"], SecurityContext: restricted(),
							Script: "#!/bin/sh\nset -e\n" + script,
						}},
					}},
				}},
			},
		},
	}
}

// as connects with the rights of a ServiceAccount.
func (e env) as(t *testing.T, namespace, account string) (kubernetes.Interface, tekton.Interface) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", e.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	pipelines, err := tekton.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return kube, pipelines
}

// The rights are those of triggers/commit-status, the runs real, the forge is a server
// of this test.
func TestForgesAreToldOfPushedRuns(t *testing.T) {
	e := connect(t)
	namespace := e.namespace(t)
	for _, file := range []string{"service-account", "role", "role-binding"} {
		e.apply(t, namespace, "triggers/commit-status/"+file+".yaml")
	}
	forge := newStatusForge(t)
	tokens := t.TempDir()
	clients := map[pushrun.Forge]*commitstatus.Client{}
	for _, kind := range []pushrun.Forge{pushrun.GitHub, pushrun.GitLab, pushrun.Gitea} {
		file := filepath.Join(tokens, string(kind))
		if err := os.WriteFile(file, []byte("of-"+string(kind)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := commitstatus.NewClient(kind, forge.URL, file, []string{forge.Listener.Addr().String()})
		if err != nil {
			t.Fatal(err)
		}
		clients[kind] = c
	}
	link, err := commitstatus.ParseLink("https://reports.example.com/{bucket}/{key}")
	if err != nil {
		t.Fatal(err)
	}
	start := func() (stop func()) {
		kube, pipelines := e.as(t, namespace, "trainyard-commit-status")
		events, stopEvents := commitstatus.NewEvents(kube, namespace)
		r := &commitstatus.Reporter{
			Tekton: pipelines, Namespace: namespace, Forges: clients, Events: events,
			Telling: commitstatus.Telling{Context: "trainyard", Links: []commitstatus.Link{link}},
			Log:     slog.New(slog.NewTextHandler(t.Output(), nil)),
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		stop = sync.OnceFunc(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			stopEvents()
		})
		t.Cleanup(stop)
		return stop
	}
	stop := start()

	runs := e.tekton.TektonV1().PipelineRuns(namespace)
	create := func(run *pipelinev1.PipelineRun) {
		t.Helper()
		if _, err := runs.Create(t.Context(), run, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch := func(name, patch string) {
		t.Helper()
		if _, err := runs.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	result := func(name, value string) string {
		return "printf '%s' '" + value + "' > /tekton/results/" + name + "\n"
	}
	none := result("verdict", "none") + result("reasons", "") + result("report-uri", "")
	told := func(commit, want string) {
		t.Helper()
		e.until(t, 3*time.Minute, "the forge knows "+want, func(context.Context) (bool, string, error) {
			all := forge.all()[commit]
			return len(all) > 0 && strings.HasPrefix(all[len(all)-1], want), fmt.Sprint(all), nil
		})
	}
	waits := func(name string, forge pushrun.Forge, commit, script string) {
		run := e.statusRun(namespace, name, forge, commit, script)
		run.Spec.Status = pipelinev1.PipelineRunSpecStatusPending
		create(run)
	}
	waits("succeeds", pushrun.GitHub, "a", result("verdict", "pass")+result("reasons", "")+result("report-uri", "s3://b/runs/r/report.html"))
	waits("superseded", pushrun.GitLab, "c", none)
	told("a", "pending: waiting")
	told("c", "pending: waiting")
	patch("succeeds", `{"spec": {"status": null}}`)
	patch("superseded", `{"spec": {"status": "Cancelled"}, "metadata": {"annotations": {"trainyard.dev/superseded-by": "succeeds"}}}`)
	create(e.statusRun(namespace, "blocked", pushrun.GitLab, "b", result("verdict", "blocked")+result("reasons", "test loss 6.6 is more than 1.5")+result("report-uri", "s3://b/runs/b/report.html")+"exit 1\n"))
	create(e.statusRun(namespace, "fails", pushrun.GitHub, "f", none+"exit 7\n"))
	create(e.statusRun(namespace, "refused", pushrun.Gitea, "e", none))
	told("a", "success")
	told("b", "failed")
	told("c", "canceled")
	told("f", "failure")
	e.until(t, time.Minute, "an event says what the token lacks", func(ctx context.Context) (bool, string, error) {
		list, err := e.kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=CommitStatusRefused,involvedObject.kind=PipelineRun,involvedObject.name=refused"})
		if err != nil || len(list.Items) == 0 {
			return false, "none", err
		}
		event := list.Items[0]
		return event.Type == corev1.EventTypeWarning && strings.Contains(event.Message, "put a new one into") && !strings.Contains(event.Message, "of-gitea"), event.Message, nil
	})

	// The same again by another: nothing is told twice.
	for _, name := range []string{"succeeds", "blocked", "superseded", "fails"} {
		e.until(t, time.Minute, name+" says what was told", func(ctx context.Context) (bool, string, error) {
			run, err := runs.Get(ctx, name, metav1.GetOptions{})
			return err == nil && strings.Contains(run.Annotations[pushrun.ReportedAnnotation], `"state":`) && run.IsDone(), fmt.Sprint(err), nil
		})
	}
	stop()
	before := forge.all()
	stop = start()
	time.Sleep(5 * time.Second)
	stop()
	if diff := cmp.Diff(before, forge.all()); diff != "" {
		t.Error("after another start: " + diff)
	}
	want := map[string][]string{
		"a": {"pending: waiting for its turn; run " + namespace + "/succeeds", "pending: running; run " + namespace + "/succeeds", "success: passed the gate https://reports.example.com/b/runs/r/report.html"},
		"b": {"running: running; run " + namespace + "/blocked", "failed: blocked: test loss 6.6 is more than 1.5 https://reports.example.com/b/runs/b/report.html"},
		"c": {"pending: waiting for its turn; run " + namespace + "/superseded", "canceled: superseded by run succeeds; run " + namespace + "/superseded"},
		"f": {"pending: running; run " + namespace + "/fails", `failure: task judge failed: "step-judge" exited with code 7; run ` + namespace + "/fails"},
	}
	if diff := cmp.Diff(want, before); diff != "" {
		t.Error(diff)
	}
}
