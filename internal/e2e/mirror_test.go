//go:build e2e && e2e_slow

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/demo/imagelock"
)

func TestASecondClusterTakesThePublishedImagesFromAMirror(t *testing.T) {
	first := connect(t)
	m := newMirror(t, first)
	m.publish(t)
	lockFile := filepath.Join(t.TempDir(), "images.lock.yaml")
	if err := m.lock.Write(lockFile); err != nil {
		t.Fatal(err)
	}
	s := newSecond(t, "trainyard-mirror", "172.30.79.0/24", map[string]string{
		"IMAGES": "registry", "MIRROR": "http://" + m.host, "IMAGES_LOCK": lockFile,
	})
	before := s.firstDemo(t)
	t.Cleanup(func() { removeLoaded(t, lockFile) })

	code, output := s.run(t, up, "cluster")
	if code != 0 {
		t.Fatalf("it ends with %d:\n%s", code, output)
	}
	if want := "digests are new in " + lockFile; !strings.Contains(output, want) {
		t.Errorf("it does not say that %q:\n%s", want, output)
	}
	locked := m.checkLock(t, lockFile)
	// Their namespaces are removed before the cluster is.
	t.Run("pods", func(t *testing.T) { m.checkPods(t, connectTo(t, s.getenv), locked) })
	t.Run("a task", func(t *testing.T) { checkATaskRuns(t, connectTo(t, s.getenv)) })

	written, err := os.ReadFile(lockFile)
	if err != nil {
		t.Fatal(err)
	}
	code, output = s.run(t, up, "cluster")
	if code != 0 || strings.Contains(output, "are new") || !strings.Contains(output, s.name+" is there") {
		t.Errorf("a second time it ends with %d, and says:\n%s", code, output)
	}
	if again, err := os.ReadFile(lockFile); err != nil || !bytes.Equal(again, written) {
		t.Errorf("the second run changed the lock (%v): it was\n%sand is\n%s", err, written, again)
	}
	s.down(t, before)
}

// removeLoaded removes the images that the demo has loaded into the Docker engine
// by the digests of a lock: make down keeps them for the next time.
func removeLoaded(t *testing.T, file string) {
	t.Helper()
	lock, err := imagelock.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range lock {
		tag := ":" + strings.TrimPrefix(entry.Digest, "sha256:")[:12]
		for _, image := range docker(t, "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "--filter", "reference=trainyard/*"+tag) {
			docker(t, "image", "rm", image)
		}
	}
}

// checkLock makes sure that every image of the demo is locked to what the mirror
// has, and returns them by digest.
func (m mirror) checkLock(t *testing.T, file string) (references map[string]bool) {
	t.Helper()
	lock, err := imagelock.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	references = map[string]bool{}
	for _, image := range m.images.All() {
		entry, found := lock[image.Name]
		if !found {
			t.Errorf("%s is not locked", image.Name)
			continue
		}
		pinned := imagelock.Pinned{Name: image.Name, Digest: entry.Digest}
		references[pinned.Reference()] = true
		reference, err := m.client.Reference(imagelock.Mirror{Host: m.host}.Name(pinned.Reference()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.client.Digest(t.Context(), reference); err != nil {
			t.Errorf("%s is locked to what the mirror does not have: %v", image.Name, err)
		}
	}
	if len(lock) != len(references) {
		t.Errorf("%d entries for %d images", len(lock), len(references))
	}
	return references
}

// checkPods makes sure that Tekton and the S3 server run the images of the lock by
// their public names.
func (m mirror) checkPods(t *testing.T, e env, locked map[string]bool) {
	t.Helper()
	for namespace, least := range map[string]int{"tekton-pipelines": 5, "tekton-pipelines-resolvers": 1, "trainyard-system": 1} {
		pods, err := e.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(pods.Items) < least {
			t.Errorf("%d pods in %s, want %d", len(pods.Items), namespace, least)
		}
		for _, pod := range pods.Items {
			for _, container := range pod.Spec.Containers {
				if !locked[container.Image] {
					t.Errorf("pod %s runs %s, which is not locked", pod.Name, container.Image)
				}
			}
			for _, status := range pod.Status.ContainerStatuses {
				if !status.Ready {
					t.Errorf("pod %s: container %s is not ready: %+v", pod.Name, status.Name, status.State)
				}
			}
		}
	}
}

// checkATaskRuns makes sure that the images which Tekton adds to a pod can be
// pulled too.
func checkATaskRuns(t *testing.T, e env) {
	t.Helper()
	namespace := e.namespace(t)
	run := e.run(t, 5*time.Minute, &pipelinev1.PipelineRun{
		ObjectMeta: metav1.ObjectMeta{Name: "a-script", Namespace: namespace},
		Spec: pipelinev1.PipelineRunSpec{
			TaskRunTemplate: nonroot(),
			PipelineSpec: &pipelinev1.PipelineSpec{Tasks: []pipelinev1.PipelineTask{{
				Name: "script",
				TaskSpec: &pipelinev1.EmbeddedTask{TaskSpec: pipelinev1.TaskSpec{Steps: []pipelinev1.Step{{
					Name: "script", Image: e.Images["shell"], SecurityContext: restricted(), Script: "#!/bin/sh\ntrue\n",
				}}}},
			}}},
		},
	})
	if !run.Status.GetCondition("Succeeded").IsTrue() {
		t.Errorf("a run with a script ended with %s", message(run))
	}
	e.checkImages(t, namespace, 1)
}
