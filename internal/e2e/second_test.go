//go:build e2e && e2e_slow

package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// second is a demo beside the first, of another name. One test at a time has one.
type second struct {
	first env
	// name is that of the cluster, the network and the folder with its state.
	name     string
	binary   string
	settings map[string]string
}

// newSecond describes a demo with these settings besides its name, network and
// ports. It is taken down after the test, whatever became of it.
func newSecond(t *testing.T, name, subnet string, settings map[string]string) second {
	t.Helper()
	e := connect(t)
	s := second{first: e, name: name, binary: filepath.Join(t.TempDir(), "demo"), settings: map[string]string{
		"CLUSTER": name, "SUBNET": subnet, "S3_PORT": freePort(t), "TRIGGERS_PORT": freePort(t),
		// What the environment says of the first demo is not for this one.
		"MIRROR": "", "IMAGES_LOCK": "", "TRAINYARD_CACHE": os.Getenv("TRAINYARD_CACHE"),
	}}
	for key, value := range settings {
		s.settings[key] = value
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", s.binary, "./cmd/demo")
	build.Dir = e.Checkout
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if left := s.leftovers(t); len(left) > 0 {
		t.Fatalf("something of the name %s is there before the test: %s", name, strings.Join(left, ", "))
	}
	t.Cleanup(func() {
		if code, output := s.run(t, 5*time.Minute, "down"); code != 0 {
			t.Errorf("down ends with %d:\n%s", code, output)
		}
	})
	return s
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
}

func (s second) getenv(name string) string {
	if value, set := s.settings[name]; set {
		return value
	}
	return os.Getenv(name)
}

// running is a demo that was started.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	ended  chan struct{}
	mu     sync.Mutex
	output bytes.Buffer
}

// Write keeps what the demo prints.
func (r *running) Write(data []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.output.Write(data)
}

func (r *running) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.output.String()
}

// start runs a verb of the demo in a group of processes of its own, as a terminal
// does.
func (s second) start(t *testing.T, verb string) *running {
	t.Helper()
	r := &running{t: t, cmd: exec.Command(s.binary, verb), ended: make(chan struct{})} //nolint:noctx // it is signalled
	r.cmd.Dir = s.first.Checkout
	r.cmd.Env = os.Environ()
	for key, value := range s.settings {
		r.cmd.Env = append(r.cmd.Env, key+"="+value)
	}
	r.cmd.Stdout, r.cmd.Stderr = r, r
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = r.cmd.Wait() // the exit code says it
		close(r.ended)
	}()
	return r
}

// until returns when a condition holds, and fails when the demo ends before.
func (r *running) until(limit time.Duration, what string, condition func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(limit); !condition(); {
		select {
		case <-r.ended:
			r.t.Fatalf("the demo ended before %s:\n%s", what, r.said())
		case <-time.After(200 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			r.signal(syscall.SIGINT)
			r.wait(3 * time.Minute)
			r.t.Fatalf("not within %v: %s:\n%s", limit, what, r.said())
		}
	}
}

func (r *running) signal(signal syscall.Signal) {
	if err := syscall.Kill(-r.cmd.Process.Pid, signal); err != nil {
		r.t.Error(err)
	}
}

// wait returns the exit code, and all that was printed.
func (r *running) wait(limit time.Duration) (code int, output string) {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(limit):
		r.signal(syscall.SIGKILL)
		<-r.ended
		r.t.Errorf("the demo did not end within %v", limit)
	}
	return r.cmd.ProcessState.ExitCode(), r.said()
}

func (s second) run(t *testing.T, limit time.Duration, verb string) (code int, output string) {
	t.Helper()
	return s.start(t, verb).wait(limit)
}

// docker runs docker and returns the fields of what it prints.
func docker(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("docker", args...).Output() //nolint:noctx // also when the test's context has ended
	if err != nil {
		t.Fatalf("docker %s: %v", strings.Join(args, " "), err)
	}
	return strings.Fields(string(out))
}

// nodes are the containers of the cluster's nodes.
func (s second) nodes(t *testing.T) []string {
	t.Helper()
	return docker(t, "ps", "--all", "--filter", "label=io.x-k8s.kind.cluster="+s.name, "--format", "{{.Names}}")
}

// volumes are those that the nodes' file systems are in: Docker gives them names.
func (s second) volumes(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, node := range s.nodes(t) {
		names = append(names, docker(t, "inspect", "--format", `{{range .Mounts}}{{if eq .Type "volume"}}{{.Name}} {{end}}{{end}}`, node)...)
	}
	return names
}

// leftovers is everything that has the demo's name, and what is left of volumes.
func (s second) leftovers(t *testing.T, volumes ...string) []string {
	t.Helper()
	var left []string
	for _, name := range docker(t, "ps", "--all", "--format", "{{.Names}}") {
		if strings.HasPrefix(name, s.name+"-") {
			left = append(left, "container "+name)
		}
	}
	for _, name := range docker(t, "network", "ls", "--format", "{{.Name}}") {
		if name == s.name {
			left = append(left, "network "+name)
		}
	}
	for _, name := range docker(t, "volume", "ls", "--quiet") {
		if strings.HasPrefix(name, s.name+"-") || slices.Contains(volumes, name) {
			left = append(left, "volume "+name)
		}
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range commands {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		words := strings.FieldsFunc(string(data), func(r rune) bool { return strings.ContainsRune("\x00/=, ", r) })
		if slices.ContainsFunc(words, func(word string) bool { return word == s.name || strings.HasPrefix(word, s.name+"-") }) {
			left = append(left, "process "+filepath.Base(filepath.Dir(file))+" "+strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	if _, err := os.Stat(s.state()); err == nil {
		left = append(left, s.state())
	}
	return left
}

// state is the folder that holds the demo's credentials.
func (s second) state() string {
	cache := s.settings["TRAINYARD_CACHE"]
	if cache == "" {
		cache = filepath.Dir(filepath.Dir(filepath.Dir(s.first.Kubeconfig))) // the first's
	}
	return filepath.Join(cache, "demo", s.name)
}

// down takes the demo down and makes sure that nothing of it is left, and that the
// first is as it was.
func (s second) down(t *testing.T, before string) {
	t.Helper()
	volumes := s.volumes(t)
	if code, output := s.run(t, 5*time.Minute, "down"); code != 0 {
		t.Errorf("down ends with %d:\n%s", code, output)
	}
	left := s.leftovers(t, volumes...)
	for deadline := time.Now().Add(20 * time.Second); len(left) > 0 && time.Now().Before(deadline); left = s.leftovers(t, volumes...) {
		time.Sleep(time.Second) // the last processes of a container end after it
	}
	if len(left) > 0 {
		t.Errorf("left behind: %s", strings.Join(left, "\n"))
	}
	if after := s.firstDemo(t); after != before {
		t.Errorf("the first demo was\n%sand is\n%s", before, after)
	}
}

// firstDemo is what there is of the first demo, and since when.
func (s second) firstDemo(t *testing.T) string {
	t.Helper()
	ids := docker(t, "ps", "--all", "--quiet", "--no-trunc", "--filter", "network="+s.first.Name)
	slices.Sort(ids)
	var out strings.Builder
	for _, id := range ids {
		fmt.Fprintln(&out, docker(t, "inspect", "--format", "{{.Name}} {{.Id}} {{.State.Running}} {{.State.StartedAt}}", id))
	}
	if _, err := s.first.kube.Discovery().ServerVersion(); err != nil {
		fmt.Fprintln(&out, err)
	}
	return out.String()
}
