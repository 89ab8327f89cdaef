package tekton_test

import (
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/trainyard/trainyard/internal/demo/gomodule"
	"github.com/trainyard/trainyard/internal/demo/tekton"
)

const shellImage = "registry.test/shell@sha256:5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"

// pinned returns the releases that the cluster's go.mod pins.
func pinned(t *testing.T) []tekton.Release {
	t.Helper()
	var releases []tekton.Release
	for _, module := range []string{tekton.PipelinesModule, tekton.TriggersModule} {
		folder := filepath.Join("..", "..", "..", "scripts", "components", "cluster")
		found, err := gomodule.Find(t.Context(), "go", folder, module)
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, tekton.Release{Module: found.Path, Version: found.Version, FS: found.FS()})
	}
	return releases
}

// imagesFor makes up an image by digest for each import path that is needed.
func imagesFor(t *testing.T, releases []tekton.Release) map[string]string {
	t.Helper()
	importPaths, err := tekton.Images(releases...)
	if err != nil {
		t.Fatal(err)
	}
	images := make(map[string]string)
	for i, importPath := range importPaths {
		hex := strings.Repeat(string("0123456789abcdef"[i]), 64)
		images[importPath] = "registry.test:5000/" + strings.ReplaceAll(importPath, "/", "-") + "@sha256:" + hex
	}
	return images
}

// small is a release of one ConfigMap and of what configure looks for.
func small(config map[string]string) tekton.Release {
	files := fstest.MapFS{
		"config/controller.yaml": {Data: []byte(`apiVersion: apps/v1
kind: Deployment
metadata: {name: tekton-triggers-controller, namespace: tekton-pipelines}
spec:
  template:
    spec:
      containers:
      - name: controller
        image: ko://example.com/cmd/controller
        args: [-el-security-context=false]
`)},
	}
	for name, text := range config {
		files["config/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return tekton.Release{Module: tekton.TriggersModule, Version: "v1.2.3", FS: files}
}

func smallImages() map[string]string {
	return map[string]string{"example.com/cmd/controller": shellImage}
}

func TestImagesAreThoseThatTheReleasePublishes(t *testing.T) {
	releases := pinned(t)
	got, err := tekton.Images(releases...)
	if err != nil {
		t.Fatal(err)
	}
	// tekton/publish.yaml, which makes the releases, lists the images that it
	// expects ko to have built.
	want := make(map[string]bool)
	for _, release := range releases {
		data, err := fs.ReadFile(release.FS, "tekton/publish.yaml")
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(data), "\n")
		for i, line := range lines {
			if name := strings.TrimSpace(line); name != "- name: images" && name != "- name: interceptorImages" {
				continue
			}
			_, list, _ := strings.Cut(lines[i+2], "default:")
			for _, command := range strings.Fields(strings.Trim(strings.TrimSpace(list), `"`)) {
				want[release.Module+"/cmd/"+command] = true
			}
		}
	}
	if len(want) != 12 {
		t.Fatalf("publish.yaml lists %d images, read wrongly: %v", len(want), want)
	}
	if len(got) != len(want) {
		t.Errorf("got %d images %v, want %d", len(got), got, len(want))
	}
	for _, importPath := range got {
		if !want[importPath] {
			t.Errorf("%s is not published", importPath)
		}
	}
}

// The names were published with Pipelines v1.12.0 and Triggers v0.36.0; the
// releases since are made the same way.
func TestImageNameIsThatOfPublishedImages(t *testing.T) {
	published := map[string]string{
		"github.com/tektoncd/pipeline/cmd/controller":        "ghcr.io/tektoncd/pipeline/controller-10a3e32792f33651396d02b6855a6e36:v9.9.9",
		"github.com/tektoncd/pipeline/cmd/entrypoint":        "ghcr.io/tektoncd/pipeline/entrypoint-bff0a22da108bc2f16c818c97641a296:v9.9.9",
		"github.com/tektoncd/pipeline/cmd/events":            "ghcr.io/tektoncd/pipeline/events-a9042f7efb0cbade2a868a1ee5ddd52c:v9.9.9",
		"github.com/tektoncd/pipeline/cmd/nop":               "ghcr.io/tektoncd/pipeline/nop-8eac7c133edad5df719dc37b36b62482:v9.9.9",
		"github.com/tektoncd/pipeline/cmd/resolvers":         "ghcr.io/tektoncd/pipeline/resolvers-ff86b24f130c42b88983d3c13993056d:v9.9.9",
		"github.com/tektoncd/pipeline/cmd/sidecarlogresults": "ghcr.io/tektoncd/pipeline/sidecarlogresults-7501c6a20d741631510a448b48ab098f:v9.9.9",
		"github.com/tektoncd/pipeline/cmd/webhook":           "ghcr.io/tektoncd/pipeline/webhook-d4749e605405422fd87700164e31b2d1:v9.9.9",
		"github.com/tektoncd/pipeline/cmd/workingdirinit":    "ghcr.io/tektoncd/pipeline/workingdirinit-0c558922ec6a1b739e550e349f2d5fc1:v9.9.9",
		"github.com/tektoncd/triggers/cmd/controller":        "ghcr.io/tektoncd/triggers/controller-f656ca31de179ab913fa76abc255c315:v9.9.9",
		"github.com/tektoncd/triggers/cmd/eventlistenersink": "ghcr.io/tektoncd/triggers/eventlistenersink-7ad1faa98cddbcb0c24990303b220bb8:v9.9.9",
		"github.com/tektoncd/triggers/cmd/interceptors":      "ghcr.io/tektoncd/triggers/interceptors-3176d6a3f314c3655b30bfd36e421dd5:v9.9.9",
		"github.com/tektoncd/triggers/cmd/webhook":           "ghcr.io/tektoncd/triggers/webhook-dd1edc925ee1772a9f76e2c1bc291ef6:v9.9.9",
	}
	for importPath, want := range published {
		module, _, _ := strings.Cut(importPath, "/cmd/")
		got, err := tekton.Release{Module: module, Version: "v9.9.9"}.ImageName(importPath)
		if err != nil || got != want {
			t.Errorf("%s is %s (%v), want %s", importPath, got, err, want)
		}
	}
}

func TestImageNameRefusesAPackageOfAnotherModule(t *testing.T) {
	for module, importPath := range map[string]string{
		tekton.TriggersModule: "github.com/tektoncd/pipeline/cmd/controller",
		"example.com/tekton":  "example.com/tekton/cmd/controller",
	} {
		if got, err := (tekton.Release{Module: module}).ImageName(importPath); err == nil {
			t.Errorf("%s of %s is %s", importPath, module, got)
		}
	}
}

func TestShellImageIsTheOneOfTheManifests(t *testing.T) {
	got, err := pinned(t)[0].ShellImage()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got, "cgr.dev/chainguard/busybox@sha256:") { // by digest, "so it will be supported on a runtime like cri-o"
		t.Errorf("the shell image is %s", got)
	}
}

func TestRenderFails(t *testing.T) {
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n"
	tests := map[string]struct {
		config map[string]string
		images map[string]string
		shell  string
		want   []string
	}{
		"an import path without an image": {
			config: map[string]string{"a.yaml": configMap + "data: {image: ko://example.com/cmd/new}\n"},
			want:   []string{"config/a.yaml", "example.com/cmd/new"},
		},
		"the scheme without an import path": {
			config: map[string]string{"a.yaml": configMap + "data: {image: 'ko://'}\n"},
			want:   []string{"config/a.yaml", "no image"},
		},
		"the scheme in a key": {
			config: map[string]string{"a.yaml": configMap + "data: {'ko://example.com/cmd/controller': x}\n"},
			want:   []string{"config/a.yaml", "key"},
		},
		"an image by tag": {
			images: map[string]string{"example.com/cmd/controller": "registry.test/controller:v1"},
			want:   []string{"example.com/cmd/controller", "registry.test/controller:v1"},
		},
		"an image without its registry": {
			images: map[string]string{"example.com/cmd/controller": strings.TrimPrefix(shellImage, "registry.test/")},
			want:   []string{"example.com/cmd/controller"},
		},
		"a shell image by tag": {
			shell: "registry.test/shell:v1",
			want:  []string{"shell image", "registry.test/shell:v1"},
		},
		"a key given twice": {
			config: map[string]string{"a.yaml": configMap + "data: {a: x, a: y}\n"},
			want:   []string{"config/a.yaml, document 1", `"a" already set`},
		},
		"an object given twice": {
			config: map[string]string{"a.yaml": configMap, "b.yaml": configMap},
			want:   []string{"ConfigMap one", "config/a.yaml", "config/b.yaml"},
		},
		"a list": {
			config: map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMapList\nmetadata: {name: x}\nitems: []\n"},
			want:   []string{"config/a.yaml", "not a list"},
		},
		"no kind": {
			config: map[string]string{"a.yaml": "apiVersion: v1\nmetadata: {name: one}\n"},
			want:   []string{"config/a.yaml", "Kind"},
		},
		"no name": {
			config: map[string]string{"a.yaml": configMap + "---\napiVersion: v1\nkind: Secret\n"},
			want:   []string{"config/a.yaml, document 2", "name"},
		},
		"no YAML": {
			config: map[string]string{"a.yaml": "a: [\n"},
			want:   []string{"config/a.yaml"},
		},
		"a container's image by tag": {
			config: map[string]string{"a.yaml": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x},
				spec: {template: {spec: {initContainers: [{image: "registry.test/a:v1"}]}}}}`},
			want: []string{"config/a.yaml", "Deployment x", "registry.test/a:v1"},
		},
		"a container without an image": {
			config: map[string]string{"a.yaml": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x},
				spec: {template: {spec: {containers: [{name: y}]}}}}`},
			want: []string{"config/a.yaml", "Deployment x"},
		},
		"a switch that is gone": {
			config: map[string]string{"controller.yaml": strings.ReplaceAll(controller(t), "-el-security-context=false", "-x")},
			want:   []string{"config/controller.yaml", "-el-security-context"},
		},
		"a controller that is gone": {
			config: map[string]string{"controller.yaml": configMap},
			want:   []string{"tekton-triggers-controller"},
		},
		"two containers": {
			config: map[string]string{"controller.yaml": controller(t) + "      - {image: " + shellImage + "}\n"},
			want:   []string{"config/controller.yaml", "one container, not 2"},
		},
		"arguments that are no strings": {
			config: map[string]string{"controller.yaml": strings.ReplaceAll(controller(t), "[-el-security-context=false]", "[1]")},
			want:   []string{"config/controller.yaml", "args"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			images := smallImages()
			maps.Copy(images, test.images)
			groups, err := tekton.Render(tekton.Settings{Images: images, ShellImage: test.shell}, small(test.config))
			if err == nil {
				t.Fatalf("rendered %v", groups)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q has no %q", err, want)
				}
			}
		})
	}
}

func controller(t *testing.T) string {
	t.Helper()
	data, err := fs.ReadFile(small(nil).FS, "config/controller.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRenderFailsWhenAFeatureFlagIsGone(t *testing.T) {
	releases := pinned(t)
	settings := tekton.Settings{Images: imagesFor(t, releases), ShellImage: shellImage}
	for gone, file := range map[string]string{
		"set-security-context":    "config/config-feature-flags.yaml",
		"enable-bundles-resolver": "config/resolvers/config-feature-flags.yaml",
		"enable-git-resolver":     "config/resolvers/config-feature-flags.yaml",
		"enable-cluster-resolver": "config/resolvers/config-feature-flags.yaml",
		"-shell-image":            "config/controller.yaml",
	} {
		t.Run(gone, func(t *testing.T) {
			release := releases[0]
			release.FS = edited{release.FS, file, `"` + gone + `"`, gone + ":"}
			groups, err := tekton.Render(settings, release)
			if err == nil {
				t.Fatalf("rendered %d groups", len(groups))
			}
			if !strings.Contains(err.Error(), gone) || !strings.Contains(err.Error(), file) {
				t.Errorf("error %q names not %s and %s", err, gone, file)
			}
		})
	}
}

func TestRenderFailsForAnotherModule(t *testing.T) {
	release := small(nil)
	release.Module = "github.com/tektoncd/chains"
	if groups, err := tekton.Render(tekton.Settings{Images: smallImages()}, release); err == nil {
		t.Errorf("rendered %v", groups)
	}
}

func TestRenderFailsWithoutManifests(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{
		"no folder":      {"README.md": {}},
		"an empty one":   {"config/dummy.go": {}},
		"comments alone": {"config/a.yaml": {Data: []byte("# nothing\n---\n# yet\n")}},
	} {
		release := tekton.Release{Module: tekton.TriggersModule, Version: "v1.2.3", FS: files}
		if _, err := tekton.Render(tekton.Settings{}, release); err == nil || !strings.Contains(err.Error(), release.String()) {
			t.Errorf("%s: error %v, want one that names %s", name, err, release)
		}
		if _, err := tekton.Images(release); err == nil {
			t.Errorf("%s: no error of Images", name)
		}
	}
}

// edited is a file system in one of whose files words are gone.
type edited struct {
	fs.FS
	file      string
	old, also string
}

func (e edited) ReadFile(file string) ([]byte, error) {
	data, err := fs.ReadFile(e.FS, file)
	if file != e.file {
		return data, err
	}
	return []byte(strings.NewReplacer(e.old, `"gone"`, e.also, "gone:").Replace(string(data))), err
}
