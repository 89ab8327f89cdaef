//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	podtemplate "github.com/tektoncd/pipeline/pkg/apis/pipeline/pod"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// install puts accounts, tasks and pipelines into a namespace, and what they read
// there.
func (e env) install(t *testing.T, namespace string) {
	t.Helper()
	e.configure(t, namespace)
	e.applyTasks(t, namespace)
}

// configure puts accounts into a namespace, and what tasks read there: the store, its
// account, the CA certificates.
func (e env) configure(t *testing.T, namespace string) {
	t.Helper()
	ctx := t.Context()
	for _, name := range []string{"trainyard-store", "trainyard-ca"} {
		config, err := e.kube.CoreV1().ConfigMaps("trainyard").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		copied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: config.Data}
		if _, err := e.kube.CoreV1().ConfigMaps(namespace).Create(ctx, copied, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	secret, err := e.kube.CoreV1().Secrets("trainyard").Get(ctx, "s3-credentials", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret.Name}, Data: secret.Data, Type: secret.Type}
	if _, err := e.kube.CoreV1().Secrets(namespace).Create(ctx, copied, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.apply(t, namespace, "sa/trainyard-build.yaml", "sa/trainyard-train.yaml")
}

// applyTasks puts all tasks and pipelines into a namespace.
func (e env) applyTasks(t *testing.T, namespace string) {
	t.Helper()
	e.apply(t, namespace, "tasks", "pipelines/train-and-promote.yaml", "pipelines/train-pinned.yaml")
}

// apply renders files of the checkout into a namespace.
func (e env) apply(t *testing.T, namespace string, files ...string) {
	t.Helper()
	rendered := e.command(t, e.Checkout, nil, e.Programs["yard"],
		append([]string{"render", "--tool-image=" + e.Images["tool"], "--namespace=" + namespace}, files...)...)
	e.command(t, e.Checkout, []byte(rendered), e.Programs["kubectl"], "--kubeconfig", e.Kubeconfig, "apply", "--filename=-")
}

// command runs a program and returns what it prints.
func (e env) command(t *testing.T, dir string, input []byte, program string, args ...string) string {
	t.Helper()
	out, err := e.try(t.Context(), dir, input, program, args...)
	if err != nil {
		t.Fatalf("%s %s: %v", filepath.Base(program), strings.Join(args, " "), err)
	}
	return out
}

func (env) try(ctx context.Context, dir string, input []byte, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		return stdout.String(), &commandError{err, stderr.String()}
	}
	return stdout.String(), nil
}

type commandError struct {
	error
	stderr string
}

func (e *commandError) Error() string { return e.error.Error() + ": " + strings.TrimSpace(e.stderr) }
func (e *commandError) Unwrap() error { return e.error }

// repository is a clone of the checkout whose commits can be pushed to the
// demo's git server, on a branch of its own.
type repository struct {
	env    env
	dir    string
	branch string
}

func (e env) repository(t *testing.T, branch string) repository {
	t.Helper()
	r := repository{env: e, dir: filepath.Join(t.TempDir(), "source"), branch: branch}
	e.command(t, e.Checkout, nil, "git", "clone", "--quiet", "--shared", e.Checkout, r.dir)
	r.git(t, "config", "user.name", "e2e")
	r.git(t, "config", "user.email", "e2e@example.com")
	return r
}

func (r repository) git(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(r.env.command(t, r.dir, nil, "git", args...))
}

// push commits what was changed, pushes it, and returns the commit.
func (r repository) push(t *testing.T, message string) string {
	t.Helper()
	r.git(t, "commit", "--quiet", "--all", "--allow-empty", "--message", message)
	r.git(t, "push", "--quiet", "--force", r.env.GitURL, "HEAD:refs/heads/"+r.branch)
	return r.git(t, "rev-parse", "HEAD")
}

// append writes text to the end of a file of the clone.
func (r repository) append(t *testing.T, file, text string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(r.dir, file), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// shared is the workspace of a run: a claim of its own.
func shared() pipelinev1.WorkspaceBinding {
	return pipelinev1.WorkspaceBinding{
		Name: "shared",
		VolumeClaimTemplate: &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}},
	}
}

// runAs is the template of runs' pods, as pipelines/tkn/pod-template.yaml has it.
func runAs(account string) pipelinev1.PipelineTaskRunTemplate {
	group, yes, no := int64(1000), true, false
	return pipelinev1.PipelineTaskRunTemplate{
		ServiceAccountName: account,
		PodTemplate: &podtemplate.PodTemplate{
			AutomountServiceAccountToken: &no,
			SecurityContext: &corev1.PodSecurityContext{
				FSGroup: &group, RunAsNonRoot: &yes,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		},
	}
}

func param(name, value string) pipelinev1.Param {
	return pipelinev1.Param{Name: name, Value: *pipelinev1.NewStructuredValues(value)}
}

// results of a PipelineRun, by their names.
func results(run *pipelinev1.PipelineRun) map[string]string {
	out := map[string]string{}
	for _, result := range run.Status.Results {
		out[result.Name] = result.Value.StringVal
	}
	return out
}
