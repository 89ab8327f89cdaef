package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCommitStatusRefusesSettings(t *testing.T) {
	tokens := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		say  string
	}{
		"no tokens":            {nil, "give --tokens"},
		"tokens are a file":    {[]string{"--tokens", os.Args[0]}, "is no folder"},
		"tokens are not there": {[]string{"--tokens", tokens + "/none"}, "is no folder"},
		"plain http":           {[]string{"--tokens", tokens, "--gitlab-url", "http://gitlab.internal"}, "gitlab: http://gitlab.internal would carry the token in plain text"},
		"a password":           {[]string{"--tokens", tokens, "--github-url", "https://a:b@github.com"}, "without user, password"},
		"a link to nothing":    {[]string{"--tokens", tokens, "--link", "reports/{run}"}, `link "reports/{run}"`},
		"no context":           {[]string{"--tokens", tokens, "--context-name", ""}, "context-name"},
		"a context of lines":   {[]string{"--tokens", tokens, "--context-name", "a\nb"}, "context-name"},
		"an argument":          {[]string{"now"}, "unknown command or argument"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, code := call(t, nil, append([]string{"commit-status"}, c.args...)...)
			if code != 2 || !strings.Contains(stderr, c.say) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("code %d: %q", code, stderr)
			}
		})
	}
}

func TestCommitStatusTellsUntilItIsStopped(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	run := `{"apiVersion": "tekton.dev/v1", "kind": "PipelineRun", "metadata": {"name": "r", "namespace": "team", "uid": "u", "resourceVersion": "7",
	  "labels": {"trainyard.dev/trigger": "push", "trainyard.dev/forge": "gitea", "trainyard.dev/commit": "` + commit + `"},
	  "annotations": {"trainyard.dev/repository": "owner/name", "trainyard.dev/branch": "main"}},
	  "status": {"conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded"}], "results": [{"name": "report-uri", "value": "s3://b/r.html"}]}}`
	told, noted := make(chan string, 9), make(chan string, 9)
	forge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		told <- r.URL.Path + " " + r.Header.Get("Authorization") + " " + string(body)
		w.WriteHeader(http.StatusCreated)
	}))
	defer forge.Close()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/version":
			fmt.Fprint(w, `{"gitVersion": "v1.36.3"}`)
		case r.Method == http.MethodPatch:
			body, _ := io.ReadAll(r.Body)
			noted <- string(body)
			fmt.Fprint(w, run)
		case r.URL.Query().Get("labelSelector") != "trainyard.dev/trigger=push":
			t.Errorf("asked for %s", r.URL)
		case r.URL.Query().Get("sendInitialEvents") == "true":
			// An API server that cannot begin a watch with what there is.
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}`)
		case r.URL.Query().Get("watch") == "true":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			fmt.Fprint(w, `{"apiVersion": "tekton.dev/v1", "kind": "PipelineRunList", "metadata": {"resourceVersion": "7"}, "items": [`+run+`]}`)
		}
	}))
	defer api.Close()
	tokens := t.TempDir()
	if err := os.WriteFile(filepath.Join(tokens, "gitea"), []byte("t0ken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- Run(ctx, Streams{Out: &out, Err: &errs, Getenv: func(string) string { return "" }, Now: time.Now}, []string{
			"commit-status", "--kubeconfig", writeKubeconfig(t, api.URL), "--tokens", tokens, "--gitea-url", forge.URL, "--insecure-http", strings.TrimPrefix(forge.URL, "http://"),
			"--link", "https://reports.example.com/{bucket}/{key}", "--context-name", "train", "--output", "json",
		})
	}()
	for what, c := range map[string]struct {
		from chan string
		want string
	}{
		"told":  {told, `/api/v1/repos/owner/name/statuses/` + commit + ` token t0ken {"state":"success","target_url":"https://reports.example.com/b/r.html","description":"succeeded","context":"train"}`},
		"noted": {noted, `{"metadata":{"annotations":{"trainyard.dev/reported":"{\"state\":\"success\",\"description\":\"succeeded\",\"targetURL\":\"https://reports.example.com/b/r.html\",\"context\":\"train\"}"},"uid":"u"}}`},
	} {
		select {
		case got := <-c.from:
			if got != c.want {
				t.Errorf("%s %s, want %s", what, got, c.want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("nothing %s", what)
		}
	}
	cancel()
	if got := <-code; got != 0 || out.Len() != 0 || !strings.Contains(errs.String(), `"msg":"told"`) || strings.Contains(errs.String(), "t0ken") {
		t.Errorf("code %d, %q, %q", got, out.String(), errs.String())
	}
}
