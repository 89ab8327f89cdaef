package packbuild

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/buildpacks/pack/pkg/image"
	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/moby/moby/client"

	"github.com/trainyard/trainyard/internal/buildtest"
	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/plan"
)

func platform() v1.Platform { return v1.Platform{OS: "linux", Architecture: "amd64"} }

// planned writes a plan as yard plan does, with this text as plan.json.
func planned(t *testing.T, text string, env map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(plan.FileName, text)
	write("source/go.mod", "module m\n")
	for name, value := range env {
		write("platform/env/"+name, value)
	}
	return dir
}

func TestEnvironmentIsWhatThePlanWrote(t *testing.T) {
	want := map[string]string{"A": "b=c d", "LINES": "x\ny\n", "EMPTY": ""}
	dir := planned(t, "{}", want)
	got, err := environment(filepath.Join(dir, "platform/env"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if _, err := environment(filepath.Join(dir, "nowhere")); exitcode.Of(err) != exitcode.BadInput {
		t.Errorf("no environment: %v", err)
	}
}

func TestBuildpacks(t *testing.T) {
	for name, c := range map[string]struct {
		order string
		want  []string
		says  string
	}{
		"one group":  {"[[order]]\n[[order.group]]\nid = \"a/b\"\nversion = \"1.2\"\n[[order.group]]\nid = \"c/d\"\n", []string{"a/b@1.2", "c/d"}, ""},
		"two groups": {"[[order]]\n[[order.group]]\nid = \"a\"\n[[order]]\n[[order.group]]\nid = \"b\"\n", nil, "2 groups"},
		"optional":   {"[[order]]\n[[order.group]]\nid = \"a\"\noptional = true\n", nil, "buildpack a is optional"},
		"malformed":  {"[[order", nil, "plan:"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, plan.OrderFile), []byte(c.order), 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := Options{Plan: dir}.buildpacks(&plan.File{Order: true})
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || exitcode.Of(err) != exitcode.BadInput) {
				t.Errorf("error %v, want %q", err, c.says)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
	if got, err := (Options{}).buildpacks(&plan.File{}); err != nil || got != nil {
		t.Errorf("the builder's own order: %v, %v", got, err)
	}
}

func TestCacheIsOfTheRepositoryNotOfTheTag(t *testing.T) {
	a, b, other := caches("r.example:5000/x/app:1"), caches("r.example:5000/x/app:2"), caches("r.example:5000/y/app:1")
	if a != b || a == other || a.Build.Source == a.Launch.Source || a.Build.Source == "" {
		t.Errorf("%+v, %+v, %+v", a, b, other)
	}
}

func TestFetcherAsksOurRegistryClient(t *testing.T) {
	registry := buildtest.NewRegistry(t)
	img, err := random.Image(64, 2)
	if err != nil {
		t.Fatal(err)
	}
	name := registry.Push(t, "run:1", img)
	f := fetcher{registry: registry.Client, platform: platform()}
	got, err := f.FetchForPlatform(t.Context(), name, image.FetchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if have, err := got.UnderlyingImage().ConfigName(); err != nil || have != want || !got.Found() {
		t.Errorf("got %v, want %v: %v", have, want, err)
	}
	if !f.CheckReadAccess(name, image.FetchOptions{}) {
		t.Error("the image that was fetched is said not to be there")
	}
	missing := registry.Host + "/run:2"
	if _, err := f.Fetch(t.Context(), missing, image.FetchOptions{}); !errors.Is(err, image.ErrNotFound) {
		t.Errorf("a missing image: %v, want pack's ErrNotFound", err)
	}
	if f.CheckReadAccess(missing, image.FetchOptions{}) {
		t.Error("a missing image is said to be there")
	}
}

// engine is a container engine that takes an image and remembers it.
type engine struct {
	Engine
	loaded [][]byte
	err    error
}

// ImageInspect knows no image.
func (e *engine) ImageInspect(context.Context, string, ...client.ImageInspectOption) (client.ImageInspectResult, error) {
	return client.ImageInspectResult{}, errors.New("no such image")
}

// ImageLoad takes an archive.
func (e *engine) ImageLoad(_ context.Context, r io.Reader, _ ...client.ImageLoadOption) (client.ImageLoadResult, error) {
	if e.err != nil {
		return nil, e.err
	}
	data, err := io.ReadAll(r)
	e.loaded = append(e.loaded, data)
	return io.NopCloser(strings.NewReader("{}")), err
}

// Ping is asked for the version of the API.
func (*engine) Ping(context.Context, client.PingOptions) (client.PingResult, error) {
	return client.PingResult{}, nil
}

func TestBuilderIsGivenToTheEngineUnderItsDigest(t *testing.T) {
	registry := buildtest.NewRegistry(t)
	img, err := random.Image(64, 2)
	if err != nil {
		t.Fatal(err)
	}
	name := registry.Push(t, "builder:1", img)
	_, digest, _ := strings.Cut(name, "@")
	e := &engine{}
	f := &plan.File{Builder: name, BuilderDigest: digest, OS: "linux", Arch: "amd64"}
	tag, err := Options{Registry: registry.Client, Engine: e}.load(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	want := "trainyard.local/builder:" + strings.TrimPrefix(digest, "sha256:")
	if tag != want || len(e.loaded) != 1 || !strings.Contains(string(e.loaded[0]), want) {
		t.Errorf("tag %s, want %s; %d archives", tag, want, len(e.loaded))
	}
	e.err = errors.New("engine is off")
	if _, err := (Options{Registry: registry.Client, Engine: e}).load(t.Context(), f); exitcode.Of(err) != exitcode.IO || !strings.Contains(err.Error(), "engine is off") {
		t.Errorf("an engine that refuses: %v", err)
	}
}

func TestBuildWithoutEngineOrPlan(t *testing.T) {
	registry := buildtest.NewRegistry(t)
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	builder := registry.Push(t, "builder:1", img)
	_, digest, _ := strings.Cut(builder, "@")
	text := `{"schema":1,"action":"phases","image":"` + registry.Host + `/app:1","build":"` + registry.Host + `/app:src-1","builder":"` + builder + `","builderDigest":"` + digest +
		`","uid":1001,"gid":1000,"lifecycle":"0.21.17","platformAPI":"0.15","os":"linux","arch":"amd64","runImage":"` + builder + `","sourceDigest":"sha256:x","labels":{},"key":"k"}`
	t.Setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
	err = Build(t.Context(), Options{Plan: planned(t, text, map[string]string{"A": "b"}), Report: t.TempDir(), Registry: registry.Client, Log: io.Discard})
	if exitcode.Of(err) != exitcode.IO || !strings.Contains(err.Error(), "/nowhere/docker.sock") || strings.Contains(err.Error(), "\n") {
		t.Errorf("no engine: %v (code %d)", err, exitcode.Of(err))
	}
	if err := Build(t.Context(), Options{Plan: t.TempDir(), Registry: registry.Client, Log: io.Discard}); exitcode.Of(err) != exitcode.BadInput {
		t.Errorf("no plan: %v", err)
	}
}
