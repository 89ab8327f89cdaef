package conformance

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/manifest"
)

// kustomization is as much of the file as is used here.
type kustomization struct {
	APIVersion       string           `json:"apiVersion"`
	Kind             string           `json:"kind"`
	Namespace        string           `json:"namespace"`
	Resources        []string         `json:"resources"`
	Components       []string         `json:"components"`
	Configurations   []string         `json:"configurations"`
	Images           []map[string]any `json:"images"`
	Patches          []map[string]any `json:"patches"`
	Generators       []map[string]any `json:"configMapGenerator"`
	GeneratorOptions map[string]any   `json:"generatorOptions"`
}

func kustomizationOf(t *testing.T, folder string) kustomization {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, folder, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var k kustomization
	if err := yaml.UnmarshalStrict(data, &k); err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	return k
}

// A file that nobody lists is not installed.
func TestKustomizationsListTheirFolders(t *testing.T) {
	for _, folder := range []string{"tasks", "pipelines", "sa", "deploy/base", "deploy/kind", "triggers", "triggers/queue", "triggers/prune", "triggers/commit-status"} {
		files, err := manifest.Files(filepath.Join(root, folder))
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, f := range files {
			want = append(want, filepath.Base(f))
		}
		// Besides files there are only other folders.
		got := slices.DeleteFunc(kustomizationOf(t, folder).Resources, func(s string) bool { return filepath.Ext(s) == "" })
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s/kustomization.yaml (-files +listed):\n%s", folder, d)
		}
	}
}

func TestKustomizationsReferToWhatExists(t *testing.T) {
	found := 0
	for _, pattern := range []string{"*/kustomization.yaml", "*/*/kustomization.yaml"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			found++
			folder, err := filepath.Rel(root, filepath.Dir(file))
			if err != nil {
				t.Fatal(err)
			}
			k := kustomizationOf(t, folder)
			for _, ref := range slices.Concat(k.Resources, k.Components, k.Configurations) {
				if _, err := os.Stat(filepath.Join(root, folder, ref)); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
	}
	if found < 8 {
		t.Errorf("only %d kustomizations", found)
	}
}

// The namespace of the base is the one that the overlays and the documents name, and
// it enforces the standard that the pods are checked against.
func TestTheNamespaceIsRestricted(t *testing.T) {
	objects, err := decoder(t).Read(filepath.Join(root, "deploy/base/namespace.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if got := objects[0].Meta().GetLabels()["pod-security.kubernetes.io/enforce"]; got != "restricted" {
		t.Errorf("the namespace enforces %q", got)
	}
	for _, folder := range []string{"deploy/base", "deploy/kind", "deploy/openshift"} {
		if k := kustomizationOf(t, folder); k.Namespace != objects[0].Name {
			t.Errorf("%s: namespace %q, want %s", folder, k.Namespace, objects[0].Name)
		}
	}
}
