package gosbom

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// compile builds a program that depends on one module.
func compile(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                        "module example.com/m\ngo 1.25\nrequire example.com/Dep v1.2.3\n",
		"cmd/x/main.go":                 "package main\n\nimport _ \"example.com/Dep\"\n\nfunc main() {}\n",
		"vendor/modules.txt":            "# example.com/Dep v1.2.3\n## explicit\nexample.com/Dep\n",
		"vendor/example.com/Dep/dep.go": "package dep\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", dir+"/", "./cmd/x")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, "x")
}

func TestEncode(t *testing.T) {
	self := compile(t)
	data, err := Encode(Tool{"some/buildpack", "1.2.3"}, []string{self})
	if err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(data), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if bom.SpecVersion != cdx.SpecVersion1_5 || bom.SerialNumber != "" || bom.Metadata.Timestamp != "" {
		t.Errorf("version %v, serial number %q, time %q", bom.SpecVersion, bom.SerialNumber, bom.Metadata.Timestamp)
	}
	if tools := *bom.Metadata.Tools.Components; len(tools) != 1 || tools[0].Name != "some/buildpack" || tools[0].Version != "1.2.3" {
		t.Errorf("tools %+v", tools)
	}

	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(program)
	app := (*bom.Components)[0]
	if app.Type != cdx.ComponentTypeApplication || app.Name != "x" || app.Description != "example.com/m/cmd/x" || (*app.Hashes)[0].Value != hex.EncodeToString(sum[:]) {
		t.Errorf("application %+v", app)
	}
	got := map[string]string{}
	for _, c := range *bom.Components {
		got[c.Name] = c.PackageURL
	}
	if want := "pkg:golang/stdlib@" + strings.TrimPrefix(runtime.Version(), "go"); got["stdlib"] != want {
		t.Errorf("standard library is %q, want %q", got["stdlib"], want)
	}
	const dep = "pkg:golang/example.com/dep@v1.2.3"
	if got["example.com/Dep"] != dep {
		t.Errorf("the dependency is %q, want %q", got["example.com/Dep"], dep)
	}
	want := []string{dep, "pkg:golang/example.com/m", got["stdlib"]}
	if d := (*bom.Dependencies)[0]; d.Ref != app.BOMRef || !slices.Equal(*d.Dependencies, want) {
		t.Errorf("%s depends on %q, want %q", d.Ref, *d.Dependencies, want)
	}

	again, err := Encode(Tool{"some/buildpack", "1.2.3"}, []string{self})
	if err != nil || !bytes.Equal(data, again) {
		t.Errorf("a second time it differs: %v", err)
	}
}

func TestEncodeRefusesWhatIsNoGoProgram(t *testing.T) {
	if _, err := Encode(Tool{}, []string{"sbom_test.go"}); err == nil || !strings.Contains(err.Error(), "sbom_test.go") {
		t.Errorf("error %v", err)
	}
}

func TestModule(t *testing.T) {
	for name, c := range map[string]struct {
		m    debug.Module
		want string
	}{
		"released":                {debug.Module{Path: "example.com/A", Version: "v1.2.3"}, "pkg:golang/example.com/a@v1.2.3"},
		"plus sign":               {debug.Module{Path: "a.b/c", Version: "v2.0.0+incompatible"}, "pkg:golang/a.b/c@v2.0.0%2Bincompatible"},
		"replaced by another":     {debug.Module{Path: "a.b/c", Version: "v1.0.0", Replace: &debug.Module{Path: "d.e/f", Version: "v1.1.0"}}, "pkg:golang/d.e/f@v1.1.0"},
		"replaced by a directory": {debug.Module{Path: "a.b/c", Version: "v1.0.0", Replace: &debug.Module{Path: "../c", Version: "(devel)"}}, "pkg:golang/a.b/c"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := module(&c.m).PackageURL; got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
