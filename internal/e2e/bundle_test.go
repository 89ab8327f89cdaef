//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pushBundle pushes files of the checkout as a bundle, and returns it by digest.
func (s stages) pushBundle(t *testing.T, name string, args ...string) string {
	t.Helper()
	digest := filepath.Join(t.TempDir(), "digest")
	s.command(t, s.Checkout, nil, s.Programs["yard"], append([]string{
		"bundle", "push", "--tool-image=" + s.Images["tool"], "--insecure-registry=" + s.Registry, "--digest-file=" + digest,
		s.Registry + "/e2e/" + s.namespace + "/" + name + ":test",
	}, args...)...)
	reference, err := os.ReadFile(digest)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(reference))
}

func TestARunFromBundlesByDigest(t *testing.T) {
	e := connect(t)
	s := e.stages(t)
	s.putCorpus(t)
	source := s.sourceAndBuild(t)
	t.Parallel()
	tasks := s.pushBundle(t, "tasks", "tasks")
	pipelines := s.pushBundle(t, "pipelines", "--task-bundle="+tasks, "pipelines/train-and-promote.yaml", "pipelines/train-pinned.yaml")
	text := e.command(t, e.Checkout, nil, e.Programs["yard"], "render", "--pipeline-bundle="+pipelines, "pipelines/runs/from-scratch.yaml")
	params := append(s.small(source...), param("max-iters", "20"), param("eval-interval", "10"))
	run := s.wait(t, 15*time.Minute, s.kubectlCreate(t, e.example(t, []byte(text), params...)))
	s.checkPromoted(t, run, "godoc")

	checkBundle(t, "the run", run.Status.Provenance, pipelines, "train-and-promote")
	taskRuns := s.tasks(t, run.Name)
	if len(taskRuns) != 9 {
		t.Errorf("%d tasks ran", len(taskRuns))
	}
	for name, task := range taskRuns {
		checkBundle(t, name, task.Status.Provenance, tasks, name)
	}
	// Nothing of it is in the namespace.
	kinds := e.tekton.TektonV1()
	if list, err := kinds.Pipelines(s.namespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("%d pipelines are in the namespace, %v", len(list.Items), err)
	}
	if list, err := kinds.Tasks(s.namespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("%d tasks are in the namespace, %v", len(list.Items), err)
	}
}

// checkBundle makes sure that an object's provenance names an entry of a bundle.
func checkBundle(t *testing.T, what string, got *pipelinev1.Provenance, bundle, entry string) {
	t.Helper()
	repository, digest, _ := strings.Cut(bundle, "@sha256:")
	if got == nil || got.RefSource == nil {
		t.Errorf("%s has no provenance", what)
		return
	}
	if r := got.RefSource; r.Digest["sha256"] != digest || r.EntryPoint != entry || !strings.Contains(r.URI, repository) {
		t.Errorf("%s is %s of %s %v, want %s of %s", what, r.EntryPoint, r.URI, r.Digest, entry, bundle)
	}
}
