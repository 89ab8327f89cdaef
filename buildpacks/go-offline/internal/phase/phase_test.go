package phase

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/buildpacks/lifecycle/api"
	"github.com/buildpacks/lifecycle/buildpack"
	"github.com/google/go-cmp/cmp"

	gooffline "github.com/trainyard/trainyard/buildpacks/go-offline"
	"github.com/trainyard/trainyard/internal/gosbom"
)

const program = "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(version) }\n\nvar version string\n"

// start makes a source directory and the directory of layers, and returns what
// the lifecycle would give to the buildpack.
func start(t *testing.T, files map[string]string, env ...string) (Context, *strings.Builder) {
	t.Helper()
	app, layers := t.TempDir(), t.TempDir()
	for name, text := range files {
		file := filepath.Join(app, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// A warm cache of compiled packages, as a second build of an image has it.
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(strings.TrimSpace(string(cache)), filepath.Join(layers, cacheLayer)); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home(t), "GOPROXY=off", "CNB_LAYERS_DIR=" + layers, "CGO_ENABLED=0"}, env...)
	return Context{AppDir: app, Env: env, Descriptor: gooffline.Descriptor(), Out: &out}, &out
}

// home is a home directory where Go counts nothing: what it starts for that may write
// there when the test has ended.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	telemetry := filepath.Join(dir, ".config", "go", "telemetry")
	if err := os.MkdirAll(telemetry, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(telemetry, "mode"), []byte("off"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDetect(t *testing.T) {
	module := map[string]string{"go.mod": "module example.com/m\ngo 1.25\n", "cmd/x/main.go": program}
	for name, c := range map[string]struct {
		files map[string]string
		env   []string
		want  int
		says  string
	}{
		"a module":                  {module, nil, ExitOK, "builds [./cmd/x]"},
		"not Go":                    {map[string]string{"main.py": ""}, nil, ExitPass, "no Go files"},
		"a target is wrong":         {module, []string{"BP_GO_TARGETS=./cmd/y"}, ExitError, "BP_GO_TARGETS"},
		"Go that is to come":        {map[string]string{"go.mod": "module m\ngo 1.99.1\n", "main.go": program}, nil, ExitError, "go.mod needs Go 1.99.1, the builder has go1."},
		"so in a module below":      {map[string]string{"a/go.mod": "module m\ngo 1.99.1\n", "a/main.go": program}, []string{"BP_GO_WORK_USE=a", "BP_GO_TARGETS=a"}, ExitError, "a/go.mod needs Go 1.99.1"},
		"BP_GO_VERSION not met":     {module, []string{"BP_GO_VERSION=1.11.*"}, ExitError, "BP_GO_VERSION asks for Go 1.11.*, the builder has go1."},
		"no module":                 {map[string]string{"main.go": program}, nil, ExitError, "no go.mod"},
		"a setting that is ignored": {module, []string{"BP_GO_BUILD_IMPORT_PATH=x"}, ExitOK, "builds"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, out := start(t, c.files, c.env...)
			if got := Detect(t.Context(), ctx); got != c.want || !strings.Contains(out.String(), c.says) {
				t.Errorf("exit code %d, want %d, output %q, want %q", got, c.want, out, c.says)
			}
		})
	}
}

func TestBuild(t *testing.T) {
	ctx, out := start(t, map[string]string{
		"go.mod": "module example.com/m\ngo 1.25\n", "cmd/x/main.go": program, "cmd/y/main.go": program,
		"assets/a.txt": "a", "secret.txt": "s",
	},
		"BP_GO_TARGETS=./cmd/y:./cmd/x", "BP_KEEP_FILES=assets/*", "BP_GO_BUILD_FLAGS=-buildmode=default -buildvcs=false",
		"BP_GO_BUILD_LDFLAGS=-X main.version=v9", "BP_OCI_TITLE=The x")
	if code := Build(t.Context(), ctx); code != ExitOK {
		t.Fatalf("exit code %d: %s", code, out)
	}
	layers, _ := ctx.lookup("CNB_LAYERS_DIR")

	if said, err := exec.CommandContext(t.Context(), filepath.Join(layers, "targets/bin/x")).Output(); err != nil || string(said) != "v9" {
		t.Errorf("the program says %q, error %v", said, err)
	}
	// The lifecycle's own types read what was written.
	var launch buildpack.LaunchTOML
	if err := buildpack.DecodeLaunchTOML(filepath.Join(layers, "launch.toml"), "0.10", &launch); err != nil {
		t.Fatal(err)
	}
	type proc struct {
		Type, Command string
		Default       bool
	}
	var processes []proc
	for _, p := range launch.Processes {
		p := p.ToLaunchProcess("trainyard/go-offline")
		processes = append(processes, proc{p.Type, strings.Join(p.Command.Entries, " "), p.Default})
	}
	want := []proc{{"y", layers + "/targets/bin/y", true}, {"x", layers + "/targets/bin/x", false}}
	if d := cmp.Diff(want, processes); d != "" {
		t.Errorf("processes: -want +got\n%s", d)
	}
	if d := cmp.Diff([]buildpack.Label{{Key: "org.opencontainers.image.title", Value: "The x"}}, launch.Labels); d != "" {
		t.Errorf("labels: -want +got\n%s", d)
	}
	for name, want := range map[string]layerTypes{"targets": {Launch: true}, "gocache": {Cache: true}, "mod-cache": {Cache: true}} {
		var got layerTOML
		if _, err := toml.DecodeFile(filepath.Join(layers, name+".toml"), &got); err != nil || got.Types != want {
			t.Errorf("layer %s is %+v, want %+v, error %v", name, got.Types, want, err)
		}
	}
	for _, name := range []string{"targets", "launch"} {
		data, err := os.ReadFile(filepath.Join(layers, name+".sbom.cdx.json"))
		if err != nil || !strings.Contains(string(data), `"name": "example.com/m"`) {
			t.Errorf("bill of materials of %s: %v\n%s", name, err, data)
		}
	}
	// Only what is to be kept is left of the source.
	entries, err := os.ReadDir(ctx.AppDir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "assets" || !strings.Contains(out.String(), "removed 3 files") {
		t.Errorf("left of the source: %v, error %v, output %s", entries, err, out)
	}
}

func TestBuildIsReproducible(t *testing.T) {
	files := map[string]string{"go.mod": "module example.com/m\ngo 1.25\n", "main.go": program}
	build := func() map[string]string {
		ctx, out := start(t, files, "BP_GO_BUILD_FLAGS=-buildmode=default -trimpath -buildvcs=false")
		if code := Build(t.Context(), ctx); code != ExitOK {
			t.Fatalf("exit code %d: %s", code, out)
		}
		layers, _ := ctx.lookup("CNB_LAYERS_DIR")
		got := map[string]string{}
		for _, name := range []string{"targets/bin/m", "targets.sbom.cdx.json", "launch.sbom.cdx.json", "targets.toml", "launch.toml"} {
			data, err := os.ReadFile(filepath.Join(layers, name))
			if err != nil {
				t.Fatal(err)
			}
			got[name] = strings.ReplaceAll(string(data), layers, "/layers")
		}
		return got
	}
	a, b := build(), build()
	for name := range a {
		if a[name] != b[name] {
			t.Errorf("%s differs between two directories", name)
		}
	}
}

// A volume with fsGroup has the set-group-ID bit, and directories inherit it.
func TestBuildLeavesNoTraceOfTheVolume(t *testing.T) {
	ctx, out := start(t, map[string]string{"go.mod": "module example.com/m\ngo 1.25\n", "main.go": program}, "BP_GO_BUILD_FLAGS=-buildmode=default -buildvcs=false")
	layers, _ := ctx.lookup("CNB_LAYERS_DIR")
	if err := os.Chmod(layers, 0o777|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	if code := Build(t.Context(), ctx); code != ExitOK {
		t.Fatalf("exit code %d: %s", code, out)
	}
	for _, dir := range []string{"targets", "targets/bin"} {
		if info, err := os.Stat(filepath.Join(layers, dir)); err != nil || info.Mode() != os.ModeDir|0o755 {
			t.Errorf("%s has mode %v, error %v", dir, info.Mode(), err)
		}
	}
}

func TestBuildWarnsOfAProgramThatNeedsALinker(t *testing.T) {
	// Paketo's default, which does not start on an empty run image.
	ctx, out := start(t, map[string]string{"go.mod": "module example.com/m\ngo 1.25\n", "main.go": program}, "BP_GO_BUILD_FLAGS=-buildvcs=false")
	if code := Build(t.Context(), ctx); code != ExitOK || !strings.Contains(out.String(), "warning: m needs /lib") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestBuildThatFailsLeavesTheSource(t *testing.T) {
	ctx, out := start(t, map[string]string{"go.mod": "module example.com/m\ngo 1.25\n", "main.go": "package main\n"})
	if code := Build(t.Context(), ctx); code != ExitError || !strings.Contains(out.String(), "error: go build") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if _, err := os.Stat(filepath.Join(ctx.AppDir, "main.go")); err != nil {
		t.Error(err)
	}
	layers, _ := ctx.lookup("CNB_LAYERS_DIR")
	if _, err := os.Stat(filepath.Join(layers, "launch.toml")); err == nil {
		t.Error("launch.toml was written")
	}
}

func TestBuildOutsideOfALifecycle(t *testing.T) {
	ctx, out := start(t, map[string]string{"go.mod": "module m\n", "main.go": program}, "CNB_LAYERS_DIR=")
	if code := Build(t.Context(), ctx); code != ExitError || !strings.Contains(out.String(), "CNB_LAYERS_DIR") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// What the program writes must be what the descriptor promises, in a version of
// the API that the lifecycle knows.
func TestDescriptor(t *testing.T) {
	var d struct {
		API       string
		Buildpack struct {
			ID, Version string
			Formats     []string `toml:"sbom-formats"`
		}
	}
	if _, err := toml.Decode(gooffline.Descriptor(), &d); err != nil {
		t.Fatal(err)
	}
	if d.API != "0.10" || !api.Buildpack.IsSupported(api.MustParse(d.API)) {
		t.Errorf("the lifecycle does not know API %s", d.API)
	}
	if d.Buildpack.ID != "trainyard/go-offline" || d.Buildpack.Version == "" || !cmp.Equal(d.Buildpack.Formats, []string{gosbom.MediaType}) {
		t.Errorf("descriptor %+v", d.Buildpack)
	}
}
