package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/prune"
)

func TestPruneAsksForALimit(t *testing.T) {
	for say, args := range map[string][]string{
		"give --keep, --older-than": {"prune"},
		"keep is -1":                {"prune", "--keep=-1"},
		"selector":                  {"prune", "--keep=1", "--selector=a in"},
		"older-than":                {"prune", "--older-than=30d"},
	} {
		if _, stderr, code := call(t, nil, args...); code != 2 || !strings.Contains(stderr, say) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: code %d, %q", args, code, stderr)
		}
	}
}

func TestPrunePrintsWhatItDeleted(t *testing.T) {
	run := func(name, ended string) string {
		return `{"metadata": {"name": "` + name + `", "namespace": "team", "uid": "u-` + name + `", "resourceVersion": "1"}, "spec": {"pipelineRef": {"name": "p"}},
			"status": {"completionTime": "` + ended + `", "conditions": [{"type": "Succeeded", "status": "True"}]}}`
	}
	objects := map[string]string{
		"/apis/tekton.dev/v1/namespaces/team/pipelineruns": `{"kind": "PipelineRunList", "apiVersion": "tekton.dev/v1", "items": [` +
			run("old", "2026-11-01T12:00:00Z") + "," + run("new", "2026-11-02T12:00:00Z") + `]}`,
		"/apis/tekton.dev/v1/namespaces/team/pipelineruns/old": `{"kind": "Status", "apiVersion": "v1", "status": "Success"}`,
		"/api/v1/namespaces/team/persistentvolumeclaims":       `{"kind": "PersistentVolumeClaimList", "apiVersion": "v1", "items": []}`,
		"/api/v1/namespaces/team/pods":                         `{"kind": "PodList", "apiVersion": "v1", "items": []}`,
	}
	out, stderr, code := call(t, nil, "prune", "--keep=1", "--selector=", "--output=json", "--kubeconfig", apiServer(t, objects))
	var r prune.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || len(r.Deleted) != 1 || r.Deleted[0].Name != "old" || r.Deleted[0].Group != "pipeline p" {
		t.Errorf("code %d, %+v, %v, %q", code, r, err, stderr)
	}
	delete(objects, "/apis/tekton.dev/v1/namespaces/team/pipelineruns/old")
	out, stderr, code = call(t, nil, "prune", "--keep=1", "--selector=", "--kubeconfig", apiServer(t, objects), "--dry-run")
	if code != 0 || stderr != "" || !strings.HasPrefix(out, "would delete old (pipeline p)") {
		t.Errorf("code %d, %q, %q", code, out, stderr)
	}
}
