package plan

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/trainyard/internal/buildtest"
	"github.com/trainyard/trainyard/internal/exitcode"
)

// yard is a checkout, a registry, a builder and options that fit together.
type yard struct {
	*buildtest.Registry
	builder *buildtest.Builder
	options Options
	log     []string
	files   map[string]string
}

const descriptor = `[_]
schema-version = "0.2"
[io.buildpacks]
include = ["/go.mod", "/go.sum", "/cmd", "/vendor"]
[[io.buildpacks.build.env]]
name = "BP_GO_TARGETS"
value = "./cmd/trainer"
[[io.buildpacks.build.env]]
name = "BP_GO_BUILD_FLAGS"
value = "-buildmode=default -trimpath"
`

func newYard(t *testing.T) *yard {
	t.Helper()
	y := &yard{Registry: buildtest.NewRegistry(t)}
	y.Push(t, "run:1", buildtest.RunImage(t))
	y.builder = buildtest.NewBuilder(y.Host + "/run:1")
	y.files = map[string]string{
		"project.toml": descriptor, "README.md": "read me",
		"trainer/go.mod": "module x\n\ngo 1.25.0\n", "trainer/go.sum": "a v1 h1:x\n", "trainer/cmd/trainer/main.go": "package main\n", "trainer/notes.txt": "not included",
	}
	y.options = Options{Workspace: t.TempDir(), Folder: "trainer", Descriptor: "project.toml", Image: y.Host + "/team/trainer:v1", Insecure: []string{y.Host, ""},
		Platform: v1.Platform{OS: "linux", Architecture: "amd64"}, Revision: "abc"}
	return y
}

// make writes the checkout, pushes the builder unless one is named, and plans.
func (y *yard) make(t *testing.T) (*File, error) {
	t.Helper()
	for name, content := range y.files {
		p := filepath.Join(y.options.Workspace, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if y.options.Builder == "" {
		y.options.Builder = y.Push(t, "builder:1", y.builder.Image(t))
	}
	y.options.Out = filepath.Join(t.TempDir(), "out")
	y.options.Log = func(format string, args ...any) { y.log = append(y.log, fmt.Sprintf(format, args...)) }
	return Make(t.Context(), y.Client, y.options)
}

func (y *yard) must(t *testing.T) *File {
	t.Helper()
	f, err := y.make(t)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func paths(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, p)
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestMakeWritesAPlan(t *testing.T) {
	y := newYard(t)
	f := y.must(t)
	want := []string{"plan.json", "platform/env/BP_GO_BUILD_FLAGS", "platform/env/BP_GO_TARGETS", "platform/env/BP_IMAGE_LABELS",
		"source/cmd/trainer/main.go", "source/go.mod", "source/go.sum"}
	if d := cmp.Diff(want, paths(t, y.options.Out)); d != "" {
		t.Error(d)
	}
	run := y.Host + "/run@" + buildtest.Digest(t, mustImage(t, y, "run:1"))
	switch {
	case f.Action != Phases, f.Image != y.Host+"/team/trainer:v1", f.PlatformAPI != "0.15", f.UID != 1001, f.GID != 1000, f.Lifecycle != "0.21.17":
		t.Errorf("%+v", f)
	case f.RunImage != run:
		t.Errorf("run image %s, want %s", f.RunImage, run)
	case f.Build != y.Host+"/team/trainer:src-"+f.Key[:40]:
		t.Errorf("build tag %s of key %s", f.Build, f.Key)
	case f.ProcessType != "": // I-05: the buildpacks know their processes
		t.Errorf("process type %q", f.ProcessType)
	case !slices.Equal(f.Insecure, []string{y.Host}):
		t.Errorf("insecure %q", f.Insecure)
	}
	read, err := Read(y.options.Out)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(f, read); d != "" {
		t.Errorf("read back: %s", d)
	}
	labels, _ := os.ReadFile(filepath.Join(y.options.Out, "platform/env/BP_IMAGE_LABELS"))
	if want := BuilderLabel + "=" + f.BuilderDigest + " " + SourceLabel + "=" + f.SourceDigest; string(labels) != want {
		t.Errorf("labels %q, want %q", labels, want)
	}
}

// mustImage reads an image back.
func mustImage(t *testing.T, y *yard, image string) v1.Image {
	t.Helper()
	ref, err := y.Client.Reference(y.Host + "/" + image)
	if err != nil {
		t.Fatal(err)
	}
	img, err := y.Client.Image(t.Context(), ref, y.options.Platform)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// Any value reaches the buildpacks byte for byte, and assignments win.
func TestEnvironmentOfTheBuildpacks(t *testing.T) {
	y := newYard(t)
	y.files["project.toml"] += "[[io.buildpacks.build.env]]\nname = \"LINES\"\nvalue = \"one\\n two = 2\\n\"\n[[io.buildpacks.build.env]]\nname = \"EMPTY\"\nvalue = \"\"\n" +
		"[[io.buildpacks.build.env]]\nname = \"BP_IMAGE_LABELS\"\nvalue = \"a=b c='d e' \"\n"
	y.options.Env = []string{"BP_GO_BUILD_LDFLAGS=-X main.a=b=c -X 'main.d=e f'", "BP_GO_TARGETS=", "GOPROXY=http://proxy"}
	f := y.must(t)
	for name, want := range map[string]string{
		"LINES": "one\n two = 2\n", "EMPTY": "", "BP_GO_BUILD_LDFLAGS": "-X main.a=b=c -X 'main.d=e f'", "BP_GO_TARGETS": "", "GOPROXY": "http://proxy",
		"BP_IMAGE_LABELS": "a=b c='d e' " + BuilderLabel + "=" + f.BuilderDigest + " " + SourceLabel + "=" + f.SourceDigest,
	} {
		got, err := os.ReadFile(filepath.Join(y.options.Out, PlatformDir, "env", name))
		if err != nil || string(got) != want {
			t.Errorf("%s is %q, want %q: %v", name, got, want, err)
		}
	}
}

func TestCAFileIsTrustedWhereItExists(t *testing.T) {
	y := newYard(t)
	y.options.CAFile = filepath.Join(t.TempDir(), "ca.crt")
	y.must(t)
	file := filepath.Join(y.options.Out, PlatformDir, "env", "SSL_CERT_FILE")
	if _, err := os.Stat(file); err == nil {
		t.Error("a file that does not exist is trusted")
	}
	if err := os.WriteFile(y.options.CAFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	y.must(t)
	if got, _ := os.ReadFile(filepath.Join(y.options.Out, PlatformDir, "env", "SSL_CERT_FILE")); string(got) != y.options.CAFile {
		t.Errorf("SSL_CERT_FILE is %q", got)
	}
}

// The key, and with it the tag, follows everything that can change the image, and
// nothing else.
func TestKey(t *testing.T) {
	base := newYard(t)
	b := base.must(t)
	again := func(change func(*yard)) *File {
		t.Helper()
		y := &yard{Registry: base.Registry, builder: base.builder, options: base.options, files: map[string]string{}}
		for k, v := range base.files {
			y.files[k] = v
		}
		y.options.Workspace = t.TempDir()
		change(y)
		return y.must(t)
	}
	for name, change := range map[string]func(*yard){
		"nothing":                  func(*yard) {},
		"a file that is not built": func(y *yard) { y.files["trainer/notes.txt"] = "other"; y.files["README.md"] = "other" },
		"the commit":               func(y *yard) { y.options.Revision = "def" },
		"the tag":                  func(y *yard) { y.options.Image = y.Host + "/team/trainer:v2" },
		"another repository":       func(y *yard) { y.options.Image = y.Host + "/other/trainer:v1" },
		"the way to modules": func(y *yard) {
			y.options.Env = []string{"GOPROXY=http://other", "GONOSUMDB=*", "https_proxy=x", "SSL_CERT_FILE=/x"}
		},
		"the cache":                 func(y *yard) { y.options.CacheImage = y.Host + "/team/cache:1" },
		"one step for all":          func(y *yard) { y.options.Creator = true },
		"the same variable again":   func(y *yard) { y.options.Env = []string{"BP_GO_TARGETS=./cmd/trainer"} },
		"the run image by its name": func(y *yard) { y.options.RunImage = y.Host + "/run:1" },
	} {
		t.Run("same after "+name, func(t *testing.T) {
			if f := again(change); f.Key != b.Key {
				t.Error("another key")
			}
		})
	}
	other := buildtest.NewBuilder(base.Host + "/run:1")
	other.Lifecycle = "0.21.18"
	seen := map[string]string{b.Key: "nothing"}
	for name, change := range map[string]func(*yard){
		"one byte of source":   func(y *yard) { y.files["trainer/cmd/trainer/main.go"] = "package Main\n" },
		"one more file":        func(y *yard) { y.files["trainer/cmd/x.go"] = "package x" },
		"the builder":          func(y *yard) { y.options.Builder = y.Push(t, "builder:2", other.Image(t)) },
		"the run image":        func(y *yard) { y.Push(t, "run:2", buildtest.RunImage(t)); y.options.RunImage = y.Host + "/run:2" },
		"a variable":           func(y *yard) { y.options.Env = []string{"BP_GO_BUILD_LDFLAGS=-s"} },
		"a variable's name":    func(y *yard) { y.options.Env = []string{"BP_GO_BUILD_LDFLAG=S-s"} },
		"flags of go":          func(y *yard) { y.options.Env = []string{"GOFLAGS=-tags=x"} },
		"the process":          func(y *yard) { y.options.ProcessType = "trainer" },
		"the time of creation": func(y *yard) { y.options.Created = "1" },
		"the order": func(y *yard) {
			y.files["project.toml"] += "[[io.buildpacks.group]]\nid = \"paketo-buildpacks/go-build\"\n"
		},
	} {
		t.Run("another after "+name, func(t *testing.T) {
			f := again(change)
			if same, twice := seen[f.Key]; twice {
				t.Errorf("the key of %q", same)
			}
			seen[f.Key] = name
		})
	}
}

func app(f *File) *buildtest.App {
	a := buildtest.NewApp(f.RunImage)
	a.Labels[SourceLabel], a.Labels[BuilderLabel] = f.SourceDigest, f.BuilderDigest
	return a
}

func TestAnImageThatIsThereIsFound(t *testing.T) {
	y := newYard(t)
	f := y.must(t)
	_, tagged, _ := strings.Cut(f.Build, "/")
	want := y.Push(t, tagged, app(f).Image(t))
	writes := y.Writes()

	again := y.must(t)
	if again.Action != Found || !strings.HasSuffix(want, "@"+again.FoundDigest) {
		t.Errorf("action %s, digest %s, want %s", again.Action, again.FoundDigest, want)
	}
	y.options.Rebuild = true
	if f := y.must(t); f.Action != Phases || f.FoundDigest != "" {
		t.Errorf("with rebuild: %s %s", f.Action, f.FoundDigest)
	}
	if y.Writes() != writes {
		t.Error("planning wrote to the registry")
	}
}

func TestAnImageThatDoesNotFitIsNotFound(t *testing.T) {
	for name, change := range map[string]func(*buildtest.App){
		"of another source":    func(a *buildtest.App) { a.Labels[SourceLabel] = buildtest.SHA("1") },
		"of another builder":   func(a *buildtest.App) { a.Labels[BuilderLabel] = buildtest.SHA("1") },
		"on another run image": func(a *buildtest.App) { a.RunImage = "x/run@" + buildtest.SHA("1") },
		"by another lifecycle": func(a *buildtest.App) { a.Lifecycle = "0.1" },
		"for another machine":  func(a *buildtest.App) { a.Arch = "arm64" },
		"of no buildpack":      func(a *buildtest.App) { a.Labels["io.buildpacks.build.metadata"] = "" },
		"as root":              func(a *buildtest.App) { a.User = "root" },
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			f := y.must(t)
			a := app(f)
			change(a)
			_, tagged, _ := strings.Cut(f.Build, "/")
			y.Push(t, tagged, a.Image(t))
			if again := y.must(t); again.Action != Phases || again.FoundDigest != "" {
				t.Errorf("action %s, digest %s", again.Action, again.FoundDigest)
			}
			if !slices.ContainsFunc(y.log, func(l string) bool { return strings.Contains(l, "what is there is not used") }) {
				t.Errorf("nothing said so: %q", y.log)
			}
		})
	}
}

func TestLookupFailures(t *testing.T) {
	for status, fails := range map[int]bool{http.StatusInternalServerError: true, http.StatusUnauthorized: false, http.StatusForbidden: false} {
		y := newYard(t)
		y.must(t)
		y.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/manifests/src-") {
				w.WriteHeader(status)
				return true
			}
			return false
		}
		f, err := y.make(t)
		if (err != nil) != fails || fails && exitcode.Of(err) != exitcode.IO {
			t.Errorf("%d: %v", status, err)
		}
		if !fails && (f.Action != Phases || !strings.Contains(strings.Join(y.log, "\n"), "cannot look for an earlier build")) {
			t.Errorf("%d: %+v, log %q", status, f, y.log)
		}
	}
}

// Every refusal comes before anything is built, names both sides in one line, and
// leaves neither files nor tags behind.
func TestMakeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*testing.T, *yard)
		code   int
		parts  []string
	}{
		// I-07
		"no common platform API": {func(_ *testing.T, y *yard) { y.builder.Platform, y.builder.Deprecated = []string{"0.3", "0.4"}, nil },
			exitcode.BadInput, []string{"lifecycle 0.21.17", "0.3, 0.4", "0.12, 0.13, 0.14, 0.15"}},
		"buildpack API": {func(_ *testing.T, y *yard) { y.builder.BuildpackAPIs = []string{"0.10", "0.12"} },
			exitcode.BadInput, []string{"0.10, 0.12", "paketo-buildpacks/go-build 2.4.20", "0.7"}},
		"extensions": {func(_ *testing.T, y *yard) { y.builder.Extensions = true }, exitcode.BadInput, []string{"builder " + "127", "extensions", "without root"}},
		"insecure registry with an old lifecycle": {func(_ *testing.T, y *yard) { y.builder.Platform = []string{"0.12"} },
			exitcode.BadInput, []string{"0.12", "need 0.13"}},
		// I-08
		"Go too old": {func(_ *testing.T, y *yard) { y.files["trainer/go.mod"] = "module x\ngo 1.27\n" },
			exitcode.BadInput, []string{"go.mod wants Go 1.27", "paketo-buildpacks/go-dist@2.10.9", "1.25.14, 1.26.7"}},
		"BP_GO_VERSION not there": {func(_ *testing.T, y *yard) { y.options.Env = []string{"BP_GO_VERSION=1.24.*"} },
			exitcode.BadInput, []string{"1.24.*", "1.25.0", "1.26.7"}},
		"no way to modules": {func(_ *testing.T, y *yard) { y.options.Env = []string{"GOPROXY=off"} },
			exitcode.BadInput, []string{"GOPROXY is off", "vendor/modules.txt"}},
		"builder by tag": {func(t *testing.T, y *yard) {
			y.Push(t, "builder:1", y.builder.Image(t))
			y.options.Builder = y.Host + "/builder:1"
		}, exitcode.BadInput, []string{"/builder:1 is named by tag", "/builder@sha256:"}},
		"builder that is none": {func(t *testing.T, y *yard) { y.options.Builder = y.Push(t, "x/run:1", buildtest.RunImage(t)) }, exitcode.BadInput, []string{"not a builder"}},
		"builder missing":      {func(_ *testing.T, y *yard) { y.options.Builder = y.Host + "/none:1" }, exitcode.BadInput, []string{"builder: ", "/none:1", "404"}},
		"run image missing":    {func(_ *testing.T, y *yard) { y.options.RunImage = y.Host + "/none:1" }, exitcode.BadInput, []string{"run image: ", "/none:1", "404"}},
		"no run image at all":  {func(_ *testing.T, y *yard) { y.builder.RunImage = "" }, exitcode.BadInput, []string{"names no run image"}},
		"run image for another machine": {func(t *testing.T, y *yard) {
			a := buildtest.NewApp("x")
			a.Arch = "arm64"
			y.options.RunImage = y.Push(t, "arm:1", a.Image(t))
		}, exitcode.BadInput, []string{"linux/arm64", "linux/amd64"}},
		"run image as root": {func(t *testing.T, y *yard) {
			a := buildtest.NewApp("x")
			a.User = ""
			y.options.RunImage = y.Push(t, "root:1", a.Image(t))
		}, exitcode.BadInput, []string{"USER", "run image"}},
		"malformed descriptor":      {func(_ *testing.T, y *yard) { y.files["project.toml"] = "[[[" }, exitcode.BadInput, []string{"project.toml: "}},
		"unknown schema":            {func(_ *testing.T, y *yard) { y.files["project.toml"] = "[_]\nschema-version = \"9\"\n" }, exitcode.BadInput, []string{"project.toml: ", "9"}},
		"no descriptor":             {func(_ *testing.T, y *yard) { y.options.Descriptor = "other.toml" }, exitcode.BadInput, []string{"other.toml"}},
		"descriptor from elsewhere": {func(_ *testing.T, y *yard) { y.options.Descriptor = "../../etc/passwd" }, exitcode.BadInput, []string{"../../etc/passwd", "escapes"}},
		"no source folder":          {func(_ *testing.T, y *yard) { y.options.Folder = "none" }, exitcode.BadInput, []string{"source folder none"}},
		"source through a link": {func(t *testing.T, y *yard) {
			if err := os.Symlink(t.TempDir(), filepath.Join(y.options.Workspace, "out")); err != nil {
				t.Fatal(err)
			}
			y.options.Folder = "out"
		}, exitcode.BadInput, []string{"source folder out", "escapes"}},
		"checkout through a link": {func(t *testing.T, y *yard) {
			if err := os.Symlink(t.TempDir(), filepath.Join(y.options.Workspace, "checkout")); err != nil {
				t.Fatal(err)
			}
			y.options.Path = "checkout"
		}, exitcode.BadInput, []string{"source folder checkout", "escapes"}},
		"nothing selected": {func(_ *testing.T, y *yard) {
			y.files["project.toml"] = "[_]\nschema-version=\"0.2\"\n[io.buildpacks]\ninclude=[\"/x\"]\n"
		}, exitcode.BadInput, []string{"no file is selected"}},
		"buildpack not there": {func(_ *testing.T, y *yard) { y.files["project.toml"] += "[[io.buildpacks.group]]\nid = \"a/b\"\n" }, exitcode.BadInput, []string{"a/b", "paketo-buildpacks/go-dist 2.10.9"}},
		"buildpack version": {func(_ *testing.T, y *yard) {
			y.files["project.toml"] += "[[io.buildpacks.pre.group]]\nid = \"paketo-buildpacks/go-dist\"\nversion = \"1.0.0\"\n"
		}, exitcode.BadInput, []string{"go-dist 1.0.0", "2.10.9"}},
		"image without a tag":       {func(_ *testing.T, y *yard) { y.options.Image = y.Host + "/team/trainer" }, exitcode.BadInput, []string{"names no tag"}},
		"image by digest":           {func(_ *testing.T, y *yard) { y.options.Image = y.Host + "/team/trainer@" + buildtest.SHA("1") }, exitcode.BadInput, []string{"names no tag"}},
		"image that is no name":     {func(_ *testing.T, y *yard) { y.options.Image = "A b" }, exitcode.BadInput, []string{`"A b"`}},
		"variable that is none":     {func(_ *testing.T, y *yard) { y.options.Env = []string{"NOVALUE"} }, exitcode.Usage, []string{"NOVALUE"}},
		"variable with a path":      {func(_ *testing.T, y *yard) { y.options.Env = []string{"../x=1"} }, exitcode.Usage, []string{"../x=1"}},
		"time that is none":         {func(_ *testing.T, y *yard) { y.options.Created = "now" }, exitcode.Usage, []string{`"now"`}},
		"cache over the image":      {func(_ *testing.T, y *yard) { y.options.CacheImage = y.options.Image }, exitcode.BadInput, []string{"is the image itself"}},
		"name too long for results": {func(_ *testing.T, y *yard) { y.options.Image = y.Host + "/" + strings.Repeat("long/", 40) + "x:1" }, exitcode.BadInput, []string{"of 1024", "IMAGE_REF"}},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			c.change(t, y)
			_, err := y.make(t)
			if err == nil || exitcode.Of(err) != c.code {
				t.Fatalf("code %d: %v", exitcode.Of(err), err)
			}
			for _, p := range c.parts {
				if !strings.Contains(err.Error(), p) {
					t.Errorf("%q does not name %q", err, p)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a line: %q", err)
			}
			if _, err := os.Stat(y.options.Out); err == nil {
				t.Errorf("left %v", paths(t, y.options.Out))
			}
			if d := y.Digest(t, "team/trainer:v1"); d != (v1.Hash{}) {
				t.Errorf("the final tag is %s", d)
			}
		})
	}
}

func TestAPlanIsNotOverwritten(t *testing.T) {
	y := newYard(t)
	y.must(t)
	_, err := Make(t.Context(), y.Client, y.options)
	if exitcode.Of(err) != exitcode.Conflict {
		t.Fatalf("%v", err)
	}
	if _, err := Read(y.options.Out); err != nil {
		t.Errorf("the first plan is gone: %v", err)
	}
}

// A failure in a folder that holds other files, such as the tool itself, takes only
// the plan's own away.
func TestAFailureLeavesOtherFilesAlone(t *testing.T) {
	y := newYard(t)
	y.must(t)
	out := t.TempDir()
	if err := os.WriteFile(filepath.Join(out, "yard"), []byte("tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	o := y.options
	o.Out, o.Env = out, []string{"GOPROXY=off"}
	if _, err := Make(t.Context(), y.Client, o); err == nil {
		t.Fatal("no error")
	}
	if got := paths(t, out); !slices.Equal(got, []string{"yard"}) {
		t.Errorf("left %v", got)
	}
}

func TestRunImageIsFoundAsTheLifecycleWould(t *testing.T) {
	y := newYard(t)
	y.Push(t, "mirror/run:1", buildtest.RunImage(t))
	for name, c := range map[string]struct {
		image   string
		mirrors []string
		want    string
	}{
		"the only one":                     {y.Host + "/run:1", nil, "/run@"},
		"a mirror on the image's registry": {"127.0.0.1:1/run:1", []string{"127.0.0.1:2/run:1", y.Host + "/mirror/run:1"}, "/mirror/run@"},
		"the next when the first is gone":  {y.Host + "/gone:1", []string{y.Host + "/mirror/run:1"}, "/mirror/run@"},
		"the image before a mirror nearby": {y.Host + "/run:1", []string{y.Host + "/mirror/run:1"}, "/run@"},
	} {
		t.Run(name, func(t *testing.T) {
			z := newYard(t)
			z.Registry = y.Registry
			z.options.Image, z.options.Insecure = y.Host+"/team/trainer:v1", []string{y.Host}
			z.builder.RunImage, z.builder.Mirrors = c.image, c.mirrors
			if f := z.must(t); !strings.HasPrefix(f.RunImage, y.Host+c.want) {
				t.Errorf("%s, want %s", f.RunImage, c.want)
			}
		})
	}
}

func TestOrderOfTheProject(t *testing.T) {
	y := newYard(t)
	y.files["project.toml"] += "[[io.buildpacks.pre.group]]\nid = \"paketo-buildpacks/go-build\"\n[[io.buildpacks.post.group]]\nid = \"paketo-buildpacks/go-dist\"\nversion = \"2.10.9\"\n"
	if f := y.must(t); !f.Order {
		t.Error("no order in the plan")
	}
	got, err := os.ReadFile(filepath.Join(y.options.Out, OrderFile))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for line := range strings.Lines(string(got)) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), " = "); ok && k == "id" {
			ids = append(ids, strings.Trim(v, `"`))
		}
	}
	if want := []string{"paketo-buildpacks/go-build", "paketo-buildpacks/go-dist", "paketo-buildpacks/go-build", "paketo-buildpacks/go-dist"}; !slices.Equal(ids, want) {
		t.Errorf("%v, want %v in\n%s", ids, want, got)
	}
}

// Modules of vendor/ need no proxy; a vendor/ that is not selected is told.
func TestVendoredModules(t *testing.T) {
	y := newYard(t)
	y.files["trainer/vendor/modules.txt"] = "# a v1\n"
	y.files["trainer/vendor/a/a.go"] = "package a\n"
	y.options.Env = []string{"GOPROXY=off"}
	y.must(t)
	if got := paths(t, filepath.Join(y.options.Out, SourceDir)); !slices.Contains(got, "vendor/a/a.go") {
		t.Errorf("vendor is not in the copy: %v", got)
	}
	if !strings.Contains(strings.Join(y.log, "\n"), "modules of vendor/") {
		t.Errorf("log %q", y.log)
	}

	y = newYard(t)
	y.files["trainer/vendor/modules.txt"] = "# a v1\n"
	y.files["project.toml"] = strings.Replace(descriptor, `, "/vendor"`, "", 1)
	y.must(t)
	if !strings.Contains(strings.Join(y.log, "\n"), "does not include it") {
		t.Errorf("log %q", y.log)
	}
}

func TestTheBuildersNewestGoIsEnough(t *testing.T) {
	y := newYard(t)
	y.files["trainer/go.mod"] = "module x\ngo 1.26.7\n"
	y.must(t)
}

func TestAnotherBuilderThanTheProjectsIsTold(t *testing.T) {
	for builder, told := range map[string]bool{"other.example/builder:1": true, "": false} {
		y := newYard(t)
		y.files["project.toml"] = strings.Replace(descriptor, "include", "builder = \""+builder+"\"\ninclude", 1)
		y.must(t)
		if all := strings.Join(y.log, "\n"); strings.Contains(all, "was asked for and is used") != told {
			t.Errorf("builder %q: log %q", builder, all)
		}
	}
}

func TestAProxysPasswordIsNotLogged(t *testing.T) {
	y := newYard(t)
	y.options.Env = []string{"GOPROXY=https://me:s3cret@proxy"}
	y.must(t)
	if all := strings.Join(y.log, "\n"); strings.Contains(all, "s3cret") || !strings.Contains(all, "GOPROXY") {
		t.Errorf("log %q", all)
	}
}

func TestTheCheckoutStaysAsItIs(t *testing.T) {
	y := newYard(t)
	y.must(t)
	before := map[string]string{}
	look := func(into map[string]string) {
		err := filepath.WalkDir(y.options.Workspace, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, _ := d.Info()
			into[p] = fmt.Sprint(info.Mode(), info.ModTime().UnixNano(), info.Size())
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	look(before)
	o := y.options
	o.Out = filepath.Join(t.TempDir(), "out")
	if _, err := Make(t.Context(), y.Client, o); err != nil {
		t.Fatal(err)
	}
	after := map[string]string{}
	look(after)
	if d := cmp.Diff(before, after); d != "" {
		t.Error(d)
	}
}

func TestGoLine(t *testing.T) {
	for mod, want := range map[string]string{
		"module x\n\ngo 1.25.0\n": "1.25.0", "go 1.26 // comment\n": "1.26", "\tgo  1.25rc1\r\n": "1.25rc1",
		"module x\n": "", "// go 1.20\nmodule go 1.3\n": "", "toolchain go1.26.1\ngo 1.25\n": "1.25",
	} {
		if got := goLine(mod); got != want {
			t.Errorf("%q: %q, want %q", mod, got, want)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		wish, version string
		want          bool
	}{
		{"1.26.7", "1.26.7", true}, {"1.26.7", "1.26.8", false}, {"1.26.*", "1.26.8", true}, {"1.26", "1.26.8", true}, {"1.x", "1.26.8", true},
		{"1.25.*", "1.26.8", false}, {"*", "1.26.8", true}, {">= 1.2", "1.26.8", true}, {"~1.25", "1.26.8", true}, {"1.26.8.1", "1.26.8", false},
	} {
		if got := matches(c.wish, c.version); got != c.want {
			t.Errorf("%s for %s: %v", c.wish, c.version, got)
		}
	}
}

func TestReadRefusesWhatIsNoPlan(t *testing.T) {
	if _, err := Read(t.TempDir()); exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), "yard plan") {
		t.Errorf("nothing there: %v", err)
	}
	for content, part := range map[string]string{
		"{": "unexpected EOF", `{"schema":9}`: "schema 9", `{"schema":1,"action":"x"}`: `"x"`, `{"schema":1,"action":"phases"}`: "no image", `{"what":1}`: "what",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, FileName), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Read(dir)
		if exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), part) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", content, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"schema":1,"action":"phases","image":"a","build":"b","runImage":"c@sha256:1","platformAPI":"0.15"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := decode(b); err == nil {
			_ = p.Want()
		}
	})
}

func FuzzGoLine(f *testing.F) {
	f.Add("go 1.25")
	f.Fuzz(func(t *testing.T, s string) {
		if v := goLine(s); strings.ContainsAny(v, " \t\n") {
			t.Errorf("%q", v)
		}
	})
}
