package appimage

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"github.com/trainyard/trainyard/internal/buildtest"
	"github.com/trainyard/trainyard/internal/exitcode"
)

const run = "registry.example/run@"

func want() Want {
	return Want{OS: "linux", Arch: "amd64", RunImageDigest: buildtest.SHA("a"), Lifecycle: "0.21.17", PlatformAPI: "0.15",
		Labels: map[string]string{"io.trainyard.source.digest": buildtest.SHA("b")}}
}

func read(t *testing.T, a *buildtest.App) (*Image, string, error) {
	t.Helper()
	r := buildtest.NewRegistry(t)
	image := r.Push(t, "app:1", a.Image(t))
	ref, err := r.Client.Reference(image)
	if err != nil {
		t.Fatal(err)
	}
	i, err := Read(t.Context(), r.Client, ref)
	return i, image, err
}

func TestReadAndCheckAnImageThatIsInOrder(t *testing.T) {
	a := buildtest.NewApp(run + buildtest.SHA("a"))
	a.Labels["io.trainyard.source.digest"] = buildtest.SHA("b")
	i, image, err := read(t, a)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Check(want()); err != nil {
		t.Error(err)
	}
	if missing := i.Unlabelled(want()); missing != nil {
		t.Errorf("missing %v", missing)
	}
	m, err := a.Image(t).Manifest()
	if err != nil {
		t.Fatal(err)
	}
	repo, digest, _ := strings.Cut(image, "@")
	if i.Digest != digest || i.Size != m.Layers[0].Size+m.Layers[1].Size || i.SBOM != repo+"@"+m.Layers[1].Digest.String() {
		t.Errorf("%+v, want digest %s and SBOM layer %s", i, digest, m.Layers[1].Digest)
	}
}

func TestLabelsDependOnTheBuilder(t *testing.T) {
	i, _, err := read(t, buildtest.NewApp(run+buildtest.SHA("a")))
	if err != nil || i.Check(want()) != nil {
		t.Fatalf("an image without labels: %v, %v", err, i.Check(want()))
	}
	if got := i.Unlabelled(want()); !slices.Equal(got, []string{"io.trainyard.source.digest"}) {
		t.Errorf("missing %v", got)
	}
}

func TestCheckNamesBothSides(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*buildtest.App)
		code   int
		parts  []string
	}{
		"machine":          {func(a *buildtest.App) { a.Arch = "arm64" }, exitcode.Integrity, []string{"linux/arm64", "linux/amd64"}},
		"run image":        {func(a *buildtest.App) { a.RunImage = run + buildtest.SHA("c") }, exitcode.Integrity, []string{buildtest.SHA("c"), buildtest.SHA("a")}},
		"run image by tag": {func(a *buildtest.App) { a.RunImage = "registry.example/run:1" }, exitcode.Integrity, []string{"run image", `""`}},
		"lifecycle":        {func(a *buildtest.App) { a.Lifecycle = "0.20.0" }, exitcode.Integrity, []string{"0.20.0", "0.21.17"}},
		"platform API":     {func(a *buildtest.App) { a.PlatformAPI = "0.12" }, exitcode.Integrity, []string{"0.12", "0.15"}},
		"label":            {func(a *buildtest.App) { a.Labels["io.trainyard.source.digest"] = "sha256:x" }, exitcode.Integrity, []string{"sha256:x", buildtest.SHA("b")}},
		"root":             {func(a *buildtest.App) { a.User = "0:0" }, exitcode.BadInput, []string{`"0:0"`, "not root"}},
		"no user":          {func(a *buildtest.App) { a.User = "" }, exitcode.BadInput, []string{`""`}},
		"a user by name":   {func(a *buildtest.App) { a.User = "nobody" }, exitcode.BadInput, []string{`"nobody"`}},
	} {
		t.Run(name, func(t *testing.T) {
			a := buildtest.NewApp(run + buildtest.SHA("a"))
			c.change(a)
			i, image, err := read(t, a)
			if err != nil {
				t.Fatal(err)
			}
			err = i.Check(want())
			if err == nil || exitcode.Of(err) != c.code {
				t.Fatalf("code %d: %v", exitcode.Of(err), err)
			}
			for _, p := range append(c.parts, image) {
				if !strings.Contains(err.Error(), p) {
					t.Errorf("%q does not name %q", err, p)
				}
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	r := buildtest.NewRegistry(t)
	plain, err := random.Image(8, 1)
	if err != nil {
		t.Fatal(err)
	}
	a := buildtest.NewApp(run + buildtest.SHA("a"))
	a.Labels[lifecycleLabel] = `{"sbom":{"sha":"` + buildtest.SHA("d") + `"}}`
	bad := buildtest.NewApp(run)
	bad.Labels[buildLabel] = "{"
	for image, part := range map[string]string{
		r.Push(t, "plain:1", plain): "buildpacks have not built this image",
		r.Push(t, "index:1", mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: plain})): "not an image",
		r.Push(t, "sbom:1", a.Image(t)):        "SBOM layer " + buildtest.SHA("d"),
		r.Push(t, "bad:1", bad.Image(t)):       buildLabel,
		r.Host + "/none@" + buildtest.SHA("e"): "404",
	} {
		ref, err := r.Client.Reference(image)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Read(t.Context(), r.Client, ref)
		if exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), part) || !strings.Contains(err.Error(), image) {
			t.Errorf("%s: code %d, %v; want %q", image, exitcode.Of(err), err, part)
		}
	}
}

func FuzzLabels(f *testing.F) {
	f.Add(`{"runImage":{"reference":"a@sha256:1"},"sbom":{"sha":"sha256:2"}}`, `{"launcher":{"version":"1"}}`)
	f.Fuzz(func(t *testing.T, lifecycle, build string) {
		i := &Image{labels: map[string]string{lifecycleLabel: lifecycle, buildLabel: build}}
		if _, err := i.parse(); err == nil {
			_ = i.Check(want())
		}
	})
}
