package published

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/demo/gomodule"
	"github.com/trainyard/trainyard/internal/demo/imagelock"
)

const root = "../../.."

func find(t *testing.T) func(string) (gomodule.Module, error) {
	t.Helper()
	return func(module string) (gomodule.Module, error) {
		return gomodule.Find(t.Context(), "go", filepath.Join(root, "scripts", "components", "cluster"), module)
	}
}

func list(t *testing.T) Images {
	t.Helper()
	images, err := List(find(t))
	if err != nil {
		t.Fatal(err)
	}
	return images
}

func TestListTakesVersionsFromTheModules(t *testing.T) {
	images := list(t)
	pins, err := os.ReadFile(filepath.Join(root, "scripts", "components", "cluster", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ image, module, prefix, v string }{
		{images.Registry.Name, "github.com/distribution/distribution/v3", "docker.io/library/registry:", ""},
		{images.S3.Name, "github.com/versity/versitygw", "ghcr.io/versity/versitygw:", "v"},
		{images.Tekton["github.com/tektoncd/pipeline/cmd/nop"].Name, "github.com/tektoncd/pipeline",
			"ghcr.io/tektoncd/pipeline/nop-8eac7c133edad5df719dc37b36b62482:", "v"},
		{images.Tekton["github.com/tektoncd/triggers/cmd/webhook"].Name, "github.com/tektoncd/triggers",
			"ghcr.io/tektoncd/triggers/webhook-dd1edc925ee1772a9f76e2c1bc291ef6:", "v"},
	} {
		version := regexp.MustCompile(`\t` + regexp.QuoteMeta(test.module) + ` v(\S+)`).FindSubmatch(pins)
		if version == nil {
			t.Fatalf("go.mod does not require %s", test.module)
		}
		if want := test.prefix + test.v + string(version[1]); test.image != want {
			t.Errorf("image %s, want %s", test.image, want)
		}
	}
}

func TestListTakesDigestsFromTheModulesThatNameThem(t *testing.T) {
	images := list(t)
	for module, test := range map[string]struct {
		image   imagelock.Image
		file    string
		written string // as the file has it
		name    *regexp.Regexp
	}{
		"sigs.k8s.io/kind": {images.Node, "pkg/apis/config/defaults/image.go",
			strings.TrimPrefix(images.Node.Name, "docker.io/") + "@" + images.Node.Digest, regexp.MustCompile(`^docker\.io/kindest/node:v1\.\d+\.\d+$`)},
		"github.com/tektoncd/pipeline": {images.Shell, "config/controller.yaml",
			images.Shell.Name + "@" + images.Shell.Digest, regexp.MustCompile(`^cgr\.dev/chainguard/busybox$`)},
	} {
		found, err := find(t)(module)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(found.Dir, test.file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), `"`+test.written+`"`) {
			t.Errorf("%s of %s does not name %s", test.file, found, test.written)
		}
		if !test.name.MatchString(test.image.Name) || test.image.Source != found.String() {
			t.Errorf("image %+v, want a name like %s by %s", test.image, test.name, found)
		}
	}
}

func TestAllImagesCanBeLocked(t *testing.T) {
	images := list(t)
	all := images.All()
	if len(all) != 6+len(images.Tekton) || len(images.Tekton) != 12 {
		t.Errorf("%d images, %d of them Tekton's", len(all), len(images.Tekton))
	}
	for i, image := range all {
		if canonical, err := imagelock.Canonical(image.Name); err != nil || canonical != image.Name {
			t.Errorf("%s: want %s (%v)", image.Name, canonical, err)
		}
		if tagged := regexp.MustCompile(`:v?\d[^/]*$`).MatchString(image.Name); !tagged && image.Digest == "" {
			t.Errorf("%s has neither a version nor a digest", image.Name)
		}
		if i > 0 && all[i-1].Name >= image.Name {
			t.Errorf("%s comes after %s", image.Name, all[i-1].Name)
		}
	}
	if diff := cmp.Diff([]string{"cgr.dev", "docker.io", "ghcr.io"}, images.Hosts()); diff != "" {
		t.Error(diff)
	}
}

// A name that no image has any more is left from another version.
func TestTheCommittedLockHoldsPublishedImagesAlone(t *testing.T) {
	locked, err := imagelock.Read(filepath.Join(root, "scripts", "images.lock.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := list(t).All()
	for name := range locked {
		if !slices.ContainsFunc(all, func(image imagelock.Image) bool { return image.Name == name }) {
			t.Errorf("%s is locked, but nothing runs it: remove the entry", name)
		}
	}
}

func TestListFailsWithTheModuleThatIsNotFound(t *testing.T) {
	for _, missing := range []string{"sigs.k8s.io/kind", "github.com/distribution/distribution/v3", "github.com/versity/versitygw",
		"github.com/tektoncd/pipeline", "github.com/tektoncd/triggers"} {
		want := errors.New("not found")
		_, err := List(func(module string) (gomodule.Module, error) {
			if module == missing {
				return gomodule.Module{}, want
			}
			return find(t)(module)
		})
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", missing, err)
		}
	}
}

func TestNodeImageFails(t *testing.T) {
	tests := map[string]struct{ source, want string }{
		"the file has moved":      {"", kindDefaults},
		"no Go":                   {"package", kindDefaults},
		"another name":            {`package defaults; const NodeImage = "a"`, "no constant Image"},
		"a variable":              {`package defaults; var Image = "a"`, "no constant Image"},
		"a sum":                   {`package defaults; const Image = "a" + Version`, "no string"},
		"the value before it":     {`package defaults; const (A = "a"; Image)`, "no constant Image"},
		"a number":                {`package defaults; const Image = 1`, "no string"},
		"a tag alone":             {`package defaults; const Image = "kindest/node:v1.37.0"`, "without a digest"},
		"a name that is no image": {`package defaults; const Image = "Kindest/Node:v1@sha256:0"`, "node image"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			module := gomodule.Module{Path: "sigs.k8s.io/kind", Version: "v9.9.9", Dir: t.TempDir()}
			file := filepath.Join(module.Dir, kindDefaults)
			if test.source != "" {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(test.source), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			image, err := nodeImage(module)
			if err == nil {
				t.Fatalf("the image is %+v", image)
			}
			if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "sigs.k8s.io/kind@v9.9.9") {
				t.Errorf("error %q has not %q and the module", err, test.want)
			}
		})
	}
}

func TestConstantFindsTheOneThatIsMeant(t *testing.T) {
	for source, want := range map[string]string{
		"package p; const Image = \"a\"":                                   "a",
		"package p; const (A = 1; Image = `b`)":                            "b",
		"package p; const Other, Image = \"c\", \"d\"":                     "d",
		"package p; func f() { const Image = \"x\" }; const Image = \"e\"": "e",
	} {
		if got, err := constant([]byte(source), "Image"); err != nil || got != want {
			t.Errorf("%s: %q (%v), want %q", source, got, err, want)
		}
	}
}

// FuzzConstant: whatever the file, an answer or an error.
func FuzzConstant(f *testing.F) {
	for _, source := range []string{`package p; const Image = "a"`, "package p; const (A, Image = iota, 1; B)", "package", "package p; const Image = `"} {
		f.Add([]byte(source))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		if got, err := constant(source, "Image"); err == nil && !strings.Contains(string(source), "Image") {
			t.Errorf("found %q", got)
		}
	})
}
