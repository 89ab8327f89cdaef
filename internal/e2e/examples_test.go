//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// example reads a run of pipelines/runs, and gives it the parameters that its comment
// leaves to whoever starts it.
func (e env) example(t *testing.T, text []byte, params ...pipelinev1.Param) *pipelinev1.PipelineRun {
	t.Helper()
	run := &pipelinev1.PipelineRun{}
	if err := yaml.UnmarshalStrict(text, run); err != nil {
		t.Fatal(err)
	}
	run.Spec.Params = with(run.Spec.Params, params...)
	return run
}

func (e env) exampleFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(e.Checkout, "pipelines", "runs", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// kubectlCreate starts a run with kubectl, as the examples' comments say.
func (s stages) kubectlCreate(t *testing.T, run *pipelinev1.PipelineRun) *pipelinev1.PipelineRun {
	t.Helper()
	text, err := yaml.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	out := s.command(t, s.Checkout, text, s.Programs["kubectl"], "--kubeconfig", s.Kubeconfig, "--namespace", s.namespace, "create", "--output=json", "--filename=-")
	created := &pipelinev1.PipelineRun{}
	if err := json.Unmarshal([]byte(out), created); err != nil {
		t.Fatal(err)
	}
	return created
}

// sourceAndBuild are parameters for train-and-promote on the demo: its registry speaks
// plain http, and its git server wants the commit in full.
func (s stages) sourceAndBuild(t *testing.T) []pipelinev1.Param {
	t.Helper()
	return []pipelinev1.Param{
		param("url", s.GitURL), param("revision", "refs/heads/"+s.namespace),
		param("commit", s.repository(t, s.namespace).push(t, "to train with")),
		// The demo's own image is found when it is of the same source.
		param("image", s.Registry+"/trainyard/trainer:e2e"), param("insecure-registries", s.Registry),
		param("builder-image", s.Images["builder"]), param("run-image", s.Images["run"]),
	}
}

// checkPromoted makes sure that a run promoted what it trained, and returns the folder
// of the model in the store.
func (s stages) checkPromoted(t *testing.T, run *pipelinev1.PipelineRun, name string) string {
	t.Helper()
	if !run.Status.GetCondition("Succeeded").IsTrue() {
		t.Fatalf("run %s: %s", run.Name, message(run))
	}
	got := results(run)
	digest := strings.TrimPrefix(got["model-digest"], "sha256:")
	folder := "models/" + name + "/" + digest + "/"
	if got["verdict"] != "pass" || digest == "" || got["model-uri"] != "s3://"+s.bucket+"/"+strings.TrimSuffix(folder, "/") {
		t.Errorf("run %s: results %v", run.Name, got)
	}
	if alias := s.read(t, "models/"+name+"/aliases/production.json"); !strings.Contains(string(alias), digest) {
		t.Errorf("run %s: the alias is %s, the model %s", run.Name, alias, digest)
	}
	return folder
}

// checkNothingPromoted makes sure that the store has no model and no alias.
func (s stages) checkNothingPromoted(t *testing.T) {
	t.Helper()
	for _, key := range s.list(t, "models/") {
		// A candidate that is blocked leaves an event.
		if !strings.Contains(key, "/history/") {
			t.Errorf("%s is in the store", key)
		}
	}
}

// TestTheExamplesOfPipelinesRuns is one test: each run trains with what the one before
// built or promoted.
func TestTheExamplesOfPipelinesRuns(t *testing.T) {
	e := connect(t)
	s := e.stages(t)
	e.applyTasks(t, s.namespace)
	e.command(t, e.Checkout, nil, "make", "corpus")
	corpus, err := os.ReadFile(filepath.Join(e.Checkout, "runs/corpus/godoc-2000000.txt"))
	if err != nil {
		t.Fatal(err)
	}
	s.put(t, "corpora/godoc.txt", corpus)
	facts, err := os.ReadFile(filepath.Join(e.Checkout, "examples/qa/facts.txt"))
	if err != nil {
		t.Fatal(err)
	}
	s.put(t, "corpora/facts.txt", facts)

	source := s.sourceAndBuild(t)
	t.Parallel()
	run := s.wait(t, 20*time.Minute, s.kubectlCreate(t, e.example(t, e.exampleFile(t, "from-scratch.yaml"), source...)))
	base := s.checkPromoted(t, run, "godoc")
	image := param("image", results(run)["image"])

	t.Run("qa-fine-tune goes on from a model of the store", func(t *testing.T) {
		t.Parallel()
		for _, key := range s.list(t, base) {
			if name := strings.TrimPrefix(key, base); !strings.Contains(name, "/") {
				s.put(t, "base/gpt2/"+name, s.read(t, key))
			}
		}
		// The base is a hundredth of what the example is for.
		tune := e.example(t, e.exampleFile(t, "qa-fine-tune.yaml"), image, param("lr", "3e-3"))
		tune.Spec.TaskRunSpecs[0].ComputeResources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}
		tuned := s.wait(t, 10*time.Minute, s.kubectlCreate(t, tune))
		s.checkPromoted(t, tuned, "qa")
		sample := s.log(t, s.tasks(t, tuned.Name)["sample"], "sample")
		question, answer, _ := strings.Cut(strings.SplitN(string(facts), "<|endoftext|>", 2)[0], "|")
		if !strings.Contains(sample, strings.TrimSpace(question)) || !strings.Contains(sample, strings.TrimSpace(answer)) {
			t.Errorf("the samples do not answer %q with %q:\n%s", question, answer, sample)
		}
	})
	t.Run("blocked-gate fails, promotes nothing and says why", func(t *testing.T) {
		t.Parallel()
		s.blocked(t, e.example(t, e.exampleFile(t, "blocked-gate.yaml"), image, param("name", "blocked")))
	})
}

func (s stages) blocked(t *testing.T, run *pipelinev1.PipelineRun) {
	run = s.wait(t, 10*time.Minute, s.kubectlCreate(t, run))
	if !run.Status.GetCondition("Succeeded").IsFalse() {
		t.Fatalf("the run is %s", message(run))
	}
	const reason = "is more than 1.5000"
	got := results(run)
	if got["verdict"] != "blocked" || !strings.Contains(got["reasons"], reason) || got["model-uri"] != "" {
		t.Errorf("results %v", got)
	}
	described := s.command(t, s.Checkout, nil, s.Programs["tkn"], "pr", "describe", run.Name, "--kubeconfig", s.Kubeconfig, "--namespace", s.namespace)
	if !strings.Contains(described, reason) || !strings.Contains(described, "of step 20, the policy asks for 100") {
		t.Errorf("tkn pr describe does not show the reasons:\n%s", described)
	}
	if _, ran := s.tasks(t, run.Name)["promote"]; ran {
		t.Error("promote ran")
	}
	var report struct {
		Verdict string   `json:"verdict"`
		Reasons []string `json:"reasons"`
	}
	if err := json.Unmarshal(s.read(t, "runs/"+run.Name+"/gate_report.json"), &report); err != nil || report.Verdict != "blocked" || len(report.Reasons) < 3 {
		t.Errorf("gate_report.json in the store says %+v, %v", report, err)
	}
	if page := s.read(t, "runs/"+run.Name+"/report.html"); !strings.Contains(string(page), reason) {
		t.Error("report.html in the store does not show the reasons")
	}
	for _, key := range s.list(t, "models/blocked/") {
		if !strings.HasPrefix(key, "models/blocked/history/") {
			t.Errorf("%s is in the store", key)
		}
	}
	s.finds(t, "task gate failed: step gate ended with exit code 1", run.Name)
}

// finds makes sure that yard doctor ends with a problem and says a sentence of it, in
// words that line breaks may part.
func (s stages) finds(t *testing.T, sentence string, args ...string) {
	t.Helper()
	s.until(t, time.Minute, "yard doctor says "+sentence, func(ctx context.Context) (bool, string, error) {
		said, err := s.doctor(ctx, args...)
		var exit *exec.ExitError
		if err == nil || !errors.As(err, &exit) || exit.ExitCode() != 1 {
			return false, said, nil
		}
		return strings.Contains(said, sentence), said, nil
	})
}

// doctor asks yard doctor about the namespace, or a run in it.
func (s stages) doctor(ctx context.Context, args ...string) (string, error) {
	return s.try(ctx, s.Checkout, nil, s.Programs["yard"],
		append([]string{"doctor", "--namespace=" + s.namespace, "--kubeconfig=" + s.Kubeconfig}, args...)...)
}
