//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tekton "github.com/tektoncd/pipeline/pkg/client/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trainyard/trainyard/internal/demo"
)

// env is the cluster that the tests run on.
type env struct {
	demo.Environment
	kube   kubernetes.Interface
	tekton tekton.Interface
}

// connect returns the cluster that cmd/demo brought up.
func connect(t *testing.T) env {
	t.Helper()
	return connectTo(t, os.Getenv)
}

// connectTo returns the cluster that the settings name.
func connectTo(t *testing.T, getenv func(string) string) env {
	t.Helper()
	description, err := demo.ReadEnvironment(getenv)
	if err != nil {
		t.Fatalf("no cluster to test on (make cluster brings one up): %v", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", description.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 50, 100
	e := env{Environment: description}
	if e.kube, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if e.tekton, err = tekton.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return e
}

// namespace makes a namespace for one test, and removes it afterwards. What was
// in it is written down first if the test failed.
func (e env) namespace(t *testing.T) string {
	t.Helper()
	created, err := e.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "e2e-",
			Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "dev.trainyard/e2e": "true"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	name := created.Name
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if t.Failed() {
			e.keep(ctx, t, name)
		}
		if err := e.kube.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("remove namespace %s: %v", name, err)
		}
	})
	// A pod is refused until its service account is there.
	e.until(t, time.Minute, "namespace "+name+" has its service account", func(ctx context.Context) (bool, string, error) {
		_, err := e.kube.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, fmt.Sprint(err), nil
	})
	return name
}

// until waits for a condition. what is said when it does not come to hold, with
// the last state.
func (e env) until(t *testing.T, limit time.Duration, what string, condition func(context.Context) (done bool, state string, err error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	state := "nothing known"
	for {
		done, now, err := condition(ctx)
		if err != nil && ctx.Err() == nil {
			t.Fatalf("%s: %v", what, err)
		}
		if done {
			return
		}
		if now != "" && ctx.Err() == nil {
			state = now
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %v: %s", what, limit, state)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// run creates a PipelineRun and waits until it is done.
func (e env) run(t *testing.T, limit time.Duration, run *pipelinev1.PipelineRun) *pipelinev1.PipelineRun {
	t.Helper()
	created, err := e.tekton.TektonV1().PipelineRuns(run.Namespace).Create(t.Context(), run, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return e.wait(t, limit, created)
}

// wait waits until a PipelineRun is done.
func (e env) wait(t *testing.T, limit time.Duration, run *pipelinev1.PipelineRun) *pipelinev1.PipelineRun {
	t.Helper()
	var got *pipelinev1.PipelineRun
	e.until(t, limit, "PipelineRun "+run.Name+" is done", func(ctx context.Context) (bool, string, error) {
		var err error
		got, err = e.tekton.TektonV1().PipelineRuns(run.Namespace).Get(ctx, run.Name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error(), nil
		}
		return got.IsDone(), message(got), nil
	})
	return got
}

// message is what a PipelineRun says of itself.
func message(run *pipelinev1.PipelineRun) string {
	for _, condition := range run.Status.Conditions {
		if condition.Type == "Succeeded" {
			return condition.Reason + ": " + condition.Message
		}
	}
	return "no condition yet"
}

// keep writes what is in a namespace into a folder.
func (e env) keep(ctx context.Context, t *testing.T, namespace string) {
	folder := os.Getenv("E2E_ARTIFACTS")
	if folder == "" {
		folder = filepath.Join(e.Checkout, "runs", "e2e")
	}
	folder = filepath.Join(folder, strings.ReplaceAll(t.Name(), "/", "_"))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Logf("keep what is in %s: %v", namespace, err)
		return
	}
	for name, args := range map[string][]string{
		"objects.yaml":     {"get", "pipelineruns,taskruns,pods,persistentvolumeclaims,eventlisteners", "--output=yaml"},
		"events.txt":       {"get", "events", "--sort-by=.metadata.creationTimestamp"},
		"descriptions.txt": {"describe", "pods,taskruns,pipelineruns"},
	} {
		out, err := e.Kubectl(ctx, append([]string{"--namespace", namespace}, args...)...)
		if err != nil {
			out += "\n" + err.Error()
		}
		e.keepFile(t, filepath.Join(folder, name), out)
	}
	pods, err := e.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Logf("list the pods of %s: %v", namespace, err)
		return
	}
	for _, pod := range pods.Items {
		out, err := e.Kubectl(ctx, "--namespace", namespace, "logs", pod.Name, "--all-containers", "--prefix")
		if err != nil {
			out += "\n" + err.Error()
		}
		e.keepFile(t, filepath.Join(folder, pod.Name+".log"), out)
	}
	t.Logf("logs, events and descriptions are in %s", folder)
}

func (env) keepFile(t *testing.T, path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Log(err)
	}
}
