//go:build e2e && e2e_slow

package e2e

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/demo/component"
)

const (
	// up is how long a cluster takes on two cores that others use too, with all
	// programs built.
	up = 25 * time.Minute
	// interruption is what the demo says when it is interrupted, in one line.
	interruption = "interrupted: run the same again to go on from here (stopped by SIGINT)\n"
)

func checkInterrupted(t *testing.T, r *running) {
	t.Helper()
	code, output := r.wait(2 * time.Minute)
	if code != 130 {
		t.Errorf("it ends with %d, want 130", code)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(output, "\n"), "\n")
	if last := lines[len(lines)-1] + "\n"; !strings.HasPrefix(last, "demo: ") || !strings.HasSuffix(last, interruption) {
		t.Errorf("its last line is %q, want one that ends with %q", last, interruption)
	}
}

func TestASecondClusterThatIsInterruptedComesUpTheNextTime(t *testing.T) {
	s := newSecond(t, "trainyard-int", "172.30.78.0/24", map[string]string{"IMAGES": "source"})
	before := s.firstDemo(t)

	first := s.start(t, "cluster")
	first.until(up, "it says that Kubernetes starts", func() bool { return strings.Contains(first.said(), "starting Kubernetes") })
	if nodes := s.nodes(t); len(nodes) == 0 {
		t.Fatal("it says that Kubernetes starts, and there is no node")
	}
	volumes := s.volumes(t)
	first.signal(syscall.SIGINT)
	checkInterrupted(t, first)
	if nodes := s.nodes(t); len(nodes) > 0 {
		t.Errorf("half a cluster is left: %q", nodes)
	}
	for _, left := range s.leftovers(t, volumes...) {
		if strings.HasPrefix(left, "volume") || strings.HasPrefix(left, "process") {
			t.Errorf("left behind: %s", left)
		}
	}

	// One that nobody could clean up after.
	killed := s.start(t, "cluster")
	killed.until(up, "it says that Kubernetes starts", func() bool { return strings.Contains(killed.said(), "starting Kubernetes") })
	killed.signal(syscall.SIGKILL)
	if code, output := killed.wait(time.Minute); code != -1 {
		t.Fatalf("it ends with %d:\n%s", code, output)
	}
	if nodes := s.nodes(t); len(nodes) == 0 {
		t.Fatal("no half cluster is left: there is nothing to test")
	}

	if code, output := s.run(t, up, "cluster"); code != 0 {
		t.Fatalf("run again it ends with %d:\n%s", code, output)
	}
	e := connectTo(t, s.getenv)
	nodes, err := e.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		for _, condition := range node.Status.Conditions {
			if condition.Type == "Ready" && condition.Status != "True" {
				t.Errorf("node %s: %s", node.Name, condition.Message)
			}
		}
	}
	s.down(t, before)
}

func TestASecondImageBuildThatIsInterruptedGoesOn(t *testing.T) {
	cache := t.TempDir()
	s := newSecond(t, "trainyard-int", "172.30.78.0/24", map[string]string{"IMAGES": "source", "TRAINYARD_CACHE": cache})
	before := s.firstDemo(t)
	module := component.Modules()[0]
	pattern := filepath.Join(cache, "components", module.Name+"-*", "*")

	// In the middle of a batch that is not the first.
	r := s.start(t, "cluster")
	r.until(up, "the first programs are built", func() bool {
		built, err := filepath.Glob(pattern)
		return err == nil && len(built) > 0 && strings.Contains(r.said(), "compiling")
	})
	time.Sleep(5 * time.Second)
	r.signal(syscall.SIGINT)
	checkInterrupted(t, r)

	// Go's own files are beside the programs of the demo alone.
	err := filepath.WalkDir(cache, func(path string, entry os.DirEntry, err error) error {
		if err == nil && path != cache && strings.HasPrefix(entry.Name(), ".") {
			t.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if rootfs, err := filepath.Glob(filepath.Join(cache, "rootfs-*")); err != nil || len(rootfs) > 0 {
		// A Debian takes longer than six programs, also from a mirror next door.
		t.Errorf("a file system after some seconds: %q, %v", rootfs, err)
	}
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	whole := map[string]time.Time{}
	for _, file := range files {
		if _, err := buildinfo.ReadFile(file); err != nil {
			t.Errorf("%s is no whole program: %v", file, err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		whole[filepath.Base(file)] = info.ModTime()
	}
	if len(whole) == 0 || len(whole) >= len(module.Programs) {
		t.Fatalf("%d of %d programs are built", len(whole), len(module.Programs))
	}

	// The next build takes them, and makes what is missing: one will do.
	version, err := exec.CommandContext(t.Context(), "go", "env", "GOVERSION").Output()
	if err != nil {
		t.Fatal(err)
	}
	var programs []component.Program
	for _, program := range module.Programs {
		if _, there := whole[program.Name]; there || program.Name == "pipeline-nop" {
			programs = append(programs, program)
		}
	}
	module.Programs = programs
	builder := component.Builder{
		Root: filepath.Join(s.first.Checkout, "scripts", "components"), Cache: filepath.Join(cache, "components"),
		Go: "go", GoVersion: strings.TrimSpace(string(version)),
	}
	built, err := builder.Build(t.Context(), module)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := buildinfo.ReadFile(built.Path("pipeline-nop")); err != nil {
		t.Error(err)
	}
	for name, made := range whole {
		info, err := os.Stat(built.Path(name))
		if err != nil || !info.ModTime().Equal(made) {
			t.Errorf("%s was built again (%v)", name, err)
		}
	}
	if again, err := builder.Build(t.Context(), module); err != nil || !again.Cached {
		t.Errorf("a third time something is built: %v", err)
	}
	s.down(t, before)
}
