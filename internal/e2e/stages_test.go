//go:build e2e

package e2e

import (
	"bytes"
	"context"
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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stages runs the pipelines in one namespace, with one trainer image and a bucket of
// its own, which is what ConfigMap trainyard-store names there.
type stages struct {
	env
	namespace, bucket, image string
	account                  account
	store                    *s3.Client
}

// account is that of the store.
type account struct{ id, secret string }

// stages makes a namespace with accounts and settings, but without any task.
func (e env) stages(t *testing.T) stages {
	t.Helper()
	namespace := e.namespace(t)
	e.configure(t, namespace)
	s := e.stagesIn(t, namespace, namespace)
	if _, err := s.store.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &s.bucket}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.removeBucket(t) })
	s.setStore(t, "bucket", s.bucket)
	return s
}

// stagesIn are those of a namespace that is there, with the store that it uses.
func (e env) stagesIn(t *testing.T, namespace, bucket string) stages {
	t.Helper()
	secret, err := e.kube.CoreV1().Secrets(namespace).Get(t.Context(), "s3-credentials", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := stages{
		env: e, namespace: namespace, bucket: bucket,
		account: account{string(secret.Data["access-key-id"]), string(secret.Data["secret-access-key"])},
	}
	s.store = s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(e.S3), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(s.account.id, s.account.secret, ""),
	})
	return s
}

// pinnedStages has all tasks, the trainer's image and a small corpus in the store.
func (e env) pinnedStages(t *testing.T) stages {
	t.Helper()
	s := e.stages(t)
	e.applyTasks(t, s.namespace)
	s.image = e.trainer(t)
	s.putCorpus(t)
	return s
}

// setStore changes what the ConfigMap of the store says.
func (s stages) setStore(t *testing.T, key, value string) {
	t.Helper()
	configs := s.kube.CoreV1().ConfigMaps(s.namespace)
	config, err := configs.Get(t.Context(), "trainyard-store", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config.Data[key] = value
	if _, err := configs.Update(t.Context(), config, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (s stages) removeBucket(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s.remove(ctx, t, "")
	if _, err := s.store.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &s.bucket}); err != nil {
		t.Error(err)
	}
}

// remove removes what is in the bucket below a prefix.
func (s stages) remove(ctx context.Context, t *testing.T, prefix string) {
	keys, err := s.keys(ctx, prefix)
	if err != nil {
		t.Error(err)
	}
	for _, key := range keys {
		if _, err := s.store.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: &key}); err != nil {
			t.Error(err)
		}
	}
}

// keys lists what is in the bucket below a prefix.
func (s stages) keys(ctx context.Context, prefix string) ([]string, error) {
	var keys []string
	for pages := s3.NewListObjectsV2Paginator(s.store, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &prefix}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list %s of bucket %s: %w", prefix, s.bucket, err)
		}
		for _, object := range page.Contents {
			keys = append(keys, aws.ToString(object.Key))
		}
	}
	return keys, nil
}

// list is keys for a test that cannot go on without them.
func (s stages) list(t *testing.T, prefix string) []string {
	t.Helper()
	keys, err := s.keys(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// read returns an object of the bucket.
func (s stages) read(t *testing.T, key string) []byte {
	t.Helper()
	got, err := s.store.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &s.bucket, Key: &key})
	if err != nil {
		t.Fatalf("read %s of the store: %v", key, err)
	}
	defer got.Body.Close()
	data, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatalf("read %s of the store: %v", key, err)
	}
	return data
}

func (s stages) put(t *testing.T, key string, data []byte) {
	t.Helper()
	if _, err := s.store.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &s.bucket, Key: &key, Body: bytes.NewReader(data)}); err != nil {
		t.Fatalf("put %s to the store: %v", key, err)
	}
}

// download copies everything below a prefix of the store into a folder.
func (s stages) download(t *testing.T, prefix string) string {
	t.Helper()
	folder := t.TempDir()
	keys := s.list(t, prefix)
	if len(keys) == 0 {
		t.Fatalf("nothing is below %s", prefix)
	}
	for _, key := range keys {
		file := filepath.Join(folder, strings.TrimPrefix(key, prefix))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, s.read(t, key), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
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
	s.put(t, "corpora/e2e.txt", data)
}

// trainer returns the trainer's image of the checkout: the one of the demo when it is
// of the same source.
func (e env) trainer(t *testing.T) string {
	t.Helper()
	out := e.command(t, e.Checkout, nil, e.Programs["yard"], "image", "build", "--workspace=.", "--folder=trainer",
		"--builder="+e.Images["builder"], "--run-image="+e.Images["run"], "--insecure-registry="+e.Registry,
		"--image="+e.Registry+"/trainyard/trainer:e2e", "--docker-network="+e.Name, "--ca-file=/etc/ssl/certs/ca-certificates.crt")
	image, _, _ := strings.Cut(out, "\n")
	if !strings.Contains(image, "@sha256:") {
		t.Fatalf("yard image build prints %q", out)
	}
	return image
}

// small are parameters of a training that takes seconds.
func (s stages) small(more ...pipelinev1.Param) []pipelinev1.Param {
	return with([]pipelinev1.Param{
		param("image", s.image), param("corpus", "store:corpora/e2e.txt"),
		param("vocab-size", "512"), param("max-iters", "40"), param("batch-size", "8"), param("block", "64"),
		param("eval-interval", "20"), param("save-interval", "5"), param("min-train-iter", "20"), param("threads", "1"),
	}, more...)
}

// with gives parameters other values, and adds those that are new.
func with(params []pipelinev1.Param, more ...pipelinev1.Param) []pipelinev1.Param {
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
				ComputeResources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
				}},
			}},
			Timeouts: &pipelinev1.TimeoutFields{
				Pipeline: &metav1.Duration{Duration: 8*time.Hour + 30*time.Minute},
				Tasks:    &metav1.Duration{Duration: 8 * time.Hour}, Finally: &metav1.Duration{Duration: 30 * time.Minute},
			},
		},
	}
}

// create starts a run without waiting for it.
func (s stages) create(t *testing.T, run *pipelinev1.PipelineRun) *pipelinev1.PipelineRun {
	t.Helper()
	created, err := s.tekton.TektonV1().PipelineRuns(s.namespace).Create(t.Context(), run, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// tasks returns the TaskRuns of a run, by the names of their tasks.
func (s stages) tasks(t *testing.T, run string) map[string]pipelinev1.TaskRun {
	t.Helper()
	list, err := s.tekton.TektonV1().TaskRuns(s.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "tekton.dev/pipelineRun=" + run})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]pipelinev1.TaskRun{}
	for _, task := range list.Items {
		out[task.Labels["tekton.dev/pipelineTask"]] = task
	}
	return out
}

// log is what a step of a task printed, in the last attempt.
func (s stages) log(t *testing.T, task pipelinev1.TaskRun, step string) string {
	t.Helper()
	log, err := s.kube.CoreV1().Pods(s.namespace).GetLogs(task.Status.PodName, &corev1.PodLogOptions{Container: "step-" + step}).DoRaw(t.Context())
	if err != nil {
		t.Fatalf("log of step %s of %s: %v", step, task.Name, err)
	}
	return string(log)
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
