package builderimage

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"github.com/trainyard/trainyard/internal/buildtest"
	"github.com/trainyard/trainyard/internal/exitcode"
)

var amd64 = v1.Platform{OS: "linux", Architecture: "amd64"}

func inspect(t *testing.T, r *buildtest.Registry, image string) (*Builder, error) {
	t.Helper()
	ref, err := r.Client.Reference(image)
	if err != nil {
		t.Fatal(err)
	}
	return Inspect(t.Context(), r.Client, ref, amd64)
}

// I-03, I-04: user and group come from the builder, both of them.
func TestInspectReadsTheBuilder(t *testing.T) {
	r := buildtest.NewRegistry(t)
	b := buildtest.NewBuilder("registry.example/run:1")
	b.Mirrors = []string{"mirror.example/run:1"}
	name := r.Push(t, "builder:1", b.Image(t))
	got, err := inspect(t, r, name)
	if err != nil {
		t.Fatal(err)
	}
	if got.UID != 1001 || got.GID != 1000 {
		t.Errorf("user %d:%d, want 1001:1000", got.UID, got.GID)
	}
	if !strings.HasSuffix(name, "@"+got.Digest) || got.Name != name {
		t.Errorf("name %s digest %s, want %s", got.Name, got.Digest, name)
	}
	if got.Lifecycle != "0.21.17" || !slices.Equal(got.PlatformAPIs, []string{"0.7", "0.11", "0.12", "0.13", "0.14", "0.15"}) || !Has(got.BuildpackAPIs, "0.10") {
		t.Errorf("lifecycle %s, interfaces %v %v", got.Lifecycle, got.PlatformAPIs, got.BuildpackAPIs)
	}
	if len(got.RunImages) != 1 || got.RunImages[0].Image != "registry.example/run:1" || !slices.Equal(got.RunImages[0].Mirrors, b.Mirrors) {
		t.Errorf("run images %+v", got.RunImages)
	}
	if len(got.Buildpacks) != 2 || got.Buildpacks[0] != (Buildpack{"paketo-buildpacks/go-build", "2.4.20", "0.7"}) {
		t.Errorf("buildpacks %+v", got.Buildpacks)
	}
	if len(got.Order) != 1 || got.Order[0].Group[1].ID != "paketo-buildpacks/go-build" || got.Extensions {
		t.Errorf("order %+v, extensions %v", got.Order, got.Extensions)
	}
	// I-08: from the descriptor within the image.
	if !slices.Equal(got.Go, []string{"1.25.14", "1.26.7"}) || got.GoFrom != "paketo-buildpacks/go-dist@2.10.9" {
		t.Errorf("Go %v from %q", got.Go, got.GoFrom)
	}
}

func TestInspectVariants(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*buildtest.Builder)
		check  func(*Builder) bool
	}{
		"run image of a stack": {func(b *buildtest.Builder) { b.Stack = true }, func(b *Builder) bool { return b.RunImages[0].Image == "run" }},
		"user without a group": {func(b *buildtest.Builder) { b.User = "1001" }, func(b *Builder) bool { return b.GID == 1000 }},
		"extensions":           {func(b *buildtest.Builder) { b.Extensions = true }, func(b *Builder) bool { return b.Extensions }},
		"no Go versions told":  {func(b *buildtest.Builder) { b.Go = nil }, func(b *Builder) bool { return b.Go == nil && b.GoFrom == "" }},
		"no layer ids in the label": {func(b *buildtest.Builder) {
			b.Labels = map[string]string{layersLabel: `{"x/go":{"1":{"api":"0.10"}}}`}
		}, func(b *Builder) bool { return b.Go == nil && len(b.Buildpacks) == 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			r := buildtest.NewRegistry(t)
			b := buildtest.NewBuilder("run")
			c.change(b)
			got, err := inspect(t, r, r.Push(t, "builder:1", b.Image(t)))
			if err != nil || !c.check(got) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestInspectRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*buildtest.Builder)
		part   string
	}{
		"an image that is no builder": {func(b *buildtest.Builder) { b.Labels = map[string]string{metadataLabel: ""} }, "not a builder"},
		"a label that is no JSON":     {func(b *buildtest.Builder) { b.Labels = map[string]string{metadataLabel: "{"} }, metadataLabel},
		"an order that is none":       {func(b *buildtest.Builder) { b.Labels = map[string]string{orderLabel: "7"} }, orderLabel},
		"no layers label":             {func(b *buildtest.Builder) { b.Labels = map[string]string{layersLabel: ""} }, layersLabel},
		"extensions that are none":    {func(b *buildtest.Builder) { b.Labels = map[string]string{extensionsLabel: "{"} }, extensionsLabel},
		"no lifecycle":                {func(b *buildtest.Builder) { b.Lifecycle = "" }, "no lifecycle"},
		"no platform interface":       {func(b *buildtest.Builder) { b.Platform, b.Deprecated = nil, nil }, "no lifecycle with platform"},
		"no user id":                  {func(b *buildtest.Builder) { delete(b.Env, "CNB_USER_ID") }, `CNB_USER_ID=""`},
		"root's group":                {func(b *buildtest.Builder) { b.Env["CNB_GROUP_ID"] = "0" }, `CNB_GROUP_ID="0"`},
		"a user by name":              {func(b *buildtest.Builder) { b.User = "cnb" }, `USER is "cnb"`},
		"another group":               {func(b *buildtest.Builder) { b.User = "1001:1001" }, "1001:1000"},
		"another machine":             {func(b *buildtest.Builder) { b.Arch = "s390x" }, "linux/s390x, this machine is linux/amd64"},
	} {
		t.Run(name, func(t *testing.T) {
			r := buildtest.NewRegistry(t)
			b := buildtest.NewBuilder("run")
			c.change(b)
			image := r.Push(t, "builder:1", b.Image(t))
			_, err := inspect(t, r, image)
			if err == nil || exitcode.Of(err) != exitcode.BadInput {
				t.Fatalf("code %d: %v", exitcode.Of(err), err)
			}
			if m := err.Error(); !strings.Contains(m, image) || !strings.Contains(m, c.part) || strings.Contains(m, "\n") {
				t.Errorf("%q does not name %s and %q in one line", m, image, c.part)
			}
		})
	}
}

func TestInspectOfAnIndexTakesTheMachinesImage(t *testing.T) {
	r := buildtest.NewRegistry(t)
	arm := buildtest.NewBuilder("run")
	arm.Arch, arm.Lifecycle = "arm64", "0.20.0"
	index := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: arm.Image(t), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm64"}}},
		mutate.IndexAddendum{Add: buildtest.NewBuilder("run").Image(t), Descriptor: v1.Descriptor{Platform: &amd64}})
	image := r.Push(t, "builder:1", index)
	got, err := inspect(t, r, image)
	if err != nil || got.Lifecycle != "0.21.17" || !strings.HasSuffix(image, got.Digest) {
		t.Errorf("%+v: %v", got, err)
	}
}

// The builder that is read is the one that was resolved: the tag is asked for once.
func TestInspectAsksForATagOnce(t *testing.T) {
	r := buildtest.NewRegistry(t)
	r.Push(t, "builder:1", buildtest.NewBuilder("run").Image(t))
	byTag := 0
	r.Intercept = func(_ http.ResponseWriter, req *http.Request) bool {
		if strings.HasSuffix(req.URL.Path, "/manifests/1") {
			byTag++
		}
		return false
	}
	if _, err := inspect(t, r, r.Host+"/builder:1"); err != nil || byTag != 1 {
		t.Errorf("asked %d times: %v", byTag, err)
	}
}

func TestInspectNamesWhatTheRegistrySaid(t *testing.T) {
	r := buildtest.NewRegistry(t)
	for name, c := range map[string]struct {
		intercept func(w http.ResponseWriter, req *http.Request) bool
		code      int
		part      string
	}{
		"missing tag": {nil, exitcode.BadInput, "404"},
		"401": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}, exitcode.IO, "401"},
		"a web page": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>")
			return true
		}, exitcode.BadInput, "web page"},
	} {
		t.Run(name, func(t *testing.T) {
			r.Intercept = c.intercept
			_, err := inspect(t, r, r.Host+"/none:1")
			if exitcode.Of(err) != c.code || !strings.Contains(err.Error(), r.Host+"/none:1") || !strings.Contains(err.Error(), c.part) {
				t.Errorf("code %d: %v", exitcode.Of(err), err)
			}
		})
	}
}

// I-07: the highest interface that both sides know, by number.
func TestNegotiate(t *testing.T) {
	for name, c := range map[string]struct {
		ours, theirs []string
		want         string
	}{
		"highest common":        {[]string{"0.12", "0.13", "0.14"}, []string{"0.7", "0.12", "0.13"}, "0.13"},
		"numbers, not text":     {[]string{"0.9", "0.10"}, []string{"0.10", "0.9"}, "0.10"},
		"order does not matter": {[]string{"0.13", "0.12"}, []string{"0.13", "0.12"}, "0.13"},
		"whole versions":        {[]string{"1.0"}, []string{"1"}, "1.0"},
		"theirs is newer":       {[]string{"0.15"}, []string{"0.16"}, ""},
		"theirs is older":       {[]string{"0.12"}, []string{"0.3", "0.4"}, ""},
		"nothing":               {nil, []string{"0.3"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Negotiate(c.ours, c.theirs)
			if got != c.want || (err != nil) != (c.want == "") {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func FuzzMetadata(f *testing.F) {
	img := buildtest.NewBuilder("run").Image(f)
	config, err := img.ConfigFile()
	if err != nil {
		f.Fatal(err)
	}
	l := config.Config.Labels
	f.Add(l[metadataLabel], l[layersLabel], l[orderLabel], "", "1001:1000")
	f.Fuzz(func(t *testing.T, meta, layers, order, extensions, user string) {
		c := config.DeepCopy()
		c.Config.User = user
		c.Config.Labels = map[string]string{metadataLabel: meta, layersLabel: layers, orderLabel: order, extensionsLabel: extensions}
		b, found, err := parse(c)
		if err != nil {
			return
		}
		if b.UID <= 0 || b.Lifecycle == "" || len(b.PlatformAPIs) == 0 {
			t.Errorf("%+v", b)
		}
		_, _ = Negotiate([]string{"0.12"}, b.PlatformAPIs)
		if img, err := random.Image(8, 1); err == nil {
			_, _, _ = goVersions(t.Context(), img, found)
		}
	})
}

func FuzzGoVersions(f *testing.F) {
	f.Add([]byte("[[metadata.dependencies]]\nid=\"go\"\nversion=\"1.26.7\"\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if v := parseGoVersions(b); slices.Contains(v, "") {
			t.Errorf("%q", v)
		}
	})
}
