package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// in makes the working directory a checkout without a cluster, with a docker
// command that runs a script.
func in(t *testing.T, script string) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"kind-config.yaml": "nodes: []\n", "bin/docker": "#!/bin/sh\n" + script} {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", filepath.Join(folder, "bin")+":/usr/bin:/bin")
	t.Setenv("TRAINYARD_CACHE", filepath.Join(folder, "cache"))
	for _, setting := range []string{"IMAGES", "MIRROR", "IMAGES_LOCK", "CLUSTER", "SUBNET", "S3_PORT", "TRIGGERS_PORT"} {
		t.Setenv(setting, "")
	}
	t.Chdir(folder)
}

func TestExitCodes(t *testing.T) {
	const noEngine = "echo 'Cannot connect to the Docker daemon' >&2; exit 1"
	tests := map[string]struct {
		args    []string
		script  string
		setting string // NAME=VALUE
		code    int
		says    string // on the standard error
	}{
		"taken down":                {args: []string{"down"}, script: noEngine},
		"help":                      {args: []string{"--help"}},
		"a setting that is wrong":   {args: []string{"down"}, setting: "S3_PORT=none", code: 2, says: "demo: S3_PORT=none: say a port number\n"},
		"an engine that is refused": {args: []string{"down"}, script: "echo 'permission denied' >&2; exit 1", code: 1, says: "permission denied: run make down again\n"},
		"a verb that is none":       {args: []string{"destroy"}, code: 1, says: `unknown command "destroy"`},
		"an argument too many":      {args: []string{"down", "now"}, code: 1, says: "now"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in(t, test.script)
			if key, value, found := strings.Cut(test.setting, "="); found {
				t.Setenv(key, value)
			}
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), test.args, &stdout, &stderr); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if !strings.Contains(stderr.String(), test.says) || (test.says == "") != (stderr.String() == "") {
				t.Errorf("it says %q, want %q", stderr.String(), test.says)
			}
		})
	}
}

func TestProgramsOfTheClusterThatIsUp(t *testing.T) {
	in(t, "")
	say := func(name string) (int, string) {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"program", name}, &stdout, &stderr)
		return code, stdout.String() + stderr.String()
	}
	if code, said := say("kubectl"); code != 3 || !strings.HasPrefix(said, "demo: no cluster is up (make cluster brings one up): ") {
		t.Errorf("without a cluster: %d, %q", code, said)
	}
	state := filepath.Join(os.Getenv("TRAINYARD_CACHE"), "demo", "trainyard")
	if err := os.MkdirAll(state, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "environment.json"), []byte(`{"programs": {"kubectl": "/a/kubectl", "tkn": "/a/tkn"}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, said := say("kubectl"); code != 0 || said != "/a/kubectl\n" {
		t.Errorf("kubectl: %d, %q", code, said)
	}
	if code, said := say("helm"); code != 2 || said != "demo: helm is none of kubectl, tkn\n" {
		t.Errorf("helm: %d, %q", code, said)
	}
}

func TestASignalIsTheExitCodeAndASentence(t *testing.T) {
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		in(t, "exec sleep 60")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(fmt.Errorf("interrupted: run again (%w)", exitcode.SignalError{Signal: signal}))
		var stdout, stderr bytes.Buffer
		if code := run(ctx, []string{"down"}, &stdout, &stderr); code != want {
			t.Errorf("%v: exit code %d", signal, code)
		}
		if !strings.HasPrefix(stderr.String(), "demo: down: interrupted: run again") || strings.Count(stderr.String(), "\n") != 1 || strings.Count(stderr.String(), "interrupted") != 1 {
			t.Errorf("%v: it says %q, want one line", signal, stderr.String())
		}
	}
}

func TestACauseIsAddedToAnErrorThatOnlySaysThatAContextEnded(t *testing.T) {
	in(t, "")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(exitcode.SignalError{Signal: syscall.SIGINT})
	var stdout, stderr bytes.Buffer
	// An error that knows nothing of the signal.
	if code := run(ctx, []string{"destroy"}, &stdout, &stderr); code != 130 || !strings.Contains(stderr.String(), "SIGINT") {
		t.Errorf("exit code %d, it says %q", code, stderr.String())
	}
}

func TestDisplayIsPlainWhereThereIsNoTerminal(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	none := func(string) string { return "" }
	for name, got := range map[string]bool{
		"a file":   display(file, none).Terminal,
		"a buffer": display(&bytes.Buffer{}, none).Terminal,
	} {
		if got {
			t.Errorf("%s is taken for a terminal", name)
		}
	}
}

func TestDisplayOfATerminal(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	tests := map[string]struct {
		variables       map[string]string
		terminal, color bool
	}{
		"a terminal":          {nil, true, true},
		"without colors":      {map[string]string{"NO_COLOR": "1"}, true, false},
		"one that shows text": {map[string]string{"TERM": "dumb"}, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := display(terminal, func(name string) string { return test.variables[name] })
			if got.Terminal != test.terminal || got.Color != test.color {
				t.Errorf("%+v, want terminal %v, color %v", got, test.terminal, test.color)
			}
		})
	}
}

func TestTheCheckoutIsAboveTheWorkingDirectory(t *testing.T) {
	in(t, "")
	top, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("a/b", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir("a/b")
	if got, err := checkout(); got != top || err != nil {
		t.Errorf("%q, %v, want %q", got, err, top)
	}
	t.Chdir(t.TempDir())
	if got, err := checkout(); err == nil {
		t.Errorf("outside it is %q", got)
	}
}
