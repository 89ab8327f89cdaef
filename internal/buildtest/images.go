package buildtest

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Builder describes a builder image. New gives one that is in order.
type Builder struct {
	OS, Arch             string
	User                 string
	Env                  map[string]string
	Lifecycle            string
	Platform, Deprecated []string // interfaces
	BuildpackAPIs        []string
	RunImage             string
	Mirrors              []string
	Stack                bool // names the run image the old way
	// Go are the versions that the go-dist buildpack offers.
	Go         []string
	Extensions bool
	// Labels replace or, when empty, remove labels at the end.
	Labels map[string]string
}

// NewBuilder returns a builder as Paketo's: user 1001:1000, several interfaces.
func NewBuilder(runImage string) *Builder {
	return &Builder{
		OS: "linux", Arch: "amd64", User: "1001:1000",
		Env:       map[string]string{"CNB_USER_ID": "1001", "CNB_GROUP_ID": "1000"},
		Lifecycle: "0.21.17", Platform: []string{"0.12", "0.13", "0.14", "0.15"}, Deprecated: []string{"0.7", "0.11"},
		BuildpackAPIs: []string{"0.7", "0.10", "0.12"},
		RunImage:      runImage, Go: []string{"1.25.14", "1.26.7"},
	}
}

// Image makes the image.
func (b *Builder) Image(t testing.TB) v1.Image {
	t.Helper()
	dist := "api = \"0.7\"\n[buildpack]\nid = \"paketo-buildpacks/go-dist\"\n[metadata.default-versions]\ngo = \"1.25.*\"\n"
	for _, v := range b.Go {
		dist += fmt.Sprintf("[[metadata.dependencies]]\nid = \"go\"\nversion = %q\n[[metadata.dependencies]]\nid = \"go\"\nversion = %q\narch = \"arm64\"\n", v, v)
	}
	distLayer := Layer(t, map[string]string{"cnb/buildpacks/paketo-buildpacks_go-dist/2.10.9/bin/build": "x", "cnb/buildpacks/paketo-buildpacks_go-dist/2.10.9/buildpack.toml": dist})
	buildLayer := Layer(t, map[string]string{"cnb/buildpacks/paketo-buildpacks_go-build/2.4.20/buildpack.toml": "api = \"0.7\"\n[buildpack]\nid = \"paketo-buildpacks/go-build\"\n"})
	run := map[string]any{"image": b.RunImage, "mirrors": b.Mirrors}
	meta := map[string]any{
		"lifecycle": map[string]any{"version": b.Lifecycle, "apis": map[string]any{
			"platform":  map[string]any{"deprecated": b.Deprecated, "supported": b.Platform},
			"buildpack": map[string]any{"deprecated": nil, "supported": b.BuildpackAPIs},
		}},
		"buildpacks": []any{map[string]any{"id": "paketo-buildpacks/go-dist", "version": "2.10.9"}, map[string]any{"id": "paketo-buildpacks/go-build", "version": "2.4.20"}},
	}
	if b.Stack {
		meta["stack"] = map[string]any{"runImage": run}
	} else {
		meta["images"] = []any{run}
	}
	labels := map[string]string{
		"io.buildpacks.builder.metadata": JSON(t, meta),
		"io.buildpacks.buildpack.layers": JSON(t, map[string]any{
			"paketo-buildpacks/go-dist":  map[string]any{"2.10.9": map[string]any{"api": "0.7", "layerDiffID": diffID(t, distLayer)}},
			"paketo-buildpacks/go-build": map[string]any{"2.4.20": map[string]any{"api": "0.7", "layerDiffID": diffID(t, buildLayer)}},
		}),
		"io.buildpacks.buildpack.order": `[{"group":[{"id":"paketo-buildpacks/go-dist","version":"2.10.9"},{"id":"paketo-buildpacks/go-build","version":"2.4.20"}]}]`,
	}
	if b.Extensions {
		labels["io.buildpacks.buildpack.order-extensions"] = `[{"group":[{"id":"an/extension","version":"1"}]}]`
	}
	for k, v := range b.Labels {
		if labels[k] = v; v == "" {
			delete(labels, k)
		}
	}
	config := &v1.ConfigFile{OS: b.OS, Architecture: b.Arch, Config: v1.Config{User: b.User, Labels: labels}}
	for k, v := range b.Env {
		config.Config.Env = append(config.Config.Env, k+"="+v)
	}
	return build(t, config, distLayer, buildLayer)
}

// RunImage makes a run image for linux/amd64.
func RunImage(t testing.TB) v1.Image { return RunImageFor(t, "amd64") }

// RunImageFor makes a run image for another machine.
func RunImageFor(t testing.TB, arch string) v1.Image {
	t.Helper()
	l, err := random.Layer(100, "application/vnd.docker.image.rootfs.diff.tar.gzip")
	if err != nil {
		t.Fatal(err)
	}
	return build(t, &v1.ConfigFile{OS: "linux", Architecture: arch, Config: v1.Config{User: "1002:1000"}}, l)
}

// App describes an image as the lifecycle exports it.
type App struct {
	OS, Arch    string
	RunImage    string // name by digest
	Lifecycle   string
	PlatformAPI string
	Labels      map[string]string
	User        string
	Entrypoint  []string
	NoSBOM      bool
}

// NewApp returns an image that is in order.
func NewApp(runImage string) *App {
	return &App{
		OS: "linux", Arch: "amd64", RunImage: runImage, Lifecycle: "0.21.17", PlatformAPI: "0.15", User: "1002:1000",
		Entrypoint: []string{"/cnb/process/trainer"}, Labels: map[string]string{},
	}
}

// Image makes the image. Two calls make the same one.
func (a *App) Image(t testing.TB) v1.Image {
	t.Helper()
	app, sbom := Layer(t, map[string]string{"workspace/x": "app"}), Layer(t, map[string]string{"layers/sbom/launch/x.cdx.json": "{}"})
	lifecycle := map[string]any{"runImage": map[string]any{"topLayer": "sha256:1", "reference": a.RunImage}}
	layers := []v1.Layer{app}
	if !a.NoSBOM {
		lifecycle["sbom"] = map[string]any{"sha": diffID(t, sbom)}
		layers = append(layers, sbom)
	}
	labels := map[string]string{
		"io.buildpacks.lifecycle.metadata": JSON(t, lifecycle),
		"io.buildpacks.build.metadata": JSON(t, map[string]any{
			"launcher":   map[string]any{"version": a.Lifecycle},
			"buildpacks": []any{map[string]any{"id": "paketo-buildpacks/go-build", "version": "2.4.20"}},
		}),
	}
	for k, v := range a.Labels {
		labels[k] = v
	}
	return build(t, &v1.ConfigFile{OS: a.OS, Architecture: a.Arch, Config: v1.Config{
		User: a.User, Labels: labels, Entrypoint: a.Entrypoint, Env: []string{"CNB_PLATFORM_API=" + a.PlatformAPI, "PATH=/cnb/process"},
	}}, layers...)
}

// Layer makes a layer of files.
func Layer(t testing.TB, files map[string]string) v1.Layer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range sortedKeys(files) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// JSON is the text of a label.
func JSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Digest returns the hexadecimal digits of an image's digest with its algorithm.
func Digest(t testing.TB, img v1.Image) string {
	t.Helper()
	d, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// SHA is a digest that nothing has: of one repeated digit.
func SHA(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

func diffID(t testing.TB, l v1.Layer) string {
	t.Helper()
	d, err := l.DiffID()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

func build(t testing.TB, config *v1.ConfigFile, layers ...v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	have, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.RootFS, config.History = have.RootFS, have.History
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	return img
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
