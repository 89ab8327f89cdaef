package nodeimage

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/demo/gomodule"
)

// pinned is the folder of the kind module that the cluster's go.mod pins.
func pinned(t *testing.T) string {
	t.Helper()
	kind, err := gomodule.Find(t.Context(), "go", filepath.Join("..", "..", "..", "scripts", "components", "cluster"), "sigs.k8s.io/kind")
	if err != nil {
		t.Fatal(err)
	}
	return kind.Dir
}

func TestReadKindReadsThePinnedModule(t *testing.T) {
	kind, err := readKind(pinned(t))
	if err != nil {
		t.Fatal(err)
	}
	// The manifest names the images that it is given as constants.
	var images []string
	var classes int
	for document := range strings.SplitSeq(kind.storageManifest, "\n---\n") {
		var object struct {
			Kind string `json:"kind"`
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct {
							Image string `json:"image"`
						} `json:"containers"`
					} `json:"spec"`
				} `json:"template"`
			} `json:"spec"`
			Metadata struct {
				Name        string            `json:"name"`
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		for _, container := range object.Spec.Template.Spec.Containers {
			images = append(images, container.Image)
		}
		if object.Kind == "StorageClass" && object.Metadata.Name == "standard" && object.Metadata.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			classes++
		}
	}
	if !slices.Equal(images, []string{kind.provisionerImage}) || classes != 1 {
		t.Errorf("the manifest runs %q, want %q; it has %d default storage classes", images, kind.provisionerImage, classes)
	}
	if !strings.Contains(kind.storageManifest, "image: "+kind.storageImage) {
		t.Errorf("the manifest's helper is not %s", kind.storageImage)
	}
}

func TestReadKindOfAnotherLayout(t *testing.T) {
	tests := map[string]struct{ source, want string }{
		"no such file":      {"", "const_storage.go"},
		"no constants":      {"package nodeimage\n", "keeps its storage manifest elsewhere"},
		"another name":      {"package nodeimage\nconst defaultStorageManifest = `a`\nconst storageProvisionerImage = `b`\nconst helper = `c`\n", "elsewhere"},
		"a variable now":    {"package nodeimage\nvar defaultStorageManifest = `a`\nconst storageProvisionerImage, storageHelperImage = `b`, `c`\n", "elsewhere"},
		"something else":    {"const", "const_storage.go"},
		"computed at start": {"package nodeimage\nimport \"strings\"\nvar x = strings.ToLower(`a`)\n", "elsewhere"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if test.source != "" {
				write(t, filepath.Join(dir, "pkg/build/nodeimage/const_storage.go"), test.source)
			}
			got, err := readKind(dir)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%+v, error %v, want one with %q", got, err, test.want)
			}
		})
	}
}

func TestStringConstantsAreEvaluated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "constants.go")
	write(t, file, `package any

import "example.com/not/there"

const (
	plain    = "a"
	raw      = `+"`b\n`"+`
	sum      = plain + "-" + raw
	typed    text = "t"
	number   = 1
	unknown  = there.Is + "x"
	foreign  = elsewhere
)

type text string

var variable = "v"

func f() { const local = "l" }
`)
	got, err := stringConstants(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"plain": "a", "raw": "b\n", "sum": "a-b\n", "typed": "t"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// dockerfile is kind's, of the pinned version: with continued lines in one, and
// without comments.
func dockerfile(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(pinned(t), "images/base/Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAllString(string(data), "")
	text = strings.ReplaceAll(text, "\\\n", " ")
	return regexp.MustCompile(`[ \t]+`).ReplaceAllString(text, " ")
}

// matches returns the first group of every match, and fails if there is none.
func matches(t *testing.T, text, expression string) []string {
	t.Helper()
	var out []string
	for _, match := range regexp.MustCompile(expression).FindAllStringSubmatch(text, -1) {
		out = append(out, match[1])
	}
	if len(out) == 0 {
		t.Fatalf("kind's Dockerfile has no %s", expression)
	}
	return out
}

func TestUnwantedIsWhatKindsDockerfileRemoves(t *testing.T) {
	text := dockerfile(t)
	globs := matches(t, text, `rm -f (\S+)`)
	find := regexp.MustCompile(`find (\S+) -name "(\S+)" -delete`).FindAllStringSubmatch(text, -1)
	for _, match := range find {
		globs = append(globs, match[1]+match[2])
	}
	removes := func(name string) bool {
		// Debian's /lib is a link to /usr/lib, where its packages' files are.
		name = "/" + strings.Replace(name, "usr/lib/", "lib/", 1)
		return slices.ContainsFunc(globs, func(glob string) bool {
			matched, err := path.Match(glob, name)
			if err != nil {
				t.Fatal(err)
			}
			return matched
		})
	}
	// One for everything that it removes, and for everything that we do.
	names := []string{
		"usr/lib/systemd/system/multi-user.target.wants/getty.target",
		"lib/systemd/system/multi-user.target.wants/getty.target",
		"usr/lib/systemd/system/local-fs.target.wants/tmp.mount",
		"usr/lib/systemd/system/basic.target.wants/x.service",
		"usr/lib/systemd/system/sockets.target.wants/systemd-udevd-control.socket",
		"usr/lib/systemd/system/sockets.target.wants/systemd-initctl.socket",
		"usr/lib/systemd/system/sockets.target.wants/systemd-journald.socket",
		"usr/lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
		"usr/lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup-dev.service",
		"usr/lib/systemd/system/sysinit.target.wants/systemd-sysctl.service",
		"usr/lib/systemd/system/timers.target.wants/systemd-tmpfiles-clean.timer",
		"usr/lib/systemd/system/initrd.target.wants/systemd-bsod.service",
		"usr/lib/systemd/system/getty.target.wants/getty-static.service",
		"usr/lib/systemd/system/kubelet.service",
		"etc/systemd/system/timers.target.wants/apt-daily.timer",
		"etc/systemd/system/getty.target.wants/getty@tty1.service",
		"etc/systemd/system/kubelet.service",
		"etc/systemd/system/kubelet.service.d/10-kubeadm.conf",
		"var/lib/systemd/deb-systemd-helper-enabled/timers.target.wants/fstrim.timer",
		"etc/passwd",
	}
	for _, glob := range globs {
		names = append(names, strings.TrimPrefix(strings.ReplaceAll(glob, "*", "sample"), "/"))
	}
	for _, name := range names {
		if got, want := unwanted(name), removes(name); got != want {
			t.Errorf("%s: it is dropped: %v, by kind: %v", name, got, want)
		}
	}
}

func TestSettingsAreWhatKindsDockerfileEnablesAndMasks(t *testing.T) {
	text := dockerfile(t)
	want := map[string]string{}
	for _, unit := range matches(t, text, `systemctl enable (\S+)`) {
		data, err := os.ReadFile(filepath.Join(pinned(t), "images/base/files/etc/systemd/system", unit))
		if err != nil {
			t.Fatal(err)
		}
		target := matches(t, string(data), `(?m)^WantedBy=(\S+)$`)
		want["etc/systemd/system/"+target[0]+".wants/"+unit] = "/etc/systemd/system/" + unit
	}
	for _, unit := range matches(t, text, `systemctl mask (\S+)`) {
		want["etc/systemd/system/"+unit] = "/dev/null"
	}
	got := map[string]string{}
	for _, setting := range settings {
		if setting.Link != "" {
			got[setting.Path] = setting.Link
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if systemctl := len(regexp.MustCompile(`systemctl `).FindAllString(text, -1)); systemctl != len(want) {
		t.Errorf("systemctl is called %d times, %d of them to enable or mask", systemctl, len(want))
	}

	// What it appends to journald's configuration is in a file of our own.
	line := matches(t, text, `echo "(\S+)" >> /etc/systemd/journald.conf`)
	var conf string
	for _, setting := range settings {
		if path.Dir(setting.Path) == "etc/systemd/journald.conf.d" {
			conf = string(setting.Data)
		}
	}
	if want := "[Journal]\n" + strings.Join(line, "\n") + "\n"; conf != want {
		t.Errorf("journald is told %q, want %q", conf, want)
	}
}

func TestTheNodeHasThePackagesOfKindsDockerfile(t *testing.T) {
	// What kind installs and we do not: for tests of storage that the demo has no
	// use for, and what is in Debian's minimum.
	leftOut := []string{"nfs-common", "open-iscsi", "e2fsprogs", "bash"}
	// What we install and kind gets otherwise.
	ours := []string{
		"runc", "containernetworking-plugins", // it builds them
		"systemd-sysv", // it makes the link /sbin/init
		"hostname",     // Debian's container image has it
	}
	kinds := strings.Fields(matches(t, dockerfile(t), `clean-install ((?:[a-z0-9.+-]+ )+)&&`)[0])
	var want []string
	for _, name := range kinds {
		if !slices.Contains(leftOut, name) {
			want = append(want, name)
		}
	}
	want = append(want, ours...)
	got := slices.Clone(NodeRootfs().Packages)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	suite := matches(t, dockerfile(t), `(?m)^ARG BASE_IMAGE=debian:(\S+)-slim$`)[0]
	if NodeRootfs().Suite != suite || ToolsRootfs().Suite != suite {
		t.Errorf("Debian %s and %s, kind has %s", NodeRootfs().Suite, ToolsRootfs().Suite, suite)
	}
}

func TestNodeFilesHaveTheModesOfKindsDockerfile(t *testing.T) {
	dir := pinned(t)
	base, _, _ := strings.Cut(dockerfile(t), "AS go-build")
	copies := regexp.MustCompile(`(?m)^COPY --chmod=(\d+) files/(\S+) (\S+)$`).FindAllStringSubmatch(base, -1)
	// mode is what the last COPY of a file gives it, at the path where it copies it.
	mode := func(name string) (out int64) {
		for _, match := range copies {
			chmod, err := strconv.ParseInt(match[1], 8, 64)
			if err != nil {
				t.Fatal(err)
			}
			source, target := match[2], strings.TrimPrefix(match[3], "/")
			folder, isFolder := strings.CutSuffix(source, "/")
			switch matched, err := path.Match(source, name); {
			case err != nil:
				t.Fatal(err)
			case matched && strings.TrimSuffix(target, "*")+path.Base(name) == name, isFolder && strings.HasPrefix(name, folder+"/") && target == source:
				out = chmod
			}
		}
		return out
	}
	entries, err := kindSource{dir: dir}.nodeFiles()
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < 10 {
		t.Fatalf("%d files", len(entries))
	}
	for _, entry := range entries {
		if want := mode(entry.Path); entry.Mode != want {
			t.Errorf("%s has mode %o, by kind %o", entry.Path, entry.Mode, want)
		}
		data, err := os.ReadFile(filepath.Join(dir, "images/base/files", entry.Path))
		if err != nil || string(data) != string(entry.Data) {
			t.Errorf("%s has other contents (%v)", entry.Path, err)
		}
	}
	if _, err := (kindSource{dir: t.TempDir()}).nodeFiles(); err == nil {
		t.Error("a module without these files is no error")
	}
}

// changes to containerd's default container that runtimeSpec makes.
var changes = []string{
	`.hooks.createContainer[.hooks.createContainer| length] |= . + {"path": "/kind/bin/mount-product-files.sh"}`,
	`del(.process.rlimits)`,
}

func TestRuntimeSpecMakesTheChangesOfKindsDockerfile(t *testing.T) {
	if diff := cmp.Diff(changes, matches(t, dockerfile(t), `jq '([^']+)'`)); diff != "" {
		t.Errorf("kind changes other things now: %s", diff)
	}
	tests := map[string]struct{ spec, want, wantErr string }{
		"containerd's default": {
			spec: `{"ociVersion": "1.3.0", "process": {"cwd": "/", "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 1024}]}, "hooks": {"poststart": [{"path": "/x"}]}}`,
			want: `{"ociVersion": "1.3.0", "process": {"cwd": "/"}, "hooks": {"poststart": [{"path": "/x"}], "createContainer": [{"path": "/kind/bin/mount-product-files.sh"}]}}`,
		},
		"with a hook": {
			spec: `{"process": {}, "hooks": {"createContainer": [{"path": "/first"}]}}`,
			want: `{"process": {}, "hooks": {"createContainer": [{"path": "/first"}, {"path": "/kind/bin/mount-product-files.sh"}]}}`,
		},
		"without hooks": {
			spec: `{"process": {}}`,
			want: `{"process": {}, "hooks": {"createContainer": [{"path": "/kind/bin/mount-product-files.sh"}]}}`,
		},
		"without a process": {spec: `{}`, wantErr: "no process"},
		"no JSON":           {spec: `spec`, wantErr: "read ctr's default container"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctr := program(t, "ctr", "test \"$*\" = 'oci spec' && cat <<'END'\n"+test.spec+"\nEND\n")
			got, err := runtimeSpec(t.Context(), Inputs{Programs: map[string]string{"ctr": ctr}})
			if (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Fatalf("error %v, want %q", err, test.wantErr)
			}
			if err == nil {
				var gotSpec, wantSpec any
				if err := yaml.Unmarshal(got, &gotSpec); err != nil {
					t.Fatal(err)
				}
				if err := yaml.Unmarshal([]byte(test.want), &wantSpec); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(wantSpec, gotSpec); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	failing := program(t, "ctr", "echo 'no such command' >&2; exit 3")
	_, err := runtimeSpec(t.Context(), Inputs{Programs: map[string]string{"ctr": failing}})
	if err == nil || !strings.Contains(err.Error(), "exit status 3: no such command") {
		t.Errorf("error %v, want what ctr says", err)
	}
	if _, err := runtimeSpec(t.Context(), Inputs{}); err == nil || !strings.Contains(err.Error(), "ctr") {
		t.Errorf("without ctr: %v", err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// program is a program that runs a shell script.
func program(t *testing.T, name, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}
