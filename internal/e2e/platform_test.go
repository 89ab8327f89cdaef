//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	podtemplate "github.com/tektoncd/pipeline/pkg/apis/pipeline/pod"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/demo/ociimage"
	"github.com/trainyard/trainyard/internal/registryclient"
)

// restricted is what a step must say of itself in a restricted namespace; the
// rest Tekton's set-security-context adds.
func restricted() *corev1.SecurityContext {
	no, yes := false, true
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no,
		RunAsNonRoot:             &yes,
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// nonroot is the pod of a run whose images have no user of their own.
func nonroot() pipelinev1.PipelineTaskRunTemplate {
	id := int64(65532)
	template := pipelinev1.PipelineTaskRunTemplate{}
	template.PodTemplate = &podtemplate.PodTemplate{SecurityContext: &corev1.PodSecurityContext{RunAsUser: &id, RunAsGroup: &id, FSGroup: &id}}
	return template
}

func TestTwoTasksShareAClaimInARestrictedNamespace(t *testing.T) {
	t.Parallel()
	e := connect(t)
	namespace := e.namespace(t)
	task := func(name, script string, after ...string) pipelinev1.PipelineTask {
		return pipelinev1.PipelineTask{
			Name:       name,
			RunAfter:   after,
			Workspaces: []pipelinev1.WorkspacePipelineTaskBinding{{Name: "shared", Workspace: "shared"}},
			TaskSpec: &pipelinev1.EmbeddedTask{TaskSpec: pipelinev1.TaskSpec{
				Workspaces: []pipelinev1.WorkspaceDeclaration{{Name: "shared"}},
				Steps: []pipelinev1.Step{{
					Name: name, Image: e.Images["shell"], SecurityContext: restricted(),
					Env:    []corev1.EnvVar{{Name: "SHARED", Value: "$(workspaces.shared.path)"}},
					Script: "#!/bin/sh\nset -eu\n" + script,
				}},
			}},
		}
	}
	run := e.run(t, 5*time.Minute, &pipelinev1.PipelineRun{
		ObjectMeta: metav1.ObjectMeta{Name: "two-tasks", Namespace: namespace},
		Spec: pipelinev1.PipelineRunSpec{
			PipelineSpec: &pipelinev1.PipelineSpec{
				Workspaces: []pipelinev1.PipelineWorkspaceDeclaration{{Name: "shared"}},
				Tasks: []pipelinev1.PipelineTask{
					task("write", `echo "from the first" >"$SHARED/word"`),
					task("read", `test "$(cat "$SHARED/word")" = "from the first"`, "write"),
				},
			},
			TaskRunTemplate: nonroot(),
			Workspaces: []pipelinev1.WorkspaceBinding{{
				Name: "shared",
				VolumeClaimTemplate: &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Mi")}},
				}},
			}},
		},
	})
	if !run.Status.GetCondition("Succeeded").IsTrue() {
		t.Fatalf("the run ended with %s", message(run))
	}
	e.checkImages(t, namespace, 2)
}

// checkImages makes sure that every container of a namespace's task pods ran an
// image that was given by digest.
func (e env) checkImages(t *testing.T, namespace string, pods int) {
	t.Helper()
	list, err := e.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "tekton.dev/taskRun"})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != pods {
		t.Fatalf("%d pods of tasks, want %d", len(list.Items), pods)
	}
	for _, pod := range list.Items {
		for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			if !strings.Contains(container.Image, "@sha256:") {
				t.Errorf("pod %s: container %s runs %s, which is no digest", pod.Name, container.Name, container.Image)
			}
		}
	}
}

func TestOneNameForAnImageOnHostNodeAndPod(t *testing.T) {
	t.Parallel()
	e := connect(t)
	namespace := e.namespace(t)
	// Another image each time, so that no node can have it from before.
	reference, digest := e.pushProbe(t, "e2e/"+namespace)
	pod := e.pod(t, namespace, reference+"@"+digest, nil, "resolve", reference+":probe")
	if got := strings.TrimSpace(pod); got != digest {
		t.Errorf("in a pod %s:probe is %q, on this machine %s", reference, got, digest)
	}
}

func TestAnObjectFromAPodIsReadOnTheHost(t *testing.T) {
	t.Parallel()
	e := connect(t)
	namespace := e.namespace(t)
	reference, digest := e.pushProbe(t, "e2e/"+namespace)
	secret, err := e.kube.CoreV1().Secrets("trainyard-system").Get(t.Context(), "s3-root", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	id, key := string(secret.Data["access-key-id"]), string(secret.Data["secret-access-key"])
	object := "e2e/" + namespace + "/word"
	e.pod(t, namespace, reference+"@"+digest, []corev1.EnvVar{
		{Name: "AWS_ACCESS_KEY_ID", Value: id}, {Name: "AWS_SECRET_ACCESS_KEY", Value: key},
	}, "put", e.S3InCluster, e.Bucket, object, "from a pod")

	client := s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(e.S3), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(id, key, ""),
	})
	got, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(e.Bucket), Key: aws.String(object)})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil || string(text) != "from a pod" {
		t.Errorf("the host reads %q, %v", text, err)
	}
	if _, err := client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(e.Bucket), Key: aws.String(object)}); err != nil {
		t.Error(err)
	}
}

// pushProbe builds the probe, pushes its image from this machine with the tag
// probe, and returns the repository and the digest.
func (e env) pushProbe(t *testing.T, repository string) (reference, digest string) {
	t.Helper()
	return e.pushProgram(t, "probe", repository)
}

// pushProgram does the same with any program of a folder of this one.
func (e env) pushProgram(t *testing.T, program, repository string) (reference, digest string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), program)
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", binary, "./internal/e2e/"+program)
	build.Dir = e.Checkout
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	layer, err := ociimage.Layer(
		ociimage.Entry{Path: program, From: binary, Mode: 0o755},
		ociimage.Entry{Path: "for", Data: []byte(repository)},
	)
	if err != nil {
		t.Fatal(err)
	}
	image, err := ociimage.New(v1.Platform{OS: "linux", Architecture: runtime.GOARCH},
		ociimage.Config{Entrypoint: []string{"/" + program}, User: "65532:65532"}, layer)
	if err != nil {
		t.Fatal(err)
	}
	client, err := registryclient.New(registryclient.Options{Insecure: []string{e.Registry}, Transport: &http.Transport{}})
	if err != nil {
		t.Fatal(err)
	}
	reference = e.Registry + "/" + repository
	tag, err := client.Reference(reference + ":" + program)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Push(t.Context(), tag, image); err != nil {
		t.Fatal(err)
	}
	hash, err := client.Digest(t.Context(), tag)
	if err != nil {
		t.Fatal(err)
	}
	return reference, hash.String()
}

// pod runs an image to its end and returns what it prints.
func (e env) pod(t *testing.T, namespace, image string, variables []corev1.EnvVar, args ...string) string {
	t.Helper()
	pods := e.kube.CoreV1().Pods(namespace)
	created, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "probe", Image: image, Args: args, Env: variables, SecurityContext: restricted(),
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return e.podEnd(t, created)
}

// podEnd waits until a pod has succeeded and returns what it printed.
func (e env) podEnd(t *testing.T, created *corev1.Pod) string {
	t.Helper()
	pods := e.kube.CoreV1().Pods(created.Namespace)
	var phase corev1.PodPhase
	e.until(t, 2*time.Minute, "pod "+created.Name+" ends", func(ctx context.Context) (bool, string, error) {
		got, err := pods.Get(ctx, created.Name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error(), nil
		}
		phase = got.Status.Phase
		return phase == corev1.PodSucceeded || phase == corev1.PodFailed, fmt.Sprintf("%s %+v", phase, got.Status.ContainerStatuses), nil
	})
	log, err := pods.GetLogs(created.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if phase != corev1.PodSucceeded {
		t.Fatalf("pod %s %s: %s", created.Name, phase, log)
	}
	return string(log)
}
