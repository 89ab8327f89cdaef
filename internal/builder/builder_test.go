package builder

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	gooffline "github.com/trainyard/trainyard/buildpacks/go-offline"
	"github.com/trainyard/trainyard/internal/builder/fileset"
	"github.com/trainyard/trainyard/internal/builder/lifecycle"
	"github.com/trainyard/trainyard/internal/builderimage"
	"github.com/trainyard/trainyard/internal/buildtest"
	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/registryclient"
)

func write(t *testing.T, file, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return file
}

// fakes makes everything that a builder is made of, small: a lifecycle that knows
// its version, packages, a toolchain. The bytes are the same each time.
func fakes(t *testing.T, r *buildtest.Registry) Options {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "src/go.mod"), "module example.com/lifecycle\ngo 1.25\n", 0o644)
	write(t, filepath.Join(dir, "src/main.go"), "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"0.21.17\\n\") }\n", 0o644)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(dir, "lifecycle"), ".")
	cmd.Dir = filepath.Join(dir, "src")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, text := range map[string]string{
		"VERSION": "go1.26.8\n", "LICENSE": "l", "bin/go": "go", "src/fmt/print.go": "fmt",
		"pkg/tool/linux_amd64/compile": "c", "pkg/tool/linux_amd64/link": "l", "pkg/tool/linux_amd64/asm": "a", "pkg/tool/linux_amd64/cgo": "c",
	} {
		write(t, filepath.Join(dir, "go", name), text, 0o755)
	}
	file := func(text string) fileset.Entry { return fileset.File([]byte(text)) }
	packages, err := os.Create(filepath.Join(dir, "packages.tar"))
	if err != nil {
		t.Fatal(err)
	}
	if err := (fileset.Set{
		"usr/lib/os-release": file("ID=debian\nVERSION_ID=\"13\"\n"), "usr/bin/busybox": {Mode: 0o755, Data: []byte("b")},
		"usr/share/zoneinfo/UTC": file("utc"), "usr/share/ca-certificates/mozilla/A.crt": file("cert A"),
	}).WriteTar(packages); err != nil {
		t.Fatal(err)
	}
	if err := packages.Close(); err != nil {
		t.Fatal(err)
	}
	return Options{
		Repository: r.Host + "/trainyard",
		Registry:   r.Client,
		Lifecycle:  lifecycle.Programs{Lifecycle: filepath.Join(dir, "lifecycle"), Launcher: filepath.Join(dir, "lifecycle")},
		Buildpack:  write(t, filepath.Join(dir, "go-offline"), "the buildpack", 0o755),
		GoRoot:     filepath.Join(dir, "go"),
		Cache:      filepath.Join(dir, "cache"),
		Mmdebstrap: write(t, filepath.Join(dir, "mmdebstrap"), fmt.Sprintf("#!/bin/sh\nfor a; do target=$last; last=$a; done\ncp %s \"$target\"\n", packages.Name()), 0o755),
	}
}

func platform() v1.Platform { return v1.Platform{OS: "linux", Architecture: "amd64"} }

func pulled(t *testing.T, r *buildtest.Registry, name string) (v1.Image, *v1.ConfigFile) {
	t.Helper()
	ref, err := r.Client.Reference(name)
	if err != nil {
		t.Fatal(err)
	}
	img, config, err := r.Client.Config(t.Context(), ref, platform())
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	return img, config
}

func TestCreate(t *testing.T) {
	registry := buildtest.NewRegistry(t)
	r, err := Create(t.Context(), fakes(t, registry))
	if err != nil {
		t.Fatal(err)
	}
	if r.Cached || r.Go != "go1.26.8" || r.Lifecycle != "0.21.17" || !strings.HasPrefix(r.Builder, registry.Host+"/trainyard/builder@sha256:") || !strings.HasPrefix(r.Run, registry.Host+"/trainyard/run@sha256:") {
		t.Errorf("result %+v", r)
	}

	// What a build asks of a builder.
	ref, err := registry.Client.Reference(r.Builder)
	if err != nil {
		t.Fatal(err)
	}
	b, err := builderimage.Inspect(t.Context(), registry.Client, ref, platform())
	if err != nil {
		t.Fatal(err)
	}
	if b.UID != 1001 || b.GID != 1000 || b.Extensions || b.Lifecycle != "0.21.17" || b.PlatformAPIs[len(b.PlatformAPIs)-1] != "0.15" {
		t.Errorf("builder %+v", b)
	}
	if d := cmp.Diff([]builderimage.RunImage{{Image: r.Run}}, b.RunImages); d != "" {
		t.Errorf("run images: -want +got\n%s", d)
	}
	var descriptor struct{ Buildpack struct{ ID, Version string } }
	if _, err := toml.Decode(gooffline.Descriptor(), &descriptor); err != nil {
		t.Fatal(err)
	}
	id, version := descriptor.Buildpack.ID, descriptor.Buildpack.Version
	if d := cmp.Diff([]builderimage.Group{{Group: []builderimage.Ref{{ID: id, Version: version}}}}, b.Order); d != "" {
		t.Errorf("order: -want +got\n%s", d)
	}
	if d := cmp.Diff([]builderimage.Buildpack{{ID: id, Version: version, API: "0.10"}}, b.Buildpacks); d != "" {
		t.Errorf("buildpacks: -want +got\n%s", d)
	}
	if d := cmp.Diff([]string{"1.26.8"}, b.Go); d != "" {
		t.Errorf("Go versions: -want +got\n%s", d)
	}

	img, config := pulled(t, registry, r.Builder)
	for label, want := range map[string]string{LabelGo: "go1.26.8", LabelKey: r.Key, "io.buildpacks.base.distro.name": "debian", "io.buildpacks.base.distro.version": "13"} {
		if config.Config.Labels[label] != want {
			t.Errorf("label %s=%q, want %q", label, config.Config.Labels[label], want)
		}
	}
	var metadata struct {
		Lifecycle struct{ Version string }
	}
	if err := json.Unmarshal([]byte(config.Config.Labels["io.buildpacks.builder.metadata"]), &metadata); err != nil || metadata.Lifecycle.Version != "0.21.17" {
		t.Errorf("metadata %+v, %v", metadata, err)
	}
	files := mutate.Extract(img)
	defer files.Close()
	set, err := fileset.ReadTar(files, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	bin := "cnb/buildpacks/" + strings.ReplaceAll(id, "/", "_") + "/" + version + "/bin/"
	if string(set[bin+"build"].Data) != "the buildpack" || set[bin+"build"].Mode != 0o755 || set[bin+"detect"].Link != "build" {
		t.Errorf("executables %+v, %+v", set[bin+"build"], set[bin+"detect"])
	}
	for _, phase := range []string{"creator", "analyzer", "detector", "restorer", "builder", "exporter"} {
		if set["cnb/lifecycle/"+phase].Link == "" {
			t.Errorf("no phase %s", phase)
		}
	}
	if string(set["usr/local/go/bin/go"].Data) != "go" {
		t.Error("no Go toolchain")
	}

	_, run := pulled(t, registry, r.Run)
	if run.Config.User != "1002:1000" {
		t.Errorf("run image: user %q", run.Config.User)
	}
}

func TestCreateTwice(t *testing.T) {
	registry := buildtest.NewRegistry(t)
	first, err := Create(t.Context(), fakes(t, registry))
	if err != nil {
		t.Fatal(err)
	}
	again := fakes(t, registry) // in another directory
	before := registry.Writes()
	second, err := Create(t.Context(), again)
	if err != nil {
		t.Fatal(err)
	}
	if !second.Cached || second.Builder != first.Builder || second.Run != first.Run || registry.Writes() != before {
		t.Errorf("first %+v, second %+v, %d writes", first, second, registry.Writes()-before)
	}
	again.Force = true
	forced, err := Create(t.Context(), again)
	if err != nil {
		t.Fatal(err)
	}
	if forced.Cached || forced.Builder != first.Builder {
		t.Errorf("made again: %+v, want the digest of %+v", forced, first)
	}
}

func TestEveryInputIsPartOfTheKey(t *testing.T) {
	registry := buildtest.NewRegistry(t)
	keys := map[string]string{}
	for name, change := range map[string]func(t *testing.T, o *Options){
		"nothing":   func(*testing.T, *Options) {},
		"buildpack": func(t *testing.T, o *Options) { write(t, o.Buildpack, "another", 0o755) },
		"launcher": func(t *testing.T, o *Options) {
			// Still a program: its bill of materials is read.
			data, err := os.ReadFile(o.Lifecycle.Lifecycle)
			if err != nil {
				t.Fatal(err)
			}
			o.Lifecycle.Launcher = write(t, o.Lifecycle.Launcher+"2", string(data)+"2", 0o755)
		},
		"toolchain": func(t *testing.T, o *Options) { write(t, filepath.Join(o.GoRoot, "bin/go"), "another", 0o755) },
		"version":   func(t *testing.T, o *Options) { write(t, filepath.Join(o.GoRoot, "VERSION"), "go1.26.9\n", 0o644) },
		"packages": func(t *testing.T, o *Options) {
			data, err := os.ReadFile(o.Mmdebstrap)
			if err != nil {
				t.Fatal(err)
			}
			from := filepath.Join(filepath.Dir(o.Mmdebstrap), "packages.tar")
			tar, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			write(t, from, strings.Replace(string(tar), "cert A", "cert B", 1), 0o644)
			write(t, o.Mmdebstrap, string(data), 0o755)
		},
	} {
		o := fakes(t, registry)
		change(t, &o)
		r, err := Create(t.Context(), o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if other, ok := keys[r.Key]; ok {
			t.Errorf("%s and %s have one key", name, other)
		}
		keys[r.Key] = name
	}
}

func TestCreateMakesAgainWhatLacksItsRunImage(t *testing.T) {
	registry := buildtest.NewRegistry(t)
	o := fakes(t, registry)
	first, err := Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	_, digest, _ := strings.Cut(first.Run, "@")
	gone := true
	registry.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			gone = false
		}
		if gone && strings.HasSuffix(r.URL.Path, "/manifests/"+digest) {
			w.WriteHeader(http.StatusNotFound)
			return true
		}
		return false
	}
	second, err := Create(t.Context(), o)
	if err != nil || second.Cached || second.Builder != first.Builder {
		t.Errorf("%+v, %v", second, err)
	}
}

func TestCreateRefuses(t *testing.T) {
	registry := buildtest.NewRegistry(t)
	for name, c := range map[string]struct {
		change func(t *testing.T, o *Options)
		code   int
		says   string
	}{
		"repository":    {func(_ *testing.T, o *Options) { o.Repository = "UPPER/case" }, exitcode.Usage, "repository"},
		"no lifecycle":  {func(_ *testing.T, o *Options) { o.Lifecycle.Lifecycle = "/nowhere/lifecycle" }, exitcode.BadInput, "/nowhere/lifecycle"},
		"no launcher":   {func(_ *testing.T, o *Options) { o.Lifecycle.Launcher = "/nowhere/launcher" }, exitcode.BadInput, "/nowhere/launcher"},
		"no program":    {func(t *testing.T, o *Options) { o.Buildpack = write(t, o.Buildpack+"2", "x", 0o644) }, exitcode.BadInput, "is no program"},
		"no toolchain":  {func(t *testing.T, o *Options) { o.GoRoot = t.TempDir() }, exitcode.BadInput, "no Go toolchain"},
		"no cache":      {func(_ *testing.T, o *Options) { o.Cache = "" }, exitcode.Usage, "cache"},
		"not listed":    {func(t *testing.T, o *Options) { o.Registry, _ = registryclient.New(registryclient.Options{}) }, exitcode.Usage, "insecure"},
		"launcher in C": {func(t *testing.T, o *Options) { o.Lifecycle.Launcher = "/bin/sh" }, exitcode.Failed, "bill of materials"},
	} {
		t.Run(name, func(t *testing.T) {
			o := fakes(t, registry)
			c.change(t, &o)
			r, err := Create(t.Context(), o)
			if err == nil || exitcode.Of(err) != c.code || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("result %+v, error %v (code %d), want %q (code %d)", r, err, exitcode.Of(err), c.says, c.code)
			}
			ref, err := registry.Client.Reference(o.Repository + "/builder:x")
			if err == nil {
				if _, err := registry.Client.Digest(t.Context(), ref); err == nil {
					t.Error("a builder was pushed")
				}
			}
		})
	}
}
