package cli

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

const (
	aDigest  = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	demoTask = `apiVersion: tekton.dev/v1
kind: Task
metadata:
  name: demo
spec:
  steps:
    - name: run
      image: ghcr.io/trainyard/yard
      command: [/usr/local/bin/yard]
`
	demoPipeline = `apiVersion: tekton.dev/v1
kind: Pipeline
metadata:
  name: p
spec:
  tasks:
    - name: a
      taskRef: {name: demo}
`
)

// manifests writes files into a new folder and returns it.
func manifests(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRenderPrintsOrWritesTheSame(t *testing.T) {
	dir := manifests(t, map[string]string{"task.yaml": demoTask, "pipeline.yaml": demoPipeline, "kustomization.yaml": "resources: [task.yaml]\n"})
	args := []string{"render", "--tool-image", "example.com/yard" + aDigest, "--task-bundle", "example.com/tasks" + aDigest, dir}
	printed, stderr, code := call(t, nil, args...)
	if code != 0 || stderr != "" {
		t.Fatalf("code %d: %s", code, stderr)
	}
	for _, want := range []string{"image: example.com/yard" + aDigest, "value: example.com/tasks" + aDigest, "resolver: bundles"} {
		if !strings.Contains(printed, want) {
			t.Errorf("no %q in:\n%s", want, printed)
		}
	}
	file := filepath.Join(t.TempDir(), "out.yaml")
	if out, _, code := call(t, nil, append(args, "--to", file)...); code != 0 || out != "" {
		t.Errorf("code %d, printed %q", code, out)
	}
	if written, err := os.ReadFile(file); err != nil || string(written) != printed {
		t.Errorf("file holds %q, %v", written, err)
	}
	list, _, code := call(t, nil, append(args, "--output", "json")...)
	if code != 0 || !strings.Contains(list, `"kind":"List"`) {
		t.Errorf("code %d, printed %s", code, list)
	}
}

func TestRenderLeavesNothingWhenItFails(t *testing.T) {
	dir := manifests(t, map[string]string{"task.yaml": strings.Replace(demoTask, "command", "comand", 1)})
	file := filepath.Join(t.TempDir(), "out.yaml")
	_, stderr, code := call(t, nil, "render", "--to", file, dir)
	if code != 3 || !strings.Contains(stderr, "task.yaml: document 1: Task demo: spec.steps[0].comand: unknown field") {
		t.Errorf("code %d: %s", code, stderr)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a file was written")
	}
	if _, _, code := call(t, nil, "render"); code != 2 {
		t.Errorf("without files: code %d", code)
	}
	ok := manifests(t, map[string]string{"p.yaml": demoPipeline})
	if _, stderr, code := call(t, nil, "render", "--to", filepath.Join(dir, "absent", "out.yaml"), ok); code != 3 || !strings.Contains(stderr, "no such file") {
		t.Errorf("folder of the output is missing: code %d: %s", code, stderr)
	}
}

func TestBundlePushAndList(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	dir := manifests(t, map[string]string{"task.yaml": demoTask})
	digestFile := filepath.Join(t.TempDir(), "digest")
	push := []string{
		"bundle", "push", "--insecure-registry", host, "--tool-image", "example.com/yard" + aDigest, "--digest-file", digestFile,
		"--source", "https://example.com/repo", "--revision", "abc", "--output", "json", host + "/tasks:v1", dir,
	}
	env := map[string]string{"SOURCE_DATE_EPOCH": "86400"}

	read := func(out string) (r bundleReport) {
		t.Helper()
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		return r
	}
	out, stderr, code := call(t, env, append(push, "--dry-run")...)
	if code != 0 || stderr != "" {
		t.Fatalf("code %d: %s", code, stderr)
	}
	dry := read(out)
	if _, _, code := call(t, nil, "bundle", "list", "--insecure-registry", host, host+"/tasks:v1"); code != 3 {
		t.Errorf("after a dry run list ends with %d", code)
	}
	out, stderr, code = call(t, env, push...)
	if code != 0 || stderr != "" {
		t.Fatalf("code %d: %s", code, stderr)
	}
	pushed := read(out)
	if dry.Pushed || !pushed.Pushed || dry.Reference != pushed.Reference || pushed.Reference != host+"/tasks@"+pushed.Digest {
		t.Errorf("dry run said %+v, push %+v", dry, pushed)
	}
	if got := pushed.Annotations["org.opencontainers.image.created"]; got != "1970-01-02T00:00:00Z" {
		t.Errorf("created %s", got)
	}
	if data, err := os.ReadFile(digestFile); err != nil || string(data) != pushed.Reference+"\n" {
		t.Errorf("digest file holds %q, %v", data, err)
	}
	out, stderr, code = call(t, nil, "bundle", "list", "--insecure-registry", host, "--output", "json", host+"/tasks:v1")
	if code != 0 {
		t.Fatalf("code %d: %s", code, stderr)
	}
	if listed := read(out); listed.Reference != pushed.Reference || len(listed.Objects) != 1 || listed.Objects[0].Name != "demo" {
		t.Errorf("listed %+v", listed)
	}
	out, _, _ = call(t, nil, "bundle", "list", "--insecure-registry", host, pushed.Reference)
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[0], "tekton.dev/v1  Task  demo  ") || lines[1] != pushed.Reference {
		t.Errorf("text:\n%s", out)
	}
}

// I-71: --insecure-registry is asked for, whatever the address looks like.
func TestI71PushNeedsTheFlagForPlainHTTP(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	defer server.Close()
	dir := manifests(t, map[string]string{"pipeline.yaml": demoPipeline})
	host := strings.TrimPrefix(server.URL, "http://")
	_, stderr, code := call(t, nil, "bundle", "push", host+"/tasks:v1", dir)
	if code != 2 || requests != 0 || !strings.Contains(stderr, "plain http") {
		t.Errorf("code %d, %d requests: %s", code, requests, stderr)
	}
}

func TestBundlePushUsage(t *testing.T) {
	dir := manifests(t, map[string]string{"pipeline.yaml": demoPipeline})
	for name, tc := range map[string]struct {
		env  map[string]string
		args []string
		code int
		want string
	}{
		"no file":           {nil, []string{"example.com/tasks:v1"}, 2, "want IMAGE:TAG and at least one FILE"},
		"no image name":     {nil, []string{"Not An Image", dir}, 3, "Not An Image"},
		"no such folder":    {nil, []string{"example.com/tasks:v1", filepath.Join(dir, "absent")}, 3, "absent"},
		"bad time":          {nil, []string{"--created", "yesterday", "example.com/tasks:v1", dir}, 2, `--created "yesterday"`},
		"bad epoch":         {map[string]string{"SOURCE_DATE_EPOCH": "-1"}, []string{"example.com/tasks:v1", dir}, 2, "SOURCE_DATE_EPOCH"},
		"bad insecure host": {nil, []string{"--insecure-registry", "http://x", "example.com/tasks:v1", dir}, 2, "http://x"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, code := call(t, tc.env, append([]string{"bundle", "push", "--dry-run"}, tc.args...)...)
			if code != tc.code || !strings.Contains(stderr, tc.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("code %d, message %q, want %d and %q", code, stderr, tc.code, tc.want)
			}
		})
	}
}
