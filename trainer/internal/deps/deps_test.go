package deps

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const moduleRoot = "../.."

// allowed are the modules that the trainer may link. Adding one is a decision:
// its code goes into every image, and its `go` line bounds the toolchains that
// build ours.
var allowed = []string{
	"github.com/aws/aws-sdk-go-v2",
	"github.com/aws/smithy-go",
	"github.com/klauspost/compress",
	"github.com/spf13/cobra",
	"github.com/spf13/pflag",
	"go.yaml.in/yaml/v3",
	"golang.org/x/sys",
	"golang.org/x/term",
	"golang.org/x/text",
}

// forbidden are modules that may not even be in the module graph's direct part,
// tests included, with the reason.
var forbidden = map[string]string{
	"github.com/tektoncd":                    "the platform is the root module's matter",
	"k8s.io":                                 "the platform is the root module's matter",
	"sigs.k8s.io":                            "the platform is the root module's matter",
	"github.com/docker":                      "images are the root module's matter",
	"github.com/moby":                        "images are the root module's matter",
	"github.com/google/go-containerregistry": "images are the root module's matter",
	"github.com/buildpacks":                  "builds are the root module's matter",
	"gonum.org/v1/gonum":                     "the trainer has kernels of its own",
	"gorgonia.org":                           "the trainer has kernels of its own",
	"github.com/gomlx":                       "the trainer has kernels of its own",
	"github.com/mmcloughlin/avo":             "the generator is a module of its own: internal/kernel/gen",
	"google.golang.org/grpc":                 "the trainer speaks plain HTTP",
}

// within reports whether path is root or below it.
func within(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

// goTool runs the go command in the module's root.
func goTool(t *testing.T, env []string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = moduleRoot
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, stderr.Bytes())
	}
	return out
}

// listed is the part of `go list -json` that is used here.
type listed struct {
	ImportPath string
	Standard   bool
	CgoFiles   []string
	CFiles     []string
	Module     *struct{ Path string }
}

// list returns the packages that go list prints.
func list(t *testing.T, args ...string) []listed {
	t.Helper()
	out := goTool(t, []string{"CGO_ENABLED=1"}, append([]string{"list", "-json=ImportPath,Standard,CgoFiles,CFiles,Module"}, args...)...)
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// self returns the path of the trainer's module.
func self(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(string(goTool(t, nil, "list", "-m")))
}

func TestLinkedModulesAreAllowed(t *testing.T) {
	own := self(t)
	packages := list(t, "-deps", "./...")
	if len(packages) < 50 {
		t.Fatalf("only %d packages listed: the test looks in the wrong place", len(packages))
	}
	for _, p := range packages {
		if p.Standard || p.Module == nil || p.Module.Path == own {
			continue
		}
		if !slices.ContainsFunc(allowed, func(a string) bool { return within(p.Module.Path, a) }) {
			t.Errorf("package %s of module %s is linked but not in this test's list of allowed modules", p.ImportPath, p.Module.Path)
		}
	}
}

func TestForbiddenModulesAreAbsent(t *testing.T) {
	for _, p := range list(t, "-deps", "-test", "./...") {
		for module, why := range forbidden {
			if within(p.ImportPath, module) {
				t.Errorf("%s is used: %s", p.ImportPath, why)
			}
		}
	}
	var mod struct {
		Require []struct{ Path string }
	}
	if err := json.Unmarshal(goTool(t, nil, "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	for _, r := range mod.Require {
		for module, why := range forbidden {
			if within(r.Path, module) {
				t.Errorf("go.mod requires %s: %s", r.Path, why)
			}
		}
	}
}

func TestNothingNeedsC(t *testing.T) {
	for _, p := range list(t, "-deps", "./...") {
		if !p.Standard && len(p.CgoFiles)+len(p.CFiles) > 0 {
			t.Errorf("%s has C: %v %v", p.ImportPath, p.CgoFiles, p.CFiles)
		}
	}
}

func TestGoModBuildsWithEverySupportedGo(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(moduleRoot, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	// Buildpacks build offline with the toolchain that they ship.
	if got := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(data); got == nil || string(got[1]) != "1.25.0" {
		t.Errorf("go.mod does not say go 1.25.0: %q", got)
	}
	for _, directive := range []string{"toolchain", "replace"} {
		if regexp.MustCompile(`(?m)^` + directive + `\b`).Match(data) {
			t.Errorf("go.mod has a %s directive", directive)
		}
	}
}
