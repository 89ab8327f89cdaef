package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/project"
	"github.com/trainyard/trainyard/internal/source"
)

const root = "../.."

func trainerProject(t *testing.T) (*project.Project, string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "project.toml"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := project.Parse(text, "project.toml")
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Warnings) > 0 {
		t.Errorf("warnings %q", p.Warnings)
	}
	return p, string(text)
}

// The truth is what Go says it compiles: every file of the trainer's own module that
// the program needs must be selected.
func TestTheTrainersDescriptorSelectsWhatGoCompiles(t *testing.T) {
	p, _ := trainerProject(t)
	f, err := source.NewFilter(p.Include, p.Exclude)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs(filepath.Join(root, "trainer"))
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		cmd := exec.Command("go", "list", "-deps", "-json=Dir,Module,GoFiles,SFiles,HFiles,EmbedFiles", "./cmd/trainer")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOARCH="+arch, "GOOS=linux", "CGO_ENABLED=0", "GOWORK=off")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		files := 0
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var pkg struct {
				Dir                                 string
				Module                              *struct{ Main bool }
				GoFiles, SFiles, HFiles, EmbedFiles []string
			}
			if err := d.Decode(&pkg); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if pkg.Module == nil || !pkg.Module.Main {
				continue
			}
			rel, err := filepath.Rel(dir, pkg.Dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, list := range [][]string{pkg.GoFiles, pkg.SFiles, pkg.HFiles, pkg.EmbedFiles} {
				for _, name := range list {
					files++
					if file := filepath.ToSlash(filepath.Join(rel, name)); !f.Takes(file) {
						t.Errorf("%s: %s is compiled and not included", arch, file)
					}
				}
			}
		}
		if files < 50 {
			t.Errorf("%s: only %d files", arch, files)
		}
	}
	for _, file := range []string{"go.mod", "go.sum", "vendor/modules.txt", "vendor/a/b.go"} {
		if !f.Takes(file) {
			t.Errorf("%s is not included", file)
		}
	}
	for _, file := range []string{"cmd/trainer-bench/main.go", "internal/kernel/gen/main.go", "internal/bpe/bpe_test.go", "internal/bpe/testdata/x", "README.md", "internal/kernel/gen/go.mod"} {
		if f.Takes(file) {
			t.Errorf("%s is included", file)
		}
	}
}

// One version in the descriptor, in the program and in the label.
func TestTheTrainersDescriptorHasOneVersion(t *testing.T) {
	p, text := trainerProject(t)
	_, after, _ := strings.Cut(text, "\nversion = \"")
	version, _, _ := strings.Cut(after, "\"")
	env := map[string]string{}
	for _, v := range p.Env {
		env[v.Name] = v.Value
	}
	for name, want := range map[string]string{
		"BP_GO_BUILD_LDFLAGS": " -X main.version=v" + version, "BP_IMAGE_LABELS": "org.opencontainers.image.version=v" + version + " ",
		"BP_GO_TARGETS": "./cmd/trainer", "CGO_ENABLED": "0",
		// I-65, and an empty run image has no loader.
		"BP_GO_BUILD_FLAGS": "-buildmode=default -trimpath -buildvcs=false",
	} {
		if version == "" || !strings.Contains(env[name], want) {
			t.Errorf("%s is %q, want %q in it", name, env[name], want)
		}
	}
	for name := range env {
		if strings.HasPrefix(name, "BP_OCI_") || strings.Contains(env[name], "main.commit") {
			t.Errorf("%s makes digests differ that need not", name)
		}
	}
}
