package demo

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// programs are images with programs alone.
type programs struct {
	images
	paths map[string]string
}

func (p programs) program(name string) (string, error) {
	if path := p.paths[name]; path != "" {
		return path, nil
	}
	return "", errors.New("no program " + name)
}

// up is a demo that has come up, as far as its description goes.
func up(t *testing.T) (*Demo, variables) {
	t.Helper()
	settings := variables{"TRAINYARD_CACHE": t.TempDir(), "CLUSTER": "second", "SUBNET": "10.1.2.0/24", "S3_PORT": "17070", "TRIGGERS_PORT": "18080"}
	s, err := SettingsFrom(settings.get)
	if err != nil {
		t.Fatal(err)
	}
	s.Checkout = "/src/trainyard"
	d := New(s, nil, nil)
	d.node = "10.1.2.3"
	d.images = programs{paths: map[string]string{"kubectl": "/c/kubectl", "tkn": "/c/tkn", "kind": "/c/kind"}}
	d.inCluster = clusterImages{Shell: "r/shell@sha256:1", S3: "r/s3@sha256:2", Tool: "r/yard@sha256:3", Builder: "r/builder@sha256:4", Run: "r/run@sha256:5"}
	return d, settings
}

func TestTheEnvironmentIsReadAsItWasWritten(t *testing.T) {
	d, settings := up(t)
	if err := d.writeEnvironment(); err != nil {
		t.Fatal(err)
	}
	got, err := ReadEnvironment(settings.get)
	if err != nil {
		t.Fatal(err)
	}
	wantFields := map[string][2]string{
		"the cluster's name": {got.Name, "second"},
		"the checkout":       {got.Checkout, "/src/trainyard"},
		"its credentials":    {got.Kubeconfig, settings["TRAINYARD_CACHE"] + "/demo/second/kubeconfig"},
		"the registry":       {got.Registry, "10.1.2.200:5000"},
		"the git repository": {got.GitURL, "git://10.1.2.3:30418/trainyard.git"},
		"its branch":         {got.PushBranch, "main"},
		"the listener":       {got.Listener, "http://127.0.0.1:18080"},
		"it in pods":         {got.ListenerInCluster, "http://el-trainyard.trainyard.svc.cluster.local:8080"},
		"its repository":     {got.WebhookRepository, "trainyard/trainyard"},
		"its secret":         {got.WebhookSecret, "github-webhook"},
		"S3":                 {got.S3, "http://127.0.0.1:17070"},
		"S3 in pods":         {got.S3InCluster, "http://s3.trainyard-system.svc.cluster.local:7070"},
		"the bucket":         {got.Bucket, "trainyard"},
	}
	for name, field := range wantFields {
		if field[0] != field[1] {
			t.Errorf("%s: %q, want %q", name, field[0], field[1])
		}
	}
	for name, path := range d.images.(programs).paths {
		if got.Programs[name] != path {
			t.Errorf("program %s: %q, want %q", name, got.Programs[name], path)
		}
	}
	wantImages := map[string]string{
		"shell": "r/shell@sha256:1", "s3": "r/s3@sha256:2", "tool": "r/yard@sha256:3", "builder": "r/builder@sha256:4", "run": "r/run@sha256:5",
	}
	if diff := cmp.Diff(wantImages, got.Images); diff != "" {
		t.Error(diff)
	}
	if _, err := ReadEnvironment(variables{"TRAINYARD_CACHE": settings["TRAINYARD_CACHE"]}.get); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of a demo of another name: %v", err)
	}
}

func TestAnEnvironmentThatCannotBe(t *testing.T) {
	d, settings := up(t)
	d.images = programs{paths: map[string]string{"kubectl": "/c/kubectl"}}
	if err := d.writeEnvironment(); err == nil {
		t.Error("without tkn it is written")
	}
	file := filepath.Join(d.state(), "environment.json")
	if _, err := os.Stat(file); err == nil {
		t.Error("a file is left")
	}
	if err := replaceFile(file, []byte(`{"checkout": `), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadEnvironment(settings.get); err == nil || !strings.HasPrefix(err.Error(), file+": ") {
		t.Errorf("of half a file: %v", err)
	}
	if _, err := ReadEnvironment(variables{"CLUSTER": "../x"}.get); err == nil {
		t.Error("settings that are wrong are taken")
	}
}

func TestEnvironmentsKubectlIsOfItsCluster(t *testing.T) {
	folder := t.TempDir()
	kubectl := filepath.Join(folder, "kubectl")
	if err := os.WriteFile(kubectl, []byte("#!/bin/sh\necho \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	e := Environment{Kubeconfig: "/k", Programs: map[string]string{"kubectl": kubectl}}
	got, err := e.Kubectl(t.Context(), "get", "nodes")
	if got != "--kubeconfig /k get nodes\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
