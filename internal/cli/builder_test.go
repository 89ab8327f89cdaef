package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestBuilderCreateNamesTheFlagThatIsMissing(t *testing.T) {
	all := []string{"builder", "create", "--repository", "registry.example/x", "--lifecycle-dir", "/nowhere", "--buildpack", "/nowhere/go-offline", "--goroot", "/nowhere/go", "--cache", t.TempDir()}
	for i := 2; i < 8; i += 2 {
		args := append(append([]string{}, all[:i]...), all[i+2:]...)
		if _, stderr, code := call(t, nil, args...); code != 2 || !strings.Contains(stderr, all[i]+" is not set") {
			t.Errorf("without %s: code %d, message %q", all[i], code, stderr)
		}
	}
	if _, stderr, code := call(t, nil, all...); code != 3 || !strings.Contains(stderr, "/nowhere/lifecycle") {
		t.Errorf("a lifecycle that is not there: code %d, message %q", code, stderr)
	}
}

func TestBuilderCache(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"ours":    {map[string]string{"TRAINYARD_CACHE": "/c", "HOME": "/h"}, "/c/builder"},
		"XDG":     {map[string]string{"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/trainyard/builder"},
		"home":    {map[string]string{"HOME": "/h"}, "/h/.cache/trainyard/builder"},
		"nothing": {nil, ""},
	} {
		got, err := builderCache(func(k string) string { return c.env[k] })
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

func TestImageBuildRefusesBeforeItTouchesAnEngine(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
	_, stderr, code := call(t, nil, "image", "build", "--workspace", t.TempDir(), "--image", "r.example/a:1", "--builder", "r.example/b@sha256:"+strings.Repeat("0", 64))
	if code != 3 || !strings.Contains(stderr, "project.toml") {
		t.Errorf("no descriptor: code %d, message %q", code, stderr)
	}
	_, stderr, code = call(t, nil, "image", "build", "--ca-file", filepath.Join(t.TempDir(), "ca.crt"))
	if code != 3 || !strings.Contains(stderr, "CA file") {
		t.Errorf("no certificates: code %d, message %q", code, stderr)
	}
	if _, stderr, code = call(t, nil, "image", "build"); code != 2 || !strings.Contains(stderr, "no image is named") {
		t.Errorf("no image: code %d, message %q", code, stderr)
	}
}
