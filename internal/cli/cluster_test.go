package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/doctor"
	"github.com/trainyard/trainyard/internal/times"
)

// apiServer answers as an API server that has nothing but these objects, by path.
func apiServer(t *testing.T, objects map[string]string) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if body, ok := objects[r.URL.Path]; ok {
			fmt.Fprint(w, body)
			return
		}
		if r.URL.Path == "/version" {
			fmt.Fprint(w, `{"gitVersion": "v1.36.3"}`)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "not here"}`)
	}))
	t.Cleanup(server.Close)
	return writeKubeconfig(t, server.URL)
}

func writeKubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text := `{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: c, cluster: {server: "` + server + `"}}], contexts: [{name: a, context: {cluster: c, namespace: team}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestClusterVerbsWithoutACluster(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	for name, c := range map[string]struct {
		args []string
		code int
		say  string
	}{
		"doctor, none named":   {[]string{"doctor"}, 2, "give --kubeconfig or KUBECONFIG"},
		"times, none named":    {[]string{"times", "run"}, 2, "give --kubeconfig or KUBECONFIG"},
		"times of what":        {[]string{"times"}, 2, "which run?"},
		"doctor of two":        {[]string{"doctor", "a", "b"}, 2, "at most one, RUN"},
		"doctor, cluster down": {[]string{"doctor", "--kubeconfig", writeKubeconfig(t, down.URL)}, 4, "does not answer"},
		"times, cluster down":  {[]string{"times", "run", "--kubeconfig", writeKubeconfig(t, down.URL)}, 4, down.URL},
		"doctor, no such run":  {[]string{"doctor", "run", "--kubeconfig", apiServer(t, nil)}, 3, "no PipelineRun and no TaskRun run in namespace team"},
		"times, no such run":   {[]string{"times", "run", "--kubeconfig", apiServer(t, nil)}, 3, "no PipelineRun and no TaskRun run in namespace team"},
	} {
		t.Run(name, func(t *testing.T) {
			out, stderr, code := call(t, nil, c.args...)
			if code != c.code || !strings.Contains(stderr, c.say) || strings.Count(stderr, "\n") != 1 || out != "" {
				t.Errorf("code %d, want %d; stdout %q, stderr %q", code, c.code, out, stderr)
			}
		})
	}
}

func TestDoctorPrintsWhatItFoundAndEndsWithOne(t *testing.T) {
	kubeconfig := apiServer(t, nil)
	out, stderr, code := call(t, nil, "doctor", "--kubeconfig", kubeconfig, "--output", "json")
	var r doctor.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 1 || len(r.Findings) != 1 || r.Findings[0].Level != doctor.Problem || r.Subject != "Namespace team" {
		t.Errorf("code %d, %+v, %v, stderr %q", code, r, err, stderr)
	}
	out, _, code = call(t, nil, "doctor", "--kubeconfig", kubeconfig, "--namespace", "other")
	if code != 1 || !strings.HasPrefix(out, "Namespace other: 1 problem\n\nProblems\n  namespace: namespace other does not exist\n    > create it") {
		t.Errorf("code %d, %q", code, out)
	}
}

func TestTimesPrintsOneRunOrSeveral(t *testing.T) {
	run := func(name string) string {
		return `{"kind": "PipelineRun", "apiVersion": "tekton.dev/v1", "metadata": {"name": "` + name + `", "namespace": "team", "creationTimestamp": "2026-11-30T12:00:00Z"}, "status": {"completionTime": "2026-11-30T12:00:09Z", "conditions": [{"type": "Succeeded", "status": "True"}]}}`
	}
	kubeconfig := apiServer(t, map[string]string{
		"/apis/tekton.dev/v1/namespaces/team/pipelineruns/a": run("a"),
		"/apis/tekton.dev/v1/namespaces/team/pipelineruns/b": run("b"),
		"/apis/tekton.dev/v1/namespaces/team/taskruns":       `{"kind": "TaskRunList", "apiVersion": "tekton.dev/v1", "items": []}`,
		"/api/v1/namespaces/team/events":                     `{"kind": "EventList", "apiVersion": "v1", "items": []}`,
	})
	out, stderr, code := call(t, nil, "times", "a", "--kubeconfig", kubeconfig, "--output", "json")
	var one times.Report
	if err := json.Unmarshal([]byte(out), &one); err != nil || code != 0 || one.Total != 9 || one.Name != "a" {
		t.Errorf("code %d, %+v, %v, %q", code, one, err, stderr)
	}
	out, _, code = call(t, nil, "times", "a", "b", "--kubeconfig", kubeconfig, "--output", "json")
	var all timesReport
	if err := json.Unmarshal([]byte(out), &all); err != nil || code != 0 || len(all.Runs) != 2 || all.Runs[1].Name != "b" {
		t.Errorf("code %d, %+v, %v", code, all, err)
	}
	out, _, code = call(t, nil, "times", "a", "--kubeconfig", kubeconfig)
	if code != 0 || !strings.HasPrefix(out, "PipelineRun team/a succeeded after 9 s\n") {
		t.Errorf("code %d, %q", code, out)
	}
}
