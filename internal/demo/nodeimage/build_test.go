package nodeimage

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/trainyard/trainyard/internal/demo/docker"
)

// recorder is a docker command that keeps its calls and what it is given, and
// then runs a script.
type recorder struct {
	Builder
	t      *testing.T
	folder string
}

func record(t *testing.T, script string) recorder {
	t.Helper()
	r := recorder{t: t, folder: t.TempDir()}
	r.Docker = docker.CLI{Command: filepath.Join(r.folder, "docker")}
	text := `#!/bin/sh
cd "$(dirname "$0")" || exit
{ printf '%s' "$1"; for arg in "$@"; do printf '|%s' "$arg"; done; echo; } | sed 's/^[^|]*|//' >>calls
` + script + `
case "$*" in
import*) exec cat >rootfs.tar ;;
*"images import"*) exec cat >images.tar ;;
run*) echo 0123456789ab ;;
esac
`
	if err := os.WriteFile(r.Docker.Command, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r recorder) calls() []string {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.folder, "calls"))
	if err != nil {
		r.t.Fatal(err)
	}
	// The container's name is made up.
	text := regexp.MustCompile(`trainyard-node-[a-z0-9]+`).ReplaceAllString(string(data), "CONTAINER")
	return strings.Split(strings.TrimSpace(text), "\n")
}

// what kubeadm prints, for the tests' version.
const kubeadmImages = `registry.k8s.io/kube-apiserver:v1.36.3
registry.k8s.io/kube-controller-manager:v1.36.3
registry.k8s.io/kube-scheduler:v1.36.3
registry.k8s.io/kube-proxy:v1.36.3
registry.k8s.io/coredns/coredns:v1.14.2
registry.k8s.io/pause:3.10.2
registry.k8s.io/etcd:3.6.8-0
`

// inputs of a build whose programs are shell scripts.
func inputs(t *testing.T) Inputs {
	t.Helper()
	in := Inputs{
		Image: "trainyard/node:test", Platform: v1.Platform{OS: "linux", Architecture: "amd64"}, KubernetesVersion: "v1.36.3",
		KindModule: pinned(t), NodeRootfs: pack(t, debian...), ToolsRootfs: pack(t, debian...), Programs: map[string]string{},
	}
	for _, name := range []string{
		"kubelet", "kubectl", "containerd", "containerd-shim-runc-v2", "kube-apiserver", "kube-controller-manager",
		"kube-scheduler", "kube-proxy", "coredns", "pause", "etcd", "local-path-provisioner",
	} {
		in.Programs[name] = program(t, name, "# "+name+"\n")
	}
	in.Programs["kubeadm"] = program(t, "kubeadm",
		"test \"$*\" = 'config images list --kubernetes-version v1.36.3' || exit 9\ncat <<'END'\n"+kubeadmImages+"END\n")
	in.Programs["ctr"] = program(t, "ctr", `echo '{"process": {"cwd": "/"}}'`)
	return in
}

const (
	removal      = "rm|--force|--volumes|CONTAINER"
	imageRemoval = "image|rm|--no-prune|trainyard/node:test-base"
)

func TestBuildImportsAndCommits(t *testing.T) {
	r := record(t, "")
	if err := r.Build(t.Context(), inputs(t)); err != nil {
		t.Fatal(err)
	}
	dockerfile := dockerfile(t)
	_, final, _ := strings.Cut(dockerfile, "\nFROM scratch\n")
	entrypoint := matches(t, final, `(?m)^ENTRYPOINT \[ (.*) \]$`)[0]
	want := []string{
		"import|-|trainyard/node:test-base",
		"run|--detach|--name|CONTAINER|--security-opt=seccomp=unconfined|--stop-signal=" + matches(t, final, `(?m)^STOPSIGNAL (\S+)$`)[0] +
			"|--label=dev.trainyard.demo|--entrypoint=sleep|trainyard/node:test-base|infinity",
		"exec|--detach|CONTAINER|containerd",
		"exec|CONTAINER|ctr|--connect-timeout=1s|info",
		"exec|--interactive|CONTAINER|ctr|--namespace=k8s.io|images|import|--label=io.cri-containerd.pinned=pinned|--all-platforms|--no-unpack|--digests|-",
		"exec|CONTAINER|pkill|containerd",
		"commit|--change|ENTRYPOINT [" + entrypoint + "]|--change|ENV " + matches(t, final, `(?m)^ENV (\S+)$`)[0] +
			"|--change|LABEL dev.trainyard.demo=node|CONTAINER|trainyard/node:test",
		removal, imageRemoval,
	}
	if diff := cmp.Diff(want, r.calls()); diff != "" {
		t.Error(diff)
	}
	t.Run("the file system", func(t *testing.T) { checkRootfs(t, filepath.Join(r.folder, "rootfs.tar")) })
	t.Run("the images", func(t *testing.T) { checkImages(t, filepath.Join(r.folder, "images.tar")) })
}

func checkRootfs(t *testing.T, archive string) {
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	headers, contents := list(t, file)
	modes, links := map[string]int64{}, map[string]string{}
	for _, header := range headers {
		modes[header.Name] = header.Mode
		links[header.Name] = header.Linkname
	}
	for _, program := range []string{
		"usr/bin/kubelet", "usr/bin/kubeadm", "usr/bin/kubectl",
		"usr/local/bin/containerd", "usr/local/bin/ctr", "usr/local/bin/containerd-shim-runc-v2", "usr/local/bin/entrypoint",
	} {
		if modes[program] != 0o755 || !strings.HasPrefix(contents[program], "#!/bin/") {
			t.Errorf("%s has mode %o and holds %.20q", program, modes[program], contents[program])
		}
	}
	if contents["kind/version"] != "v1.36.3" {
		t.Errorf("kind/version holds %q", contents["kind/version"])
	}
	if !strings.Contains(contents["kind/manifests/default-storage.yaml"], "kind: StorageClass") {
		t.Error("no storage class in kind/manifests/default-storage.yaml")
	}
	if links["opt/cni/bin"] != "/usr/lib/cni" || modes["etc/kubernetes/manifests/"] != 0o755 {
		t.Errorf("opt/cni/bin is a link to %q, etc/kubernetes/manifests has mode %o", links["opt/cni/bin"], modes["etc/kubernetes/manifests/"])
	}
	var spec struct {
		Hooks struct{ CreateContainer []struct{ Path string } }
	}
	if err := json.Unmarshal([]byte(contents["etc/containerd/cri-base.json"]), &spec); err != nil || len(spec.Hooks.CreateContainer) != 1 {
		t.Errorf("cri-base.json: %+v, %v", spec, err)
	}
}

func checkImages(t *testing.T, archive string) {
	kind, err := readKind(pinned(t))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
	if err != nil {
		t.Fatal(err)
	}
	var tags []string
	for _, image := range manifest {
		tags = append(tags, image.RepoTags...)
	}
	config, err := os.ReadFile(filepath.Join(pinned(t), "images/base/files/etc/containerd/config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	sandbox := matches(t, string(config), `sandbox_image = "(.*)"`)[0]
	want := append(strings.Fields(kubeadmImages), sandbox, kind.provisionerImage, kind.storageImage)
	slices.Sort(want)
	want = slices.Compact(want) // the sandbox is one of kubeadm's when versions agree
	slices.Sort(tags)
	if diff := cmp.Diff(want, tags); diff != "" {
		t.Error(diff)
	}
}

func TestBuildCleansUp(t *testing.T) {
	interrupt := errors.New("interrupted by a test")
	tests := map[string]struct {
		script string // exits with 1 where it fails
		last   string // the last call before cleaning up begins with this
	}{
		"the import fails":            {`case "$*" in import*) cat >/dev/null; exit 1;; esac`, "import|"},
		"no container":                {`case "$*" in run*) exit 1;; esac`, "run|"},
		"no containerd":               {`case "$*" in "exec --detach"*) exit 1;; esac`, "exec|--detach|"},
		"the images are not imported": {`case "$*" in *"images import"*) cat >/dev/null; exit 1;; esac`, "exec|--interactive|"},
		"the commit fails":            {`case "$*" in commit*) exit 1;; esac`, "commit|"},
		"an interrupt at the import":  {`case "$*" in import*) echo >reached; exec sleep 60;; esac`, "import|"},
		"an interrupt at the images":  {`case "$*" in *"images import"*) echo >reached; exec sleep 60;; esac`, "exec|--interactive|"},
		"an interrupt while waiting":  {`case "$*" in *info) echo >reached; exit 1;; esac`, "exec|CONTAINER|ctr|--connect-timeout=1s|info"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := record(t, test.script)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			interrupted := strings.Contains(test.script, "reached")
			if interrupted {
				go func() {
					for ctx.Err() == nil {
						if _, err := os.Stat(filepath.Join(r.folder, "reached")); err == nil {
							cancel(interrupt)
						}
						time.Sleep(10 * time.Millisecond)
					}
				}()
			}
			err := r.Build(ctx, inputs(t))
			if err == nil || interrupted && !errors.Is(err, interrupt) {
				t.Fatalf("error %v", err)
			}
			calls := r.calls()
			if n := len(calls); n < 3 || calls[n-2] != removal || calls[n-1] != imageRemoval || !strings.HasPrefix(calls[n-3], test.last) {
				t.Errorf("calls %q", calls)
			}
		})
	}
}

func TestBuildRefusesBeforeItCallsDocker(t *testing.T) {
	tests := map[string]struct {
		change func(*Inputs)
		want   string
	}{
		"no kind":       {func(in *Inputs) { in.KindModule = t.TempDir() }, "kind"},
		"no kubeadm":    {func(in *Inputs) { delete(in.Programs, "kubeadm") }, "no program kubeadm was built"},
		"no etcd":       {func(in *Inputs) { delete(in.Programs, "etcd") }, "image registry.k8s.io/etcd:3.6.8-0: no program etcd was built"},
		"no kubelet":    {func(in *Inputs) { delete(in.Programs, "kubelet") }, "no program kubelet was built"},
		"no tools":      {func(in *Inputs) { in.ToolsRootfs = "no-such.tar" }, "no-such.tar"},
		"tools of none": {func(in *Inputs) { in.ToolsRootfs = pack(t, tar.Header{Typeflag: tar.TypeDir, Name: "./"}) }, "holds no usr/bin/busybox"},
		"kubeadm fails": {func(in *Inputs) { in.Programs["kubeadm"] = program(t, "kubeadm", "echo 'bad version' >&2; exit 1") }, "bad version"},
		"kubeadm says else": {
			func(in *Inputs) { in.Programs["kubeadm"] = program(t, "kubeadm", "echo warning") }, `image "warning"`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := record(t, "")
			in := inputs(t)
			test.change(&in)
			err := r.Build(t.Context(), in)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
			if _, err := os.Stat(filepath.Join(r.folder, "calls")); err == nil {
				t.Errorf("docker was called: %q", r.calls())
			}
		})
	}
}
