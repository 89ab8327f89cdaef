package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/buildtest"
	"github.com/trainyard/trainyard/internal/pin"
	"github.com/trainyard/trainyard/internal/plan"
)

// The steps around the phases, by the command line that the task uses: plan, pin,
// and a second plan that finds what the first one built.
func TestPlanAndPin(t *testing.T) {
	r := buildtest.NewRegistry(t)
	builder := buildtest.NewBuilder(r.Push(t, "run:1", buildtest.RunImageFor(t, runtime.GOARCH)))
	builder.Arch = runtime.GOARCH
	builderRef := r.Push(t, "builder:1", builder.Image(t))
	checkout := t.TempDir()
	for name, content := range map[string]string{
		"source/project.toml":   "[_]\nschema-version = \"0.2\"\n[io.buildpacks]\ninclude = [\"/main.go\"]\n",
		"source/app/main.go":    "package main\n",
		"source/app/ignored.go": "package main\n",
	} {
		p := filepath.Join(checkout, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dir, action := filepath.Join(t.TempDir(), "plan"), t.TempDir()
	planArgs := func(out string) []string {
		return []string{"plan", "--workspace", checkout, "--path", "source", "--folder", "app", "--image", r.Host + "/app:v1", "--builder", builderRef,
			"--insecure-registry", r.Host, "--out", out, "--action-file", filepath.Join(action, "action"), "--install", "--revision", "abc", "--output", "json",
			"--env-if-set", "GOPROXY=", "--env-if-set", "GOFLAGS=-tags=", "A= b=c", "EMPTY="}
	}
	out, stderr, code := call(t, nil, planArgs(dir)...)
	if code != 0 {
		t.Fatalf("plan: code %d: %s", code, stderr)
	}
	var f plan.File
	if err := json.Unmarshal([]byte(out), &f); err != nil || f.Revision != "abc" {
		t.Fatalf("%v in %s", err, out)
	}
	for file, want := range map[string]string{
		filepath.Join(action, "action"): "phases", filepath.Join(dir, "platform/env/GOFLAGS"): "-tags=", filepath.Join(dir, "platform/env/A"): " b=c",
		filepath.Join(dir, "platform/env/EMPTY"): "", filepath.Join(dir, "source/main.go"): "package main\n",
	} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is %q, want %q: %v", file, got, want, err)
		}
	}
	for _, file := range []string{"platform/env/GOPROXY", "source/ignored.go"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
			t.Errorf("%s is there", file)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "yard")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the program is not installed: %v", err)
	}

	app := buildtest.NewApp(f.RunImage)
	app.Arch = runtime.GOARCH
	_, tagged, _ := strings.Cut(f.Build, "/")
	pushed := r.Push(t, tagged, app.Image(t))
	_, digest, _ := strings.Cut(pushed, "@")
	report := filepath.Join(t.TempDir(), "report.toml")
	if err := os.WriteFile(report, fmt.Appendf(nil, "[image]\ntags=[%q]\ndigest=%q\n", f.Build, digest), 0o644); err != nil {
		t.Fatal(err)
	}
	results := t.TempDir()
	out, stderr, code = call(t, nil, "pin", "--plan", dir, "--report", report, "--results-dir", results, "--output", "json")
	var p pin.Pinned
	if err := json.Unmarshal([]byte(out), &p); code != 0 || err != nil || p.Ref != pushed {
		t.Fatalf("pin: code %d: %v: %s%s", code, err, stderr, out)
	}
	if got, _ := os.ReadFile(filepath.Join(results, "IMAGE_REF")); string(got) != pushed {
		t.Errorf("IMAGE_REF %q, want %q", got, pushed)
	}

	again := filepath.Join(t.TempDir(), "plan")
	if _, stderr, code = call(t, nil, planArgs(again)...); code != 0 {
		t.Fatalf("second plan: code %d: %s", code, stderr)
	}
	if got, _ := os.ReadFile(filepath.Join(action, "action")); string(got) != "found" {
		t.Errorf("second plan: action %q", got)
	}
	out, stderr, code = call(t, nil, "pin", "--plan", again, "--results-dir", results)
	if code != 0 || !strings.Contains(out, "found, built before") || !strings.Contains(out, pushed) {
		t.Errorf("second pin: code %d: %s%s", code, stderr, out)
	}
}

func TestPhaseWantsAPlanAndAName(t *testing.T) {
	for _, args := range [][]string{{"phase"}, {"phase", "detect", "build"}} {
		if _, _, code := call(t, nil, args...); code != 2 {
			t.Errorf("%v: code %d", args, code)
		}
	}
	_, stderr, code := call(t, nil, "phase", "detect", "--plan", t.TempDir())
	if code != 3 || !strings.Contains(stderr, "run yard plan first") {
		t.Errorf("code %d: %s", code, stderr)
	}
}
