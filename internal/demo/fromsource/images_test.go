package fromsource_test

import (
	"archive/tar"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/demo/component"
	"github.com/trainyard/trainyard/internal/demo/fromsource"
	"github.com/trainyard/trainyard/internal/demo/gomodule"
	"github.com/trainyard/trainyard/internal/demo/tekton"
)

// maker has programs that hold their names, and a small Debian of tools.
func maker(t *testing.T) fromsource.Maker {
	t.Helper()
	folder := t.TempDir()
	tools, err := os.Create(filepath.Join(folder, "tools.tar"))
	if err != nil {
		t.Fatal(err)
	}
	writer := tar.NewWriter(tools)
	for _, header := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755},
		{Typeflag: tar.TypeSymlink, Name: "./sbin", Linkname: "usr/sbin", Mode: 0o777},
		{Typeflag: tar.TypeSymlink, Name: "./bin", Linkname: "usr/bin", Mode: 0o777},
		{Typeflag: tar.TypeDir, Name: "./usr/bin/", Mode: 0o755},
		{Typeflag: tar.TypeDir, Name: "./usr/sbin/", Mode: 0o755},
		{Typeflag: tar.TypeReg, Name: "./usr/bin/tini", Mode: 0o755, Size: 4},
		{Typeflag: tar.TypeReg, Name: "./usr/bin/git", Mode: 0o755, Size: 4},
		{Typeflag: tar.TypeReg, Name: "./usr/bin/busybox", Mode: 0o755, Size: 4},
	} {
		if err := writer.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(writer, "tool"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(writer.Close(), tools.Close()); err != nil {
		t.Fatal(err)
	}
	return fromsource.Maker{
		Platform: v1.Platform{OS: "linux", Architecture: "arm64"}, ToolsRootfs: tools.Name(), Certificates: []byte("certificates"),
		Program: func(name string) (string, error) {
			file := filepath.Join(folder, name)
			return file, os.WriteFile(file, []byte(name), 0o600)
		},
	}
}

// made is what an image starts and holds.
type made struct {
	v1.Config
	files map[string]*tar.Header
	data  map[string]string
}

// look reads an image as a container would see it.
func look(t *testing.T, image v1.Image, err error) made {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != "arm64" {
		t.Errorf("it is for %s/%s", config.OS, config.Architecture)
	}
	out := made{config.Config, map[string]*tar.Header{}, map[string]string{}}
	contents := mutate.Extract(image)
	defer contents.Close()
	for reader := tar.NewReader(contents); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(header.Name, "./"), "/")
		out.files[name], out.data[name] = header, string(data)
	}
}

// program returns what an absolute path runs: the contents of the file that it is,
// or that links lead to.
func (m made) program(name string) (string, error) {
	at := strings.TrimPrefix(name, "/")
	for range 10 {
		folder, rest := "", ""
		for part := range strings.SplitSeq(at, "/") { // the first link on the way
			folder = path.Join(folder, part)
			if header := m.files[folder]; header != nil && header.Typeflag == tar.TypeSymlink {
				rest = strings.TrimPrefix(strings.TrimPrefix(at, folder), "/")
				target := header.Linkname
				if !path.IsAbs(target) {
					target = path.Join(path.Dir(folder), target)
				}
				at = strings.TrimPrefix(path.Join(target, rest), "/")
				folder = ""
				break
			}
		}
		if folder != "" {
			header := m.files[at]
			if header == nil || header.Typeflag != tar.TypeReg || header.Mode&0o111 != 0o111 {
				return "", fmt.Errorf("%s leads to %s, which no user can run", name, at)
			}
			return m.data[at], nil
		}
	}
	return "", fmt.Errorf("%s leads nowhere", name)
}

// checkStatic looks at what every image of one static program has.
func (m made) checkStatic(t *testing.T) {
	t.Helper()
	if m.data["etc/ssl/certs/ca-certificates.crt"] != "certificates" {
		t.Error("it has no CA certificates where Go looks for them")
	}
	if tmp := m.files["tmp"]; tmp == nil || tmp.Mode != 0o1777 {
		t.Errorf("/tmp is %+v", tmp)
	}
	if !strings.Contains(m.data["etc/passwd"], "\nnonroot:x:65532:65532:") || !strings.Contains(m.data["etc/group"], "\nnonroot:x:65532:") {
		t.Errorf("its users are %q, its groups %q", m.data["etc/passwd"], m.data["etc/group"])
	}
}

func TestTheRegistryIsConfiguredForTheDemo(t *testing.T) {
	image, err := maker(t).Make(fromsource.Registry)
	got := look(t, image, err)
	got.checkStatic(t)
	if len(got.Entrypoint) != 3 || got.Entrypoint[1] != "serve" || got.User != "" {
		t.Fatalf("it starts %q as %q", got.Entrypoint, got.User)
	}
	if program, err := got.program(got.Entrypoint[0]); program != "registry" {
		t.Errorf("it starts %q, %v", program, err)
	}
	var config struct {
		Storage struct {
			Filesystem struct{ Rootdirectory string }
			Delete     struct{ Enabled bool }
		}
		HTTP struct{ Addr string }
	}
	if err := yaml.Unmarshal([]byte(got.data[strings.TrimPrefix(got.Entrypoint[2], "/")]), &config); err != nil {
		t.Fatal(err)
	}
	// The demo mounts a volume there, as one does with the published image, and
	// asks port 5000.
	if config.Storage.Filesystem.Rootdirectory != "/var/lib/registry" || config.HTTP.Addr != ":5000" || !config.Storage.Delete.Enabled {
		t.Errorf("its configuration is %+v", config)
	}
}

func TestTheS3ServerRunsAsAUserOfItsOwn(t *testing.T) {
	image, err := maker(t).Make(fromsource.S3)
	got := look(t, image, err)
	got.checkStatic(t)
	if got.User != "1000:1000" || len(got.Entrypoint) != 1 {
		t.Fatalf("it starts %q as %q", got.Entrypoint, got.User)
	}
	if program, err := got.program(got.Entrypoint[0]); program != "versitygw" {
		t.Errorf("it starts %q, %v", program, err)
	}
	// The demo's manifest names the program, since the published image's
	// entrypoint is a shell script.
	manifest, err := os.ReadFile("../manifests/s3-deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`command: \["?([^"\]]+)"?`).FindSubmatch(manifest)
	if command == nil || string(command[1]) != got.Entrypoint[0] {
		t.Errorf("the manifest's command is %q, the image's %q", command, got.Entrypoint[0])
	}
}

func TestTheShellHasBusyboxAsSh(t *testing.T) {
	image, err := maker(t).Make(fromsource.Shell)
	got := look(t, image, err)
	if len(got.Entrypoint) != 1 || got.Entrypoint[0] != "/bin/sh" {
		t.Fatalf("it starts %q", got.Entrypoint)
	}
	if program, err := got.program("/bin/sh"); program != "tool" {
		t.Errorf("/bin/sh runs %q, %v", program, err)
	}
}

func releases(t *testing.T) []tekton.Release {
	t.Helper()
	var out []tekton.Release
	for _, module := range []string{tekton.PipelinesModule, tekton.TriggersModule} {
		found, err := gomodule.Find(t.Context(), "go", "../../../scripts/components/cluster", module)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, tekton.Release{Module: found.Path, Version: found.Version, FS: found.FS()})
	}
	return out
}

func TestTektonsImagesAreOfProgramsThatAreBuilt(t *testing.T) {
	importPaths, err := tekton.Images(releases(t)...)
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]string{}
	for _, module := range component.Modules() {
		for _, program := range module.Programs {
			packages[program.Name] = program.Package
		}
	}
	m := maker(t)
	for _, importPath := range importPaths {
		name := fromsource.ProgramName(importPath)
		if packages[name] != importPath {
			t.Errorf("image %s is of program %s, which is built of %q", importPath, name, packages[name])
		}
		image, err := m.Tekton(importPath)
		got := look(t, image, err)
		// As ko lays it out.
		if want := []string{"/ko-app/" + path.Base(importPath)}; !cmp.Equal(got.Entrypoint, want) || got.User != "65532:65532" {
			t.Errorf("%s starts %q as %q", importPath, got.Entrypoint, got.User)
		}
		if program, err := got.program(got.Entrypoint[0]); program != name {
			t.Errorf("%s starts %q, %v", importPath, program, err)
		}
		if path.Base(importPath) != "resolvers" {
			got.checkStatic(t)
		}
	}
}

func TestTektonsManifestsNamePathsThatTheImagesHave(t *testing.T) {
	paths := regexp.MustCompile(`["\s](/(?:ko-app|sbin)/[a-z]+)["\s]`)
	m := maker(t)
	found := 0
	for _, release := range releases(t) {
		err := fs.WalkDir(release.FS, "config", func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path.Ext(file) != ".yaml" {
				return err
			}
			data, err := fs.ReadFile(release.FS, file)
			if err != nil {
				return err
			}
			for _, match := range paths.FindAllStringSubmatch(string(data), -1) {
				name := match[1]
				importPath := release.Module + "/cmd/" + path.Base(name)
				if strings.HasPrefix(name, "/sbin/") {
					importPath = fromsource.GitImportPath
				}
				image, err := m.Tekton(importPath)
				if _, err := look(t, image, err).program(name); err != nil {
					t.Errorf("%s: %v", file, err)
				}
				found++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 2 { // tini and the resolvers, of the pinned version
		t.Errorf("%d paths in the manifests", found)
	}
}

func TestTheResolversHaveGitAndAHome(t *testing.T) {
	m := maker(t)
	image, err := m.Tekton(fromsource.GitImportPath)
	got := look(t, image, err)
	if program, err := got.program("/usr/bin/git"); program != "tool" {
		t.Errorf("git is %q, %v", program, err)
	}
	home := got.files["home/nonroot"]
	if home == nil || home.Uid != 65532 || home.Gid != 65532 || home.Mode != 0o700 || !cmp.Equal(got.Env[len(got.Env)-1], "HOME=/home/nonroot") {
		t.Errorf("home is %+v, variables are %q", home, got.Env)
	}
}

func TestProgramName(t *testing.T) {
	for importPath, want := range map[string]string{
		"github.com/tektoncd/pipeline/cmd/controller": "pipeline-controller",
		"github.com/tektoncd/triggers/cmd/webhook":    "triggers-webhook",
	} {
		if got := fromsource.ProgramName(importPath); got != want {
			t.Errorf("%s: %s, want %s", importPath, got, want)
		}
	}
}

func TestMakeFails(t *testing.T) {
	missing := func(name string) (string, error) { return "", errors.New("no program " + name) }
	tests := map[string]struct {
		image  string
		change func(*fromsource.Maker)
		want   string
	}{
		"an image that is none":     {"nginx", func(*fromsource.Maker) {}, "no image is called nginx"},
		"a registry without one":    {fromsource.Registry, func(m *fromsource.Maker) { m.Program = missing }, "no program registry"},
		"a program that went away":  {fromsource.S3, func(m *fromsource.Maker) { m.Program = func(string) (string, error) { return "no/versitygw", nil } }, "no/versitygw"},
		"a shell without tools":     {fromsource.Shell, func(m *fromsource.Maker) { m.ToolsRootfs = "no/tools.tar" }, "no/tools.tar"},
		"a git server without them": {fromsource.GitImportPath, func(m *fromsource.Maker) { m.ToolsRootfs = "no/tools.tar" }, "no/tools.tar"},
		"and without its program":   {fromsource.GitImportPath, func(m *fromsource.Maker) { m.Program = missing }, "no program pipeline-resolvers"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := maker(t)
			test.change(&m)
			made := m.Make
			if test.image == fromsource.GitImportPath {
				made = m.Tekton
			}
			_, err := made(test.image)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestDefaultCertificatesAreCertificates(t *testing.T) {
	data, err := fromsource.DefaultCertificates()
	if err != nil {
		t.Fatal(err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(data) {
		t.Error("no certificate in them")
	}
}
