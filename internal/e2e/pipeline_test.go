//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stages runs the pipelines in one namespace with one trainer image.
type stages struct {
	env
	namespace, image string
	store            *s3.Client
}

// small are parameters of a training that takes seconds.
func (s stages) small(more ...pipelinev1.Param) []pipelinev1.Param {
	params := []pipelinev1.Param{
		param("image", s.image),
		param("corpus", "store:corpora/e2e.txt"),
		param("store", "s3://"+s.Bucket+"/e2e/"+s.namespace),
		param("vocab-size", "512"), param("max-iters", "40"), param("batch-size", "8"), param("block", "64"),
		param("eval-interval", "20"), param("save-interval", "5"), param("min-train-iter", "20"), param("threads", "1"),
	}
	for _, p := range more {
		params = replace(params, p)
	}
	return params
}

func replace(params []pipelinev1.Param, p pipelinev1.Param) []pipelinev1.Param {
	for i := range params {
		if params[i].Name == p.Name {
			params[i] = p
			return params
		}
	}
	return append(params, p)
}

// pinned is a run of train-pinned.
func (s stages) pinned(name string, params []pipelinev1.Param) *pipelinev1.PipelineRun {
	return &pipelinev1.PipelineRun{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace},
		Spec: pipelinev1.PipelineRunSpec{
			PipelineRef:     &pipelinev1.PipelineRef{Name: "train-pinned"},
			Params:          params,
			TaskRunTemplate: runAs("trainyard-train"),
			Workspaces:      []pipelinev1.WorkspaceBinding{shared()},
			TaskRunSpecs: []pipelinev1.PipelineTaskRunSpec{{
				PipelineTaskName: "train",
				ComputeResources: &corev1.ResourceRequirements{},
			}},
			Timeouts: &pipelinev1.TimeoutFields{
				Pipeline: &metav1.Duration{Duration: 8*time.Hour + 30*time.Minute},
				Tasks:    &metav1.Duration{Duration: 8 * time.Hour}, Finally: &metav1.Duration{Duration: 30 * time.Minute},
			},
		},
	}
}

// read returns an object below the test's own prefix of the store.
func (s stages) read(t *testing.T, key string) []byte {
	t.Helper()
	data, err := s.object(t.Context(), key)
	if err != nil {
		t.Fatalf("read %s of the store: %v", key, err)
	}
	return data
}

func (s stages) object(ctx context.Context, key string) ([]byte, error) {
	got, err := s.store.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(s.Bucket), Key: aws.String("e2e/" + s.namespace + "/" + key)})
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	return io.ReadAll(got.Body)
}

// TestThePipelines is one test, since its parts share an image that takes a while
// to build.
func TestThePipelines(t *testing.T) {
	e := connect(t)
	namespace := e.namespace(t)
	e.install(t, namespace)
	secret, err := e.kube.CoreV1().Secrets(namespace).Get(t.Context(), "s3-credentials", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := stages{env: e, namespace: namespace, store: s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(e.S3), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(string(secret.Data["access-key-id"]), string(secret.Data["secret-access-key"]), ""),
	})}
	s.putCorpus(t)
	source := e.repository(t, namespace)
	commit := source.push(t, "to train with")

	t.Run("tkn pipeline start takes a model to production", func(t *testing.T) { s.image = s.start(t, commit) })
	if s.image == "" {
		t.Fatal("there is no trainer image to go on with")
	}
	t.Run("a blocked gate fails the run and promotes nothing", s.blocked)
	t.Run("a killed training ends with the same weights", s.killed)
	t.Run("two runs on one directory: the second is refused", s.sameDirectory)
}

// putCorpus cuts a small corpus from the demo's.
func (s stages) putCorpus(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "corpus.txt")
	s.command(t, s.Checkout, nil, "go", "run", "./scripts/godoc-corpus", "-bytes", "200000", "-o", file)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.store.PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: aws.String(s.Bucket), Key: aws.String("e2e/" + s.namespace + "/corpora/e2e.txt"), Body: strings.NewReader(string(data)),
	})
	if err != nil {
		t.Fatal(err)
	}
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
	t.Setenv("AWS_ACCESS_KEY_ID", s.account(t).id)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s.account(t).secret)
	store := []string{"--store=s3://" + s.Bucket + "/e2e/" + s.namespace, "--s3-endpoint=" + s.S3, "--s3-region=us-east-1"}
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

// download copies everything below a prefix of the store into a folder.
func (s stages) download(t *testing.T, prefix string) string {
	t.Helper()
	folder := t.TempDir()
	whole := "e2e/" + s.namespace + "/" + prefix
	list, err := s.store.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(s.Bucket), Prefix: aws.String(whole)})
	if err != nil || len(list.Contents) == 0 {
		t.Fatalf("%d objects below %s, %v", len(list.Contents), whole, err)
	}
	for _, object := range list.Contents {
		name := strings.TrimPrefix(aws.ToString(object.Key), whole)
		if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), s.read(t, prefix+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

type account struct{ id, secret string }

func (s stages) account(t *testing.T) account {
	t.Helper()
	secret, err := s.kube.CoreV1().Secrets(s.namespace).Get(t.Context(), "s3-credentials", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return account{string(secret.Data["access-key-id"]), string(secret.Data["secret-access-key"])}
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

func (s stages) blocked(t *testing.T) {
	run := s.run(t, 10*time.Minute, s.pinned("blocked", s.small(param("max-val-loss", "0.5"), param("name", "blocked"))))
	if !run.Status.GetCondition("Succeeded").IsFalse() {
		t.Fatalf("the run is %s", message(run))
	}
	got := results(run)
	if got["verdict"] != "blocked" || !strings.Contains(got["reasons"], "0.5") {
		t.Errorf("verdict %q, reasons %q", got["verdict"], got["reasons"])
	}
	described := s.command(t, s.Checkout, nil, s.Programs["tkn"], "pipelinerun", "describe", "blocked", "--kubeconfig", s.Kubeconfig, "--namespace", s.namespace)
	if !strings.Contains(described, "0.5") {
		t.Errorf("tkn pr describe does not show the reasons:\n%s", described)
	}
	tasks, err := s.tekton.TektonV1().TaskRuns(s.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "tekton.dev/pipelineRun=blocked"})
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks.Items {
		if task.Labels["tekton.dev/pipelineTask"] == "promote" {
			t.Error("promote ran")
		}
	}
	var report struct {
		Verdict string `json:"verdict"`
	}
	if err := json.Unmarshal(s.read(t, "runs/blocked/gate_report.json"), &report); err != nil || report.Verdict == "pass" || report.Verdict == "" {
		t.Errorf("gate_report.json in the store says %q, %v", report.Verdict, err)
	}
	if page := s.read(t, "runs/blocked/report.html"); len(page) == 0 {
		t.Error("report.html in the store is empty")
	}
}

// killed deletes the pod of a training at three different steps, and compares the
// weights with those of a training that nobody disturbed.
func (s stages) killed(t *testing.T) {
	long := []pipelinev1.Param{param("max-iters", "80"), param("save-interval", "10"), param("name", "killed")}
	undisturbed := s.run(t, 10*time.Minute, s.pinned("undisturbed", s.small(long...)))
	want := results(undisturbed)["model-digest"]
	if want == "" {
		t.Fatalf("undisturbed: %s", message(undisturbed))
	}
	for _, step := range []int{15, 37, 62} {
		name := fmt.Sprintf("killed-at-%d", step)
		created, err := s.tekton.TektonV1().PipelineRuns(s.namespace).Create(t.Context(), s.pinned(name, s.small(long...)), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
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

// atStep waits until a run's training is at a step, and returns its pod.
func (s stages) atStep(t *testing.T, run string, step int) (pod string) {
	t.Helper()
	s.until(t, 5*time.Minute, fmt.Sprintf("run %s is at step %d", run, step), func(ctx context.Context) (bool, string, error) {
		pods, err := s.kube.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{
			LabelSelector: "tekton.dev/pipelineRun=" + run + ",tekton.dev/pipelineTask=train",
		})
		if err != nil || len(pods.Items) == 0 {
			return false, "no pod of the training", err
		}
		pod = pods.Items[0].Name
		log, err := s.kube.CoreV1().Pods(s.namespace).GetLogs(pod, &corev1.PodLogOptions{Container: "step-train"}).DoRaw(ctx)
		if err != nil {
			return false, err.Error(), nil // it has not begun
		}
		at := -1
		for line := range strings.Lines(string(log)) {
			var percent, now, of int
			if n, _ := fmt.Sscanf(strings.TrimSpace(line), "%d%% step %d/%d", &percent, &now, &of); n == 3 {
				at = now
			}
		}
		return at >= step, fmt.Sprintf("it is at step %d", at), nil
	})
	return pod
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
	first, err := s.tekton.TektonV1().PipelineRuns(s.namespace).Create(t.Context(), on("same-first"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.atStep(t, "same-first", 1)
	second := s.run(t, 5*time.Minute, on("same-second"))
	if !second.Status.GetCondition("Succeeded").IsFalse() {
		t.Fatalf("the second is %s", message(second))
	}
	tasks, err := s.tekton.TektonV1().TaskRuns(s.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "tekton.dev/pipelineRun=same-second,tekton.dev/pipelineTask=prepare"})
	if err != nil || len(tasks.Items) == 0 {
		t.Fatalf("the second has no prepare: %v", err)
	}
	pod, err := s.kube.CoreV1().Pods(s.namespace).GetLogs(tasks.Items[0].Status.PodName, &corev1.PodLogOptions{Container: "step-prepare"}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if why := string(pod); !strings.Contains(why, "same-first") {
		t.Errorf("the second does not say whose directory it is: %s", why)
	}
	if run := s.wait(t, 10*time.Minute, first); !run.Status.GetCondition("Succeeded").IsTrue() {
		t.Errorf("the first was disturbed: %s", message(run))
	}
}
