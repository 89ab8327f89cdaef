//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What docs/install.md has people apply, in a namespace of another name: the API server,
// with Tekton's and Triggers' own webhooks, takes every object of it, and says nothing
// against its pods.
func TestTheServerTakesWhatKustomizeMakes(t *testing.T) {
	t.Parallel()
	e := connect(t)
	const toolImage = "components: [%[1]s/deploy/tool-image]\n"
	// The node's port can be taken once in a cluster.
	const anyPort = "patches:\n  - target: {kind: Service, name: trainyard-listener}\n" +
		"    patch: |-\n      - {op: remove, path: /spec/ports/0/nodePort}\n"
	for overlay, more := range map[string]string{"base": toolImage, "kind": anyPort, "openshift": ""} {
		t.Run(overlay, func(t *testing.T) {
			namespace := e.namespace(t)
			e.warn(t, namespace)
			dir := t.TempDir()
			checkout, err := filepath.Rel(dir, e.Checkout) // kustomize takes no absolute one
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf("namespace: "+namespace+"\nresources: [%[1]s/deploy/"+overlay+"]\n"+more, checkout)
			if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			made := e.command(t, dir, nil, e.Programs["kubectl"], "kustomize")
			said := e.serverDryRun(t, dir, "--kustomize=.")
			for line := range strings.Lines(made) {
				if strings.HasPrefix(line, "  namespace: ") && line != "  namespace: "+namespace+"\n" {
					t.Errorf("an object is elsewhere: %s", line)
				}
			}
			taken(t, made, said)
		})
	}
}

// A release is one file to apply, with every image by digest.
func TestTheServerTakesTheRelease(t *testing.T) {
	t.Parallel()
	e := connect(t)
	namespace := e.namespace(t)
	e.warn(t, namespace)
	dir := filepath.Join(t.TempDir(), "release")
	e.command(t, e.Checkout, nil, "go", "run", "-trimpath", "./cmd/release", "--version=v0.0.0", "--to="+dir,
		"--platform=linux/"+runtime.GOARCH, "--namespace="+namespace)
	documents, err := os.ReadFile(filepath.Join(dir, "release.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	taken(t, string(documents), e.serverDryRun(t, dir, "--filename=release.yaml"))
}

// taken compares how many objects there are with how many the server took.
func taken(t *testing.T, documents, said string) {
	t.Helper()
	want := strings.Count("\n"+documents, "\nkind: ")
	got := strings.Split(strings.TrimSpace(said), "\n")
	if want < 20 || len(got) != want {
		t.Errorf("the server took %d of %d objects:\n%s", len(got), want, said)
	}
	for _, kind := range []string{"namespace/", "task.tekton.dev/train", "pipeline.tekton.dev/train-and-promote", "serviceaccount/trainyard-build"} {
		if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, kind) }) {
			t.Errorf("no %s among:\n%s", kind, said)
		}
	}
}

// warn has the server say what the restricted standard has against a pod template: what
// is enforced counts for pods alone, which a dry run does not make.
func (e env) warn(t *testing.T, namespace string) {
	t.Helper()
	patch := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/warn":"restricted"}}}`)
	if _, err := e.kube.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// serverDryRun lets the server say what it would do with something that is applied, a
// name a line. A warning fails the test.
func (e env) serverDryRun(t *testing.T, dir string, what ...string) string {
	t.Helper()
	args := append([]string{"--kubeconfig", e.Kubeconfig, "apply", "--dry-run=server", "--output=name"}, what...)
	cmd := exec.CommandContext(t.Context(), e.Programs["kubectl"], args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
	for line := range strings.Lines(stderr.String()) {
		// An object that exists, and that apply did not make, is of no interest here.
		if !strings.Contains(line, "last-applied-configuration") {
			t.Errorf("the server warns: %s", line)
		}
	}
	return string(out)
}
