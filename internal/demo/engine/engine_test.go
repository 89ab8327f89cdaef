package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/demo/docker"
)

// machine is a machine with a fake docker command, which says what the test
// writes into files, and no dockerd.
type machine struct {
	Engine
	t      *testing.T
	folder string
	// installed are the packages that Install was called with.
	installed []string
}

// The engine answers while the file version is there.
const fakeDocker = `#!/bin/sh
cd "$(dirname "$0")" || exit
case "$1" in
version) if [ -e version ]; then exec cat version; fi
	if [ -e denied ]; then echo 'permission denied while trying to connect to the Docker daemon socket' >&2; exit 1; fi
	echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?' >&2; exit 1 ;;
info) exec cat runtime ;;
ps) exec cat containers ;;
esac
exit 2
`

// It runs until it is asked to end, as dockerd does.
const fakeDockerd = `#!/bin/sh
cd "$(dirname "$0")" || exit
echo "$@" >arguments
trap 'rm -f version; exit 0' TERM
echo 'engine starts'
echo 29.0.1 >version
while :; do sleep 0.02; done
`

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, folder: t.TempDir()}
	m.write("docker", fakeDocker)
	m.write("containers", "")
	t.Setenv("PATH", m.folder+":/usr/bin:/bin") // where no dockerd is: Debian's is in sbin
	m.Engine = Engine{
		Docker: docker.CLI{Command: filepath.Join(m.folder, "docker")},
		State:  filepath.Join(m.folder, "state"),
		Install: func(_ context.Context, commands ...string) error {
			m.installed = append(m.installed, commands...)
			m.write("dockerd", fakeDockerd)
			return nil
		},
	}
	return m
}

func (m *machine) write(name, text string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.folder, name), []byte(text), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) read(name string) string {
	m.t.Helper()
	data, err := os.ReadFile(filepath.Join(m.folder, name))
	if err != nil {
		m.t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

func (m *machine) has(name string) bool {
	_, err := os.Stat(filepath.Join(m.folder, name))
	return err == nil
}

func TestAnEngineThatAnswersIsUsedAsItIs(t *testing.T) {
	m := newMachine(t)
	m.Root = true
	m.write("version", "20.10.24")
	said, err := m.Ensure(t.Context())
	if said != "Docker 20.10.24" || err != nil {
		t.Errorf("said %q, %v", said, err)
	}
	if m.installed != nil || m.has("state") {
		t.Errorf("installed %q, state %v", m.installed, m.has("state"))
	}
	if stopped, err := m.Stop(t.Context()); stopped || err != nil {
		t.Errorf("an engine that others started was stopped: %v, %v", stopped, err)
	}
}

func TestWithoutAnEngineAndWithoutRootASentenceSaysWhatToDo(t *testing.T) {
	tests := map[string]struct {
		prepare func(*machine)
		want    string
	}{
		"no docker command": {
			func(m *machine) { m.Docker.Command = ""; t.Setenv("PATH", m.t.TempDir()) },
			"install and start it (Debian: sudo apt-get install docker.io)",
		},
		"docker, but no engine that answers": {func(*machine) {}, "install and start it (Debian: sudo apt-get install docker.io)"},
		"an engine for others": {
			func(m *machine) { m.write("denied", "") }, "add it to the group docker (sudo usermod -aG docker $USER) and log in again",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			test.prepare(m)
			_, err := m.Ensure(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q", err, test.want)
			}
			if m.installed != nil {
				t.Errorf("installed %q", m.installed)
			}
		})
	}
}

func TestARuntimeThatAsksForTooMuchIsRefused(t *testing.T) {
	tests := map[string]struct {
		runtime string
		less    string
		want    string
	}{
		"a host that has every capability": {"runc", "", ""},
		"runc on a host that lacks one":    {"runc", "/cache/runc-less", "--add-runtime less=/cache/runc-less --default-runtime less"},
		"runc by its other name":           {"io.containerd.runc.v2", "/cache/runc-less", "has no CAP_SYS_RESOURCE"},
		"our runtime":                      {"less", "/cache/runc-less", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.write("version", "20.10.24")
			m.write("runtime", test.runtime)
			m.LessRuntime = test.less
			_, err := m.Ensure(t.Context())
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestAnEngineIsInstalledStartedAndStopped(t *testing.T) {
	m := newMachine(t)
	m.Root = true
	m.LessRuntime = "/cache/runc-less"
	said, err := m.Ensure(t.Context())
	if said != "Docker 29.0.1, started" || err != nil {
		t.Fatalf("said %q, %v", said, err)
	}
	if want := []string{"dockerd:docker.io", "docker:docker.io", "iptables", "ip:iproute2", "runc"}; !slices.Equal(m.installed, want) {
		t.Errorf("installed %q, want %q", m.installed, want)
	}
	if got, want := m.read("arguments"), "--add-runtime=less=/cache/runc-less --default-runtime=less"; got != want {
		t.Errorf("dockerd got %q, want %q", got, want)
	}
	if got := m.read("state/dockerd.log"); got != "engine starts" {
		t.Errorf("its log holds %q", got)
	}

	m.write("runtime", "less")
	if said, err := m.Ensure(t.Context()); said != "Docker 29.0.1" || err != nil {
		t.Errorf("asked again: %q, %v", said, err)
	}

	m.write("containers", "27d02dfcfb6e")
	if stopped, err := m.Stop(t.Context()); stopped || err != nil || !m.has("version") {
		t.Fatalf("with a container on it it was stopped: %v, %v", stopped, err)
	}
	m.write("containers", "")
	if stopped, err := m.Stop(t.Context()); !stopped || err != nil {
		t.Fatalf("stopped %v, %v", stopped, err)
	}
	if m.has("version") || m.has("state/dockerd.pid") || m.has("state/dockerd.log") {
		t.Errorf("left behind: it runs %v, pid file %v, log %v", m.has("version"), m.has("state/dockerd.pid"), m.has("state/dockerd.log"))
	}
	if stopped, err := m.Stop(t.Context()); stopped || err != nil {
		t.Errorf("stopped twice: %v, %v", stopped, err)
	}
}

func TestAPackageThatStartsItsServiceIsNotStartedTwice(t *testing.T) {
	m := newMachine(t)
	m.Root = true
	m.Install = func(context.Context, ...string) error { m.write("version", "26.1.5"); return nil }
	if said, err := m.Ensure(t.Context()); said != "Docker 26.1.5, installed" || err != nil {
		t.Errorf("said %q, %v", said, err)
	}
	if m.has("state/dockerd.pid") {
		t.Error("it was started")
	}
}

func TestAnEngineThatDoesNotStart(t *testing.T) {
	tests := map[string]struct {
		install func(*machine) error
		want    string
	}{
		"nothing could be installed": {func(*machine) error { return errors.New("no network") }, "no network"},
		"no dockerd afterwards":      {func(*machine) error { return nil }, "start the Docker engine"},
		"it ends at once": {
			func(m *machine) error { m.write("dockerd", "#!/bin/sh\nexit 1\n"); return nil },
			"dockerd.log: exit status 1",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.Root = true
			m.Install = func(context.Context, ...string) error { return test.install(m) }
			_, err := m.Ensure(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q", err, test.want)
			}
			if stopped, err := m.Stop(t.Context()); stopped || err != nil {
				t.Errorf("what did not start was stopped: %v, %v", stopped, err)
			}
			if m.has("state/dockerd.pid") {
				t.Error("a process id is left")
			}
		})
	}
}

func TestAnInterruptWhileTheEngineStarts(t *testing.T) {
	m := newMachine(t)
	m.Root = true
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupt := errors.New("interrupted by a test")
	m.Install = func(context.Context, ...string) error {
		m.write("dockerd", strings.Replace(fakeDockerd, "echo 29.0.1 >version", "", 1)) // never answers
		time.AfterFunc(100*time.Millisecond, func() { cancel(interrupt) })
		return nil
	}
	if _, err := m.Ensure(ctx); !errors.Is(err, interrupt) {
		t.Errorf("error %v", err)
	}
	if stopped, err := m.Stop(t.Context()); !stopped || err != nil {
		t.Errorf("the engine that was starting is not stopped: %v, %v", stopped, err)
	}
}

func TestAProcessThatGotTheNumberIsNotKilled(t *testing.T) {
	other := exec.CommandContext(t.Context(), "sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	now, runs := find(other.Process.Pid)
	if !runs {
		t.Fatal("sleep does not run")
	}
	ended := exec.CommandContext(t.Context(), "true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		file    string
		wantErr string
		kept    bool // the file
	}{
		"another's by now": {file: fmt.Sprintf("%d %s0", now.id, now.started)},
		"of no process":    {file: fmt.Sprintf("%d 1", ended.Process.Pid)},
		"a number alone":   {file: fmt.Sprint(now.id), wantErr: "does not tell", kept: true},
		"all processes":    {file: "-1 1", wantErr: "no process's number", kept: true},
		"our own group":    {file: "0 1", wantErr: "no process's number", kept: true},
		"no number":        {file: "docker 1", wantErr: "no process's number", kept: true},
		"no start":         {file: "12 now", wantErr: "no time of start", kept: true},
		"nothing":          {file: "", wantErr: "does not tell", kept: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			if err := os.Mkdir(m.State, 0o755); err != nil {
				t.Fatal(err)
			}
			m.write("state/dockerd.pid", test.file)
			m.write("state/dockerd.log", "")
			stopped, err := m.Stop(t.Context())
			if stopped || (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("stopped %v, error %v, want %q", stopped, err, test.wantErr)
			}
			if m.has("state/dockerd.pid") != test.kept {
				t.Errorf("the file is kept: %v", !test.kept)
			}
			if err := syscall.Kill(now.id, 0); err != nil {
				t.Errorf("the other process: %v", err)
			}
			if _, runs := find(now.id); !runs {
				t.Error("the other process was ended")
			}
		})
	}
}

func TestAProcessThatItsParentHasNotMissedYetDoesNotRun(t *testing.T) {
	ended := exec.CommandContext(t.Context(), "true")
	stdout, err := ended.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := ended.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 1)); err == nil { // until it ends
		t.Fatal("true prints something")
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, runs := find(ended.Process.Pid); !runs {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a process that has ended runs")
		}
	}
	if err := ended.Wait(); err != nil {
		t.Error(err)
	}
}

// FuzzParseProcess: what is read is what would be written, and never a group.
func FuzzParseProcess(f *testing.F) {
	for _, text := range []string{"1234 5678\n", "-1 0", "1 1", "2 18446744073709551616", "a b c", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseProcess(text)
		if err != nil {
			return
		}
		if p.id <= 1 {
			t.Errorf("%q: process %d", text, p.id)
		}
		again, err := parseProcess(p.String())
		if err != nil || again != p {
			t.Errorf("%q: %v, and again %v, %v", text, p, again, err)
		}
	})
}
