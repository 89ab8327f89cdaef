package demo

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/demo/docker"
	"github.com/trainyard/trainyard/internal/demo/progress"
)

// downDemo is a demo with a folder of its own in the cache, and a docker command
// that keeps its calls and runs a script.
func downDemo(t *testing.T, script string) (d *Demo, out *bytes.Buffer, calls func() []string) {
	t.Helper()
	out = &bytes.Buffer{}
	settings, err := SettingsFrom(variables{"TRAINYARD_CACHE": t.TempDir(), "CLUSTER": "second"}.get)
	if err != nil {
		t.Fatal(err)
	}
	d = New(settings, out, progress.New(out, progress.Options{Now: time.Now}))
	folder := t.TempDir()
	d.docker = docker.CLI{Command: filepath.Join(folder, "docker")}
	text := "#!/bin/sh\necho \"$*\" >>" + folder + "/calls\n" + script
	if err := os.WriteFile(d.docker.Command, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(d.kubeconfig(), []byte("credentials"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.Cache, "rootfs.tar"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return d, out, func() []string {
		data, err := os.ReadFile(filepath.Join(folder, "calls"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(data)), "\n")
	}
}

func TestDownRemovesWhatIsOfItsName(t *testing.T) {
	const list = "ps --all --quiet --filter network=second"
	tests := map[string]struct {
		script  string
		calls   []string
		says    string
		wantErr string
		keeps   bool // the credentials
	}{
		"all of it": {
			script: `case "$1" in ps) printf 'a1\nb2\n';; esac`,
			calls: []string{
				list, "rm --force --volumes a1 b2", "volume rm --force second-registry", "network rm second",
			},
			says: "2 containers removed",
		},
		"nothing is there": {
			script: `case "$1 $2" in "volume rm") echo "Error: No such volume: x" >&2; exit 1;; "network rm") echo 'network second not found' >&2; exit 1;; esac`,
			calls:  []string{list, "volume rm --force second-registry", "network rm second"},
			says:   "0 containers removed",
		},
		"no engine": {
			script: `echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock.' >&2; exit 1`,
			calls:  []string{list}, says: "no Docker engine runs",
		},
		"an engine of others": {
			script: `echo 'permission denied while trying to connect to the Docker daemon socket' >&2; exit 1`,
			calls:  []string{list}, wantErr: "permission denied while trying to connect to the Docker daemon socket: run make down again", keeps: true,
		},
		"a container that stays": {
			script: `case "$1" in ps) echo a1;; rm) echo 'device busy' >&2; exit 1;; esac`,
			calls:  []string{list, "rm --force --volumes a1"}, wantErr: "device busy: run make down again", keeps: true,
		},
		"a volume in use": {
			script: `case "$1" in volume) echo 'volume is in use' >&2; exit 1;; esac`,
			calls:  []string{list, "volume rm --force second-registry"}, wantErr: "volume is in use", keeps: true,
		},
		"a network in use": {
			script: `case "$1" in network) echo 'network has active endpoints' >&2; exit 1;; esac`,
			calls:  []string{list, "volume rm --force second-registry", "network rm second"}, wantErr: "active endpoints", keeps: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, out, calls := downDemo(t, test.script)
			err := d.RunDown(t.Context())
			if (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("error %v, want %q", err, test.wantErr)
			}
			if diff := cmp.Diff(test.calls, calls()); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(out.String(), test.says) {
				t.Errorf("it says %q, want %q", out.String(), test.says)
			}
			if _, err := os.Stat(d.kubeconfig()); (err == nil) != test.keeps {
				t.Errorf("the credentials are kept: %v", err == nil)
			}
			if _, err := os.Stat(filepath.Join(d.Cache, "rootfs.tar")); err != nil {
				t.Errorf("the cache lost a file: %v", err)
			}
		})
	}
}

func TestDownWaitsForNoOtherDemo(t *testing.T) {
	d, _, _ := downDemo(t, "")
	unlock, err := lock(d.state() + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := d.RunDown(t.Context()); err == nil || !strings.Contains(err.Error(), "is running") {
		t.Errorf("while the demo comes up: %v", err)
	}
	if _, err := os.Stat(d.kubeconfig()); err != nil {
		t.Errorf("its credentials are gone: %v", err)
	}
}
