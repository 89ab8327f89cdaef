package docker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/demo/docker"
)

// fake is a docker command that runs this shell script.
func fake(t *testing.T, script string) docker.CLI {
	t.Helper()
	path := filepath.Join(t.TempDir(), "docker")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return docker.CLI{Command: path}
}

func TestRunPassesArgumentsAndReturnsWhatIsPrinted(t *testing.T) {
	cli := fake(t, `for arg; do printf '<%s>\n' "$arg"; done; echo warning >&2`)
	got, err := cli.Run(t.Context(), "run", "--name=a b", "", "$HOME;\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := "<run>\n<--name=a b>\n<>\n<$HOME;\n>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, err := fake(t, `printf 'a\n\n'`).Run(t.Context()); got != "a\n" || err != nil {
		t.Errorf("of two newlines at the end %q is left, %v", got, err)
	}
}

func TestPipeGivesInput(t *testing.T) {
	got, err := fake(t, `exec cat`).Pipe(t.Context(), strings.NewReader("an archive"), "load")
	if got != "an archive" || err != nil {
		t.Errorf("docker got %q, %v", got, err)
	}
}

func TestAFailureSaysWhatDockerSays(t *testing.T) {
	tests := map[string]struct{ script, want string }{
		"on stderr":          {"echo fine; echo 'no space left' >&2; exit 3", "docker image rm: exit status 3: no space left"},
		"on stdout alone":    {"echo 'no space left'; exit 1", "docker image rm: exit status 1: no space left"},
		"nothing":            {"exit 125", "docker image rm: exit status 125: "},
		"killed by a signal": {"kill -9 $$", "docker image rm: signal: killed: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := fake(t, test.script).Run(t.Context(), "image", "rm", "--force", "secret")
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestWithoutTheCommand(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := docker.CLI{}.Run(t.Context(), "version")
	if err == nil || !strings.Contains(err.Error(), "install Debian's package docker.io") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one line that says what to install", err)
	}
	if has, err := (docker.CLI{}).HasImage(t.Context(), "a:1"); has || err == nil {
		t.Errorf("without docker it is said that the engine has no image: %v, %v", has, err)
	}
}

func TestAnInterruptEndsDockerAndGivesItsCause(t *testing.T) {
	started, ended := filepath.Join(t.TempDir(), "started"), filepath.Join(t.TempDir(), "ended")
	cli := fake(t, `trap 'echo >"$2"; exit 1' TERM; echo >"$1"; while :; do sleep 0.05; done`)
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupt := errors.New("interrupted by a test")
	go func() {
		for {
			if _, err := os.Stat(started); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		cancel(interrupt)
	}()
	if _, err := cli.Run(ctx, started, ended); !errors.Is(err, interrupt) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(ended); err != nil {
		t.Error("docker was not asked to end")
	}
}

func TestMissing(t *testing.T) {
	// As docker 20.10.24, 28.2.2 and 29 say it.
	tests := map[string]bool{
		"Error: No such object: trainyard-registry":                             true,
		"Error: No such container: trainyard-registry":                          true,
		"Error response from daemon: No such container: trainyard-registry":     true,
		"Error: No such image: a:1":                                             true,
		"Error response from daemon: no such image: a:1: No such image: a:1":    true,
		"Error: No such network: trainyard":                                     true,
		"Error response from daemon: network trainyard not found\nexit 1":       true,
		"Error response from daemon: get trainyard-registry: no such volume":    true,
		"Error: No such volume: trainyard-registry":                             true,
		"Cannot connect to the Docker daemon at unix:///var/run/docker.sock.":   false,
		"permission denied while trying to connect to the Docker daemon socket": false,
		"failed to connect to the docker API at unix:///var/run/docker.sock; check if the path is correct and if the daemon is running: dial unix /var/run/docker.sock: connect: no such file or directory": false,
		`OCI runtime exec failed: exec failed: unable to start container process: exec: "/x": stat /x: no such file or directory: unknown`:                                                                  false,
		`run docker: exec: "docker": executable file not found in $PATH: install Debian's package docker.io`:                                                                                                false,
		`docker: 'frobnicate' is not a docker command`: false,
	}
	for text, want := range tests {
		if got := docker.Missing(errors.New(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if docker.Missing(nil) {
		t.Error("no error tells that something is missing")
	}
}

func TestNoEngine(t *testing.T) {
	tests := map[string]bool{
		"docker ps: exit status 1: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?":                                    true,
		"docker ps: exit status 1: failed to connect to the docker API at unix:///var/run/docker.sock; check if the path is correct: connect: no such file or directory": true,
		"docker ps: exit status 1: permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: connect: permission denied":     false,
		"docker ps: exit status 1: Error response from daemon: a timeout":                                                                                                false,
	}
	for text, want := range tests {
		if got := docker.NoEngine(errors.New(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := (docker.CLI{}).Run(t.Context(), "ps"); !docker.NoEngine(err) {
		t.Errorf("without the command: %v", err)
	}
	if docker.NoEngine(nil) {
		t.Error("no error tells that there is no engine")
	}
}

func TestHasImage(t *testing.T) {
	script := `case "$*" in
"image inspect --format {{.Id}} there:1") echo sha256:1 ;;
"image inspect --format {{.Id}} absent:1") echo 'Error: No such image: absent:1' >&2; exit 1 ;;
*) echo 'Cannot connect to the Docker daemon' >&2; exit 1 ;;
esac`
	cli := fake(t, script)
	if has, err := cli.HasImage(t.Context(), "there:1"); !has || err != nil {
		t.Errorf("of an image that is there: %v, %v", has, err)
	}
	if has, err := cli.HasImage(t.Context(), "absent:1"); has || err != nil {
		t.Errorf("of one that is not: %v, %v", has, err)
	}
	if has, err := cli.HasImage(t.Context(), "other:1"); has || err == nil {
		t.Errorf("without an engine: %v, %v", has, err)
	}
}
