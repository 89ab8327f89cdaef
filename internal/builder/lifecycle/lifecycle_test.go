package lifecycle

import (
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/builder/fileset"
)

// compile builds a program that prints a version, as the lifecycle does.
func compile(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	source := "package main\n\nimport \"os\"\n\nfunc main() {\n\tif os.Args[1] == \"-version\" {\n\t\tos.Stdout.WriteString(\"" + version + "\\n\")\n\t}\n}\n"
	for name, text := range map[string]string{"go.mod": "module example.com/lifecycle\ngo 1.25\n", "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", "lifecycle", ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, "lifecycle")
}

func TestArchive(t *testing.T) {
	program := compile(t, "v0.21.17+abc")
	file := filepath.Join(t.TempDir(), "lifecycle.tgz")
	version, err := Programs{program, program}.Archive(t.Context(), file)
	if err != nil || version != "0.21.17+abc" {
		t.Fatalf("version %q, error %v", version, err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	set, err := fileset.ReadTar(z, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	// The phases of https://github.com/buildpacks/spec/blob/main/platform.md.
	for _, phase := range []string{"analyzer", "builder", "creator", "detector", "exporter", "extender", "rebaser", "restorer"} {
		if set["lifecycle/"+phase].Link != "lifecycle" {
			t.Errorf("phase %s is %+v, want a link", phase, set["lifecycle/"+phase])
		}
	}
	for _, name := range []string{"lifecycle/lifecycle", "lifecycle/launcher"} {
		if e := set[name]; e.Mode != 0o755 || len(e.Data) == 0 {
			t.Errorf("%s: mode %v, %d bytes", name, e.Mode, len(e.Data))
		}
		if bom := string(set[name+".sbom.cdx.json"].Data); !strings.Contains(bom, "example.com/lifecycle") {
			t.Errorf("%s has the bill of materials %q", name, bom)
		}
	}
	var d struct {
		APIs struct {
			Platform, Buildpack struct{ Deprecated, Supported []string }
		}
		Lifecycle struct{ Version string }
	}
	if _, err := toml.Decode(string(set["lifecycle.toml"].Data), &d); err != nil {
		t.Fatal(err)
	}
	// From the release notes of lifecycle 0.21.
	if want := strings.Fields("0.7 0.8 0.9 0.10 0.11 0.12 0.13 0.14 0.15"); !cmp.Equal(d.APIs.Platform.Supported, want) {
		t.Errorf("platform APIs %v, want %v", d.APIs.Platform.Supported, want)
	}
	if want := strings.Fields("0.7 0.8 0.9 0.10 0.11 0.12"); !cmp.Equal(d.APIs.Buildpack.Supported, want) {
		t.Errorf("buildpack APIs %v, want %v", d.APIs.Buildpack.Supported, want)
	}
	if d.Lifecycle.Version != version {
		t.Errorf("version %q", d.Lifecycle.Version)
	}
}

func TestVersionRefuses(t *testing.T) {
	for name, c := range map[string]struct{ program, says string }{
		"a lifecycle without a stamp": {compile(t, "0.0.0"), "-ldflags"},
		"another program":             {compile(t, "usage: x"), `"usage: x"`},
		"no program":                  {"/nowhere/lifecycle", "/nowhere/lifecycle"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Programs{Lifecycle: c.program}.Version(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("version %q, error %v, want %q", got, err, c.says)
			}
		})
	}
}

func TestCheckVersion(t *testing.T) {
	info := func(version string, replace *debug.Module) *debug.BuildInfo {
		return &debug.BuildInfo{Deps: []*debug.Module{{Path: "example.com/x", Version: "v9"}, {Path: "github.com/buildpacks/lifecycle", Version: version, Replace: replace}}}
	}
	for name, c := range map[string]struct {
		info *debug.BuildInfo
		fits bool
	}{
		"same version":      {info("v0.21.17", nil), true},
		"another version":   {info("v0.21.16", nil), false},
		"replaced by ours":  {info("v0.21.16", &debug.Module{Version: "v0.21.17"}), true},
		"no record":         {nil, true},
		"not in the record": {&debug.BuildInfo{}, true},
	} {
		if err := CheckVersion(c.info, "0.21.17+abc"); (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}
