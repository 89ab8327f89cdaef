//go:build kubectl

package conformance

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/render"
)

// What kustomize makes of an overlay is what rendering makes of the same files: users
// may take either. The program is TRAINYARD_KUBECTL, or kubectl.
func TestKustomizeMakesWhatRenderMakes(t *testing.T) {
	rendered := func(namespace string) map[string]string {
		var folders []string
		for _, folder := range []string{"deploy/base", "sa", "tasks", "pipelines", "triggers", "triggers/queue", "triggers/prune"} {
			folders = append(folders, filepath.Join(root, folder))
		}
		objects, err := decoder(t).Read(folders...)
		if err != nil {
			t.Fatal(err)
		}
		objects, err = render.Objects(t.Context(), decoder(t), objects, render.Options{
			ToolImage: "ghcr.io/trainyard/yard@sha256:" + strings.Repeat("0", 64), Namespace: namespace,
		})
		if err != nil {
			t.Fatal(err)
		}
		return byName(objects)
	}
	for overlay, own := range map[string][]string{
		"deploy/kind":      {"ConfigMap trainyard-store", "Service trainyard-listener"},
		"deploy/openshift": {"Namespace trainyard", "TriggerTemplate train-on-push"}, // with one more label, without fsGroup
	} {
		t.Run(overlay, func(t *testing.T) {
			cmd := exec.Command(cmp.Or(os.Getenv("TRAINYARD_KUBECTL"), "kubectl"), "kustomize", filepath.Join(root, overlay))
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			objects, err := decoder(t).Decode(overlay, out)
			if err != nil {
				t.Fatal(err)
			}
			if err := manifest.Validate(t.Context(), objects...); err != nil {
				t.Error(err)
			}
			if err := manifest.CheckImages(false, objects...); err != nil {
				t.Error(err)
			}
			if overlay == "deploy/openshift" {
				for _, run := range newRepository(objects).pushed {
					if run.Spec.TaskRunTemplate.PodTemplate.SecurityContext.FSGroup != nil {
						t.Error("runs of pushes ask for a group")
					}
				}
			}
			want, got := rendered("trainyard"), byName(objects)
			for _, name := range own {
				if _, ok := got[name]; !ok {
					t.Errorf("no %s", name)
				}
				delete(want, name)
				delete(got, name)
			}
			if d := diff.Diff(want, got); d != "" {
				t.Errorf("(-rendered +kustomize):\n%s", d)
			}
		})
	}
}

func byName(objects []manifest.Object) map[string]string {
	m := map[string]string{}
	for _, o := range objects {
		m[o.String()] = string(o.JSON)
	}
	return m
}
