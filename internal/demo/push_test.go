package demo

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	tekton "github.com/trainyard/trainyard/internal/manifest"
)

// triggers are the files of this repository, in one text.
func triggers(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../../triggers/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var documents []string
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(data))
	}
	return strings.Join(documents, "\n---\n")
}

func patched(t *testing.T) (d *Demo, objects map[string]map[string]any, text []byte) {
	t.Helper()
	d, _ = up(t)
	text, err := d.pushSettings().patch([]byte(triggers(t)))
	if err != nil {
		t.Fatal(err)
	}
	objects = map[string]map[string]any{}
	for _, document := range strings.Split(string(text), "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		name, _ := object["metadata"].(map[string]any)["name"].(string)
		objects[object["kind"].(string)+" "+name] = object
	}
	return d, objects, text
}

func TestTheDemosTriggersAreThoseOfTheRepository(t *testing.T) {
	d, objects, text := patched(t)
	// Tekton itself takes them.
	file := filepath.Join(t.TempDir(), "triggers.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	decoder, err := tekton.NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decoder.Read(file); err != nil {
		t.Errorf("they are not valid: %v", err)
	}
	if len(objects) != strings.Count(triggers(t), "\n---\n")+1 {
		t.Errorf("%d objects are left", len(objects))
	}
	values := map[string]any{}
	for _, param := range items(objects["TriggerBinding training"], "spec", "params") {
		values[param["name"].(string)] = param["value"]
	}
	for name, want := range map[string]string{
		"image-repository": "10.1.2.200:5000/trainyard/trainer", "builder-image": "r/builder@sha256:4", "insecure-registries": "10.1.2.200:5000",
		"max-perplexity": "400", // what the demo does not say stays
	} {
		if values[name] != want {
			t.Errorf("%s is %v, want %s", name, values[name], want)
		}
	}
	run := items(objects["TriggerTemplate train-on-push"], "spec", "resourcetemplates")[0]
	params := items(run, "spec", "params")
	names := map[any]int{}
	for _, param := range params {
		names[param["name"]]++
	}
	if last := params[len(params)-1]; last["name"] != "run-image" || last["value"] != d.inCluster.Run || names["run-image"] != 1 {
		t.Errorf("the run's base is %v", last)
	}
}

func TestTheDemosAllowListHasItsRepositoryAlone(t *testing.T) {
	_, objects, _ := patched(t)
	var expression string
	for _, interceptor := range items(objects["Trigger github"], "spec", "interceptors") {
		for _, param := range items(interceptor, "params") {
			for _, overlay := range items(param, "value") {
				if overlay["key"] == "allowed" {
					expression = overlay["expression"].(string)
				}
			}
		}
	}
	var list struct {
		Repositories map[string]map[string]string
		Branches     []string
		Paths        []string
		Config       string
	}
	if err := json.Unmarshal([]byte(expression), &list); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]string{"trainyard/trainyard": {"name": "trainyard", "url": "git://10.1.2.3:30418/trainyard.git"}}
	if diff := cmp.Diff(want, list.Repositories); diff != "" || !slices.Equal(list.Branches, []string{"main"}) || !slices.Contains(list.Paths, "^examples/push/") {
		t.Errorf("%+v: %s", list, diff)
	}
	if slices.Contains(list.Branches, demoBranch) {
		t.Error("make demo's own push would start a second run")
	}
	if _, err := os.Stat(filepath.Join("../..", list.Config)); err != nil {
		t.Errorf("the settings of runs: %v", err)
	}
}

func TestTriggersWithoutAPlaceForTheSettingsAreRefused(t *testing.T) {
	d, _ := up(t)
	for name, test := range map[string]struct{ old, new, want string }{
		"no trigger":     {"name: github\n  labels", "name: github2\n  labels", "there is no Trigger github"},
		"no allow-list":  {"key: allowed", "key: permitted", "Trigger github: it has no allow-list"},
		"no binding":     {"name: training\n  labels", "name: drills\n  labels", "there is no TriggerBinding training"},
		"no parameter":   {"name: builder-image\n      value", "name: builder\n      value", "TriggerBinding training: it has no parameter builder-image"},
		"no run":         {"resourcetemplates:", "templates:", "TriggerTemplate train-on-push: it has 0 runs"},
		"what is no map": {"apiVersion: rbac", "- apiVersion: rbac", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := triggers(t)
			if !strings.Contains(text, test.old) {
				t.Fatalf("there is no %q", test.old)
			}
			if _, err := d.pushSettings().patch([]byte(strings.ReplaceAll(text, test.old, test.new))); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
