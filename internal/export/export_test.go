package export

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	stdlog "log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/buildpacks/imgutil"
	imgutilremote "github.com/buildpacks/imgutil/remote"
	"github.com/buildpacks/lifecycle/api"
	"github.com/buildpacks/lifecycle/cmd"
	"github.com/buildpacks/lifecycle/layers"
	"github.com/buildpacks/lifecycle/log"
	"github.com/buildpacks/lifecycle/phase"
	"github.com/buildpacks/lifecycle/platform"
	"github.com/buildpacks/lifecycle/platform/files"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// TestMain plays the builder's lifecycle when the test binary is called by its name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "exporter" {
		if os.Getenv("CNB_PLATFORM_API") != "0.15" || len(os.Args) != 2 || os.Args[1] != "-version" {
			os.Exit(11)
		}
		// Next to the link that this was called by.
		version, err := os.ReadFile(filepath.Join(filepath.Dir(os.Args[0]), "version"))
		if err != nil {
			os.Exit(1)
		}
		fmt.Fprintln(os.Stdout, string(version))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// lifecycleAt returns a folder like that of a builder's lifecycle of a version.
func lifecycleAt(t *testing.T, version string) (bin string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin = t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "exporter")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"launcher": "launches", "version": version} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

const long = "a_b/targets/a-name-that-is-longer-than-a-header-of-a-tar-has-room-for/so-that-it-needs-a-second-header/and-then-some-more/of-it/trainer"

// writeBuild leaves in layers and app what the phases before export leave.
func writeBuild(t *testing.T, layers, app, run string) {
	t.Helper()
	for path, text := range map[string]string{
		filepath.Join(layers, "analyzed.toml"):                 "[run-image]\nreference = \"" + run + "\"\nimage = \"" + run + "\"\n",
		filepath.Join(layers, "group.toml"):                    "[[group]]\nid = \"a/b\"\nversion = \"1\"\napi = \"0.12\"\n",
		filepath.Join(layers, "project-metadata.toml"):         "[source]\ntype = \"project\"\n",
		filepath.Join(layers, "config/metadata.toml"):          "[[buildpacks]]\nid = \"a/b\"\nversion = \"1\"\napi = \"0.12\"\n[[processes]]\ntype = \"trainer\"\ncommand = [\"/layers/a_b/targets/trainer\"]\n[[labels]]\nkey = \"dev.trainyard.x\"\nvalue = \"y\"\n[[slices]]\npaths = [\"static/*\"]\n",
		filepath.Join(layers, "sbom/launch/a_b/sbom.cdx.json"): "{}",
		filepath.Join(layers, "a_b/targets.toml"):              "[types]\nlaunch = true\n[metadata]\nk = \"v\"\n",
		filepath.Join(layers, "a_b/targets/trainer"):           "elf",
		filepath.Join(layers, long):                            "elf too",
		filepath.Join(layers, "a_b/kept.toml"):                 "[types]\ncache = true\nbuild = true\n",
		filepath.Join(layers, "a_b/kept/module"):               "m",
		filepath.Join(app, "static/picture"):                   "p",
		filepath.Join(app, "cmd/main.go"):                      "package main\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("trainer", filepath.Join(layers, "a_b/targets/link")); err != nil {
		t.Fatal(err)
	}
}

// onAVolume gives folders what a volume with an fsGroup gives them.
func onAVolume(t *testing.T, folders ...string) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			return os.Chmod(path, info.Mode().Perm()|fs.ModeSetgid)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(folder, 0o777|fs.ModeSetgid); err != nil {
			t.Fatal(err)
		}
	}
}

// place has the folders of a build: the builder's own for layers, the volume that a
// cluster mounts, and the application's.
type place struct{ layers, volume, app, bin, registry, run string }

func newPlace(t *testing.T) place {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(stdlog.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	root := t.TempDir()
	p := place{
		layers: filepath.Join(root, "layers"), volume: filepath.Join(root, "volume"), app: filepath.Join(root, "workspace"),
		registry: strings.TrimPrefix(server.URL, "http://"),
	}
	for _, dir := range []string{p.layers, p.volume, p.app} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	base, err := random.Image(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	config, err := base.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.OS, config.Architecture, config.Config.Env = "linux", "amd64", []string{"PATH=/bin"}
	if base, err = mutate.ConfigFile(base, config); err != nil {
		t.Fatal(err)
	}
	digest, err := base.Digest()
	if err != nil {
		t.Fatal(err)
	}
	p.run = p.registry + "/run@" + digest.String()
	ref, err := name.NewDigest(p.run)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, base); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p place) digest(t *testing.T, image string) string {
	t.Helper()
	ref, err := name.NewTag(image)
	if err != nil {
		t.Fatal(err)
	}
	descriptor, err := remote.Get(ref)
	if err != nil {
		t.Fatal(err)
	}
	return descriptor.Digest.String()
}

func (p place) options(image string, log io.Writer) Options {
	return Options{
		From: p.volume, Layers: p.layers, App: p.app, Report: filepath.Join(filepath.Dir(p.layers), "report.toml"), Bin: p.bin,
		UID: os.Getuid(), GID: os.Getgid(), PlatformAPI: "0.15", Image: image, Insecure: []string{p.registry}, ProcessType: "trainer", Log: log,
	}
}

// The lifecycle's own factory of layers, on the builder's own folder, is the truth.
// This process is the builder's user; what differs on the volume are the modes.
func TestTheDigestIsThatOfTheLifecyclesExporter(t *testing.T) {
	for setting, o := range map[string]struct{ created, process string }{
		"as it comes": {"", "trainer"}, "with a time": {"1700000000", "trainer"}, "without a process": {"", ""},
	} {
		t.Run(setting, func(t *testing.T) {
			p := newPlace(t)
			p.bin = lifecycleAt(t, Version+"+0123abc")
			writeBuild(t, p.layers, p.app, p.run)
			if err := os.Chmod(p.app, 0o777); err != nil {
				t.Fatal(err)
			}
			theirs, ours := p.registry+"/theirs:v1", p.registry+"/ours:v1"
			p.exportTheirs(t, theirs, o.created, o.process)

			writeBuild(t, p.volume, t.TempDir(), p.run)
			onAVolume(t, p.volume, p.app)
			var lines bytes.Buffer
			options := p.options(ours, &lines)
			options.Created, options.ProcessType = o.created, o.process
			if err := Run(t.Context(), options); err != nil {
				t.Fatalf("%v: %s", err, lines.String())
			}
			want, got := p.digest(t, theirs), p.digest(t, ours)
			if got != want {
				t.Errorf("digest %s, the lifecycle's %s: %s", got, want, p.difference(t, theirs, ours))
			}
			var report struct {
				Image struct {
					Digest string `toml:"digest"`
				} `toml:"image"`
			}
			if _, err := toml.DecodeFile(options.Report, &report); err != nil || report.Image.Digest != got {
				t.Errorf("the report says %+v, %v", report, err)
			}
		})
	}
}

// exportTheirs exports the builder's own folder with nothing of ours between.
func (p place) exportTheirs(t *testing.T, image, created, process string) {
	t.Helper()
	group, err := files.Handler.ReadGroup(filepath.Join(p.layers, "group.toml"))
	if err != nil {
		t.Fatal(err)
	}
	project, err := files.Handler.ReadProjectMetadata(filepath.Join(p.layers, "project-metadata.toml"), cmd.DefaultLogger)
	if err != nil {
		t.Fatal(err)
	}
	options := []imgutil.ImageOption{imgutilremote.FromBaseImage(p.run), imgutilremote.WithHistory(), imgutilremote.WithRegistrySetting(p.registry, true)}
	if created != "" {
		seconds, err := strconv.ParseInt(created, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		options = append(options, imgutilremote.WithCreatedAt(time.Unix(seconds, 0)))
	}
	working, err := imgutilremote.NewImage(image, authn.DefaultKeychain, options...)
	if err != nil {
		t.Fatal(err)
	}
	exporter := &phase.Exporter{
		Buildpacks: group.Group, Logger: log.NewDefaultLogger(io.Discard), PlatformAPI: api.MustParse("0.15"),
		LayerFactory: &layers.Factory{ArtifactsDir: t.TempDir(), UID: os.Getuid(), GID: os.Getgid(), Logger: log.NewDefaultLogger(io.Discard), Ctx: t.Context()},
	}
	metadata := files.LauncherMetadata{Version: Version}
	metadata.Source.Git = files.GitMetadata{Repository: "github.com/buildpacks/lifecycle", Commit: "0123abc"}
	if _, err := exporter.Export(phase.ExportOptions{
		AppDir: p.app, DefaultProcessType: process, ExecEnv: "production", LayersDir: p.layers, Project: project,
		LauncherConfig: phase.LauncherConfig{Path: filepath.Join(p.bin, "launcher"), SBOMDir: platform.DefaultBuildpacksioSBOMDir, Metadata: metadata},
		RunImageRef:    p.run, WorkingImage: working,
	}); err != nil {
		t.Fatal(err)
	}
}

// difference tells how the configurations of two images differ.
func (p place) difference(t *testing.T, a, b string) string {
	t.Helper()
	var texts []string
	for _, image := range []string{a, b} {
		ref, err := name.NewTag(image)
		if err != nil {
			t.Fatal(err)
		}
		img, err := remote.Image(ref)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := img.RawConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, strings.ReplaceAll(string(raw), ",", ",\n"))
	}
	return cmp.Diff(texts[0], texts[1])
}

func TestTheCacheHasTheLayersAtTheirPlace(t *testing.T) {
	p := newPlace(t)
	p.bin = lifecycleAt(t, Version)
	writeBuild(t, p.volume, p.app, p.run)
	onAVolume(t, p.volume, p.app)
	o := p.options(p.registry+"/ours:v1", io.Discard)
	o.CacheImage = p.registry + "/cache:v1"
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	ref, err := name.NewTag(o.CacheImage)
	if err != nil {
		t.Fatal(err)
	}
	cached, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	text := mutate.Extract(cached)
	defer func() { _ = text.Close() }()
	for r := tar.NewReader(text); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found["/"+strings.Trim(h.Name, "/")] = h.Mode
	}
	if found[p.layers+"/a_b/kept"] != 0o755 || found[p.layers+"/a_b/kept/module"] != 0o644 {
		t.Errorf("the cache has %v", found)
	}
}

func TestHeadersAreThoseOfTheBuildersUser(t *testing.T) {
	own := t.TempDir()
	if err := os.Chmod(own, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.Stat(own)
	if err != nil {
		t.Fatal(err)
	}
	f := &factory{Factory: &layers.Factory{UID: 1001, GID: 1000}, from: "/volume", to: "/layers", root: root}
	for name, c := range map[string]struct{ in, want tar.Header }{
		"folder above a layer": {
			tar.Header{Typeflag: tar.TypeDir, Name: "/volume/a_b", Mode: 0o2755, Uid: 1000680000, Gid: 1000680000},
			tar.Header{Typeflag: tar.TypeDir, Name: "/layers/a_b", Mode: 0o755, Uid: 1001, Gid: 1000},
		},
		"the layers' folder is the builder's": {
			tar.Header{Typeflag: tar.TypeDir, Name: "/volume", Mode: 0o2777, Gid: 1000680000},
			tar.Header{Typeflag: tar.TypeDir, Name: "/layers", Mode: 0o755, Uid: os.Getuid(), Gid: os.Getgid()},
		},
		"link": {
			tar.Header{Typeflag: tar.TypeSymlink, Name: "/volume/a_b/x/l", Linkname: "/layers/a_b/x/t", Mode: 0o777, Uid: 1001, Gid: 1000},
			tar.Header{Typeflag: tar.TypeSymlink, Name: "/layers/a_b/x/l", Linkname: "/layers/a_b/x/t", Mode: 0o777, Uid: 1001, Gid: 1000},
		},
		"a program keeps its bit": {
			tar.Header{Typeflag: tar.TypeReg, Name: "/volume/a_b/x/p", Mode: 0o2755, Uid: 1001, Gid: 1000},
			tar.Header{Typeflag: tar.TypeReg, Name: "/layers/a_b/x/p", Mode: 0o2755, Uid: 1001, Gid: 1000},
		},
		"application": {
			tar.Header{Typeflag: tar.TypeDir, Name: "/workspace", Mode: 0o2777, Uid: 1001, Gid: 1000},
			tar.Header{Typeflag: tar.TypeDir, Name: "/workspace", Mode: 0o777, Uid: 1001, Gid: 1000},
		},
		"a name that only begins so": {
			tar.Header{Typeflag: tar.TypeReg, Name: "/volumes/x", Mode: 0o644, Uid: 5, Gid: 6},
			tar.Header{Typeflag: tar.TypeReg, Name: "/volumes/x", Mode: 0o644, Uid: 5, Gid: 6},
		},
	} {
		got, err := f.header(&c.in)
		if err != nil {
			t.Fatal(err)
		}
		if name == "the layers' folder is the builder's" {
			got.ModTime, got.AccessTime, got.ChangeTime = c.want.ModTime, c.want.AccessTime, c.want.ChangeTime
		}
		if d := cmp.Diff(&c.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestAnotherLifecycleIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		version, theirs, ours string
		refused               bool
	}{
		"the same":            {Version, "go1.26.6", "go1.26.8", false},
		"another version":     {"0.20.1", "go1.26.6", "go1.26.6", true},
		"another Go":          {Version, "go1.25.9", "go1.26.6", true},
		"ten is not one":      {Version, "go1.2", "go1.26.6", true},
		"a build that is new": {Version, "go1.27-devel_0123abc", "go1.26.6", true},
	} {
		err := same(c.version, c.theirs, c.ours)
		if (err != nil) != c.refused || c.refused && (exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), c.version) || !strings.Contains(err.Error(), "nonroot-v2")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := newPlace(t)
	p.bin = lifecycleAt(t, "0.0.9")
	writeBuild(t, p.volume, p.app, p.run)
	if err := Run(t.Context(), p.options(p.registry+"/ours:v1", io.Discard)); exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), "0.0.9") {
		t.Errorf("%v", err)
	}
	p.bin = t.TempDir()
	if err := Run(t.Context(), p.options(p.registry+"/ours:v1", io.Discard)); exitcode.Of(err) != exitcode.BadInput {
		t.Errorf("no lifecycle: %v", err)
	}
}

func TestVersionIsThatOfGoMod(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\n\tgithub.com/buildpacks/lifecycle v"+Version+"\n") {
		t.Errorf("go.mod does not require lifecycle v%s", Version)
	}
	if minor(runtime.Version()) == "." {
		t.Errorf("no minor version in %s", runtime.Version())
	}
}

func TestRunSaysWhatIsMissing(t *testing.T) {
	p := newPlace(t)
	p.bin = lifecycleAt(t, Version)
	o := p.options(p.registry+"/ours:v1", io.Discard)
	if err := Run(t.Context(), o); err == nil {
		t.Error("without a build before it")
	}
	writeBuild(t, p.volume, p.app, p.registry+"/no-such@sha256:"+strings.Repeat("0", 64))
	if err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no-such") {
		t.Errorf("without a run image: %v", err)
	}
	extended := "[run-image]\nreference = \"" + p.run + "\"\nimage = \"" + p.run + "\"\nextend = true\n"
	if err := os.WriteFile(filepath.Join(p.volume, "analyzed.toml"), []byte(extended), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), o); exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), "extensions") {
		t.Errorf("with an extension: %v", err)
	}
	o.Layers = filepath.Join(p.layers, "no")
	if err := Run(t.Context(), o); exitcode.Of(err) != exitcode.BadInput || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a folder of the builder: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	o.Layers = p.layers
	if err := Run(ctx, o); err == nil {
		t.Error("cancelled before it began")
	}
}
