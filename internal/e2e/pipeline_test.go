//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestThePipelines is one test, since its parts share an image that takes a while
// to build.
func TestThePipelines(t *testing.T) {
	e := connect(t)
	s := e.stages(t)
	e.applyTasks(t, s.namespace)
	s.putCorpus(t)
	source := e.repository(t, s.namespace)
	commit := source.push(t, "to train with")

	t.Run("tkn pipeline start takes a model to production", func(t *testing.T) { s.image = s.start(t, commit) })
	if s.image == "" {
		t.Fatal("there is no trainer image to go on with")
	}
	t.Run("a killed training ends with the same weights", s.killed)
	t.Run("two runs on one directory: the second is refused", s.sameDirectory)
}

// start runs the whole sequence as a person starts it, and returns the image that
// it built.
func (s stages) start(t *testing.T, commit string) string {
	args := []string{
		"pipeline", "start", "train-and-promote", "--kubeconfig", s.Kubeconfig, "--namespace", s.namespace,
		"--workspace", "name=shared,volumeClaimTemplateFile=" + filepath.Join(s.Checkout, "pv/volume-claim-template.yaml"),
		"--pod-template", filepath.Join(s.Checkout, "pipelines/tkn/pod-template.yaml"),
		"--serviceaccount", "trainyard-train", "--task-serviceaccount", "build-image=trainyard-build",
		"--use-param-defaults", "--showlog",
	}
	params := append(s.small(),
		param("url", s.GitURL), param("revision", "refs/heads/"+s.namespace), param("commit", commit),
		param("builder-image", s.Images["builder"]), param("run-image", s.Images["run"]), param("insecure-registries", s.Registry))
	// The demo's own image is found when it is of the same source.
	for _, p := range replace(params, param("image", s.Registry+"/trainyard/trainer:demo")) {
		args = append(args, "--param", p.Name+"="+p.Value.StringVal)
	}
	log := s.command(t, s.Checkout, nil, s.Programs["tkn"], args...)
	runs, err := s.tekton.TektonV1().PipelineRuns(s.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(runs.Items) != 1 {
		t.Fatalf("%d runs, %v", len(runs.Items), err)
	}
	run := s.wait(t, time.Minute, &runs.Items[0])
	if !run.Status.GetCondition("Succeeded").IsTrue() {
		t.Fatalf("%s\n%s", message(run), log)
	}
	got := results(run)
	if got["verdict"] != "pass" || !strings.HasSuffix(got["model-uri"], strings.TrimPrefix(got["model-digest"], "sha256:")) || got["model-digest"] == "" {
		t.Errorf("results %v", got)
	}
	s.checkDigests(t, run.Name, got["image"])

	// The trainer itself, from the same source, as a person would check.
	trainer := filepath.Join(t.TempDir(), "trainer")
	s.command(t, filepath.Join(s.Checkout, "trainer"), nil, "go", "build", "-trimpath", "-o", trainer, "./cmd/trainer")
	t.Setenv("AWS_ACCESS_KEY_ID", s.account.id)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s.account.secret)
	store := []string{"--store=s3://" + s.bucket, "--s3-endpoint=" + s.S3, "--s3-region=us-east-1"}
	lineage := s.command(t, t.TempDir(), nil, trainer, append([]string{"lineage", "--name=llm", "--output=json"}, store...)...)
	if !strings.Contains(lineage, got["image"]) || !strings.Contains(lineage, strings.TrimPrefix(got["model-digest"], "sha256:")) {
		t.Errorf("the lineage names not both the image %s and the model %s:\n%s", got["image"], got["model-digest"], lineage)
	}
	model := s.download(t, "models/llm/"+strings.TrimPrefix(got["model-digest"], "sha256:")+"/")
	answer := s.command(t, t.TempDir(), nil, trainer, "sample", "--model="+model, "--base=none", "--prompt=Package ")
	if strings.TrimSpace(answer) == "" {
		t.Error("the promoted model answers nothing")
	}
	return got["image"]
}

// checkDigests makes sure that the tasks after the build ran exactly its image.
func (s stages) checkDigests(t *testing.T, run, image string) {
	t.Helper()
	for _, task := range []string{"prepare", "train", "evaluate", "gate", "promote", "sample"} {
		pods, err := s.kube.CoreV1().Pods(s.namespace).List(t.Context(), metav1.ListOptions{
			LabelSelector: "tekton.dev/pipelineRun=" + run + ",tekton.dev/pipelineTask=" + task,
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(pods.Items) == 0 {
			t.Errorf("task %s had no pod", task)
		}
		for _, pod := range pods.Items {
			for _, container := range pod.Spec.Containers {
				if container.Image != image {
					t.Errorf("task %s ran %s, built was %s", task, container.Image, image)
				}
			}
		}
	}
}

// killed deletes the pod of a training at three random steps, and compares the
// weights with those of a training that nobody disturbed.
func (s stages) killed(t *testing.T) {
	long := []pipelinev1.Param{param("max-iters", "80"), param("save-interval", "10"), param("name", "killed")}
	undisturbed := s.run(t, 10*time.Minute, s.pinned("undisturbed", s.small(long...)))
	want := results(undisturbed)["model-digest"]
	if want == "" {
		t.Fatalf("undisturbed: %s", message(undisturbed))
	}
	for _, seed := range []uint64{1, 2, 3} {
		step := 5 + rand.New(rand.NewPCG(seed, 0)).IntN(65) // of 80
		name := fmt.Sprintf("killed-at-%d", step)
		created := s.create(t, s.pinned(name, s.small(long...)))
		pod := s.atStep(t, name, step)
		if err := s.kube.CoreV1().Pods(s.namespace).Delete(t.Context(), pod, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		run := s.wait(t, 10*time.Minute, created)
		got := results(run)["model-digest"]
		t.Logf("killed at step %d: %s, undisturbed %s", step, got, want)
		if got != want {
			t.Errorf("killed at step %d: model %q, undisturbed %q: %s", step, got, want, message(run))
		}
	}
}

// sameDirectory starts two runs of one name on one claim.
func (s stages) sameDirectory(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "same"}, Spec: shared().VolumeClaimTemplate.Spec}
	if _, err := s.kube.CoreV1().PersistentVolumeClaims(s.namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	on := func(name string) *pipelinev1.PipelineRun {
		run := s.pinned(name, s.small(param("run", "same"), param("max-iters", "200"), param("name", "same")))
		run.Spec.Workspaces = []pipelinev1.WorkspaceBinding{{
			Name: "shared", PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "same"},
		}}
		return run
	}
	first := s.create(t, on("same-first"))
	s.atStep(t, "same-first", 1)
	second := s.run(t, 5*time.Minute, on("same-second"))
	if !second.Status.GetCondition("Succeeded").IsFalse() {
		t.Fatalf("the second is %s", message(second))
	}
	if why := s.log(t, s.tasks(t, "same-second")["prepare"], "prepare"); !strings.Contains(why, "same-first") {
		t.Errorf("the second does not say whose directory it is: %s", why)
	}
	if run := s.wait(t, 10*time.Minute, first); !run.Status.GetCondition("Succeeded").IsTrue() {
		t.Errorf("the first was disturbed: %s", message(run))
	}
}
