package pin

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/trainyard/internal/buildtest"
	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/plan"
	"github.com/trainyard/trainyard/internal/registryclient"
)

// site is a registry with a plan whose image was just exported.
type site struct {
	*buildtest.Registry
	file   *plan.File
	app    *buildtest.App
	report string
	log    []string
	Options
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Registry: buildtest.NewRegistry(t)}
	run := s.Push(t, "run:1", buildtest.RunImage(t))
	s.app = buildtest.NewApp(run)
	s.file = &plan.File{
		Schema: 1, Action: plan.Phases, Image: s.Host + "/team/app:v1", Build: s.Host + "/team/app:src-0123", RunImage: run, BuilderDigest: buildtest.SHA("b"),
		PlatformAPI: "0.15", Lifecycle: "0.21.17", OS: "linux", Arch: "amd64", Insecure: []string{s.Host}, SourceDigest: buildtest.SHA("a"), Revision: "abc",
		Labels: plan.Labels(buildtest.SHA("a"), buildtest.SHA("b")),
	}
	s.app.Labels[plan.SourceLabel] = buildtest.SHA("a")
	dir := t.TempDir()
	s.Options = Options{Plan: dir, Report: filepath.Join(dir, "report.toml"), Results: t.TempDir(),
		Log: func(format string, args ...any) { s.log = append(s.log, fmt.Sprintf(format, args...)) }}
	return s
}

// export pushes the image under the build's tag and writes report and plan.
func (s *site) export(t *testing.T) string {
	t.Helper()
	ref := s.Push(t, "team/app:src-0123", s.app.Image(t))
	_, digest, _ := strings.Cut(ref, "@")
	if s.report == "" {
		s.report = fmt.Sprintf("[image]\ntags = [%q]\ndigest = %q\nmanifest-size = 1000\n", s.file.Build, digest)
	}
	write(t, s.Report, s.report)
	write(t, filepath.Join(s.Plan, plan.FileName), buildtest.JSON(t, s.file))
	return digest
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func results(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = string(b)
	}
	return got
}

func (s *site) wantResults(t *testing.T, digest, hit string) map[string]string {
	t.Helper()
	m, err := s.app.Image(t).Manifest()
	if err != nil {
		t.Fatal(err)
	}
	repo := s.Host + "/team/app"
	return map[string]string{
		"IMAGE_URL": repo, "IMAGE_DIGEST": digest, "IMAGE_REF": repo + "@" + digest, "SOURCE_DIGEST": buildtest.SHA("a"), "BUILDER_DIGEST": buildtest.SHA("b"),
		"SBOM_URL": repo + "@" + m.Layers[1].Digest.String(), "CACHE_HIT": hit,
	}
}

// I-48: every result on every successful path, and none with a line break.
func TestPin(t *testing.T) {
	s := newSite(t)
	digest := s.export(t)
	p, err := Pin(t.Context(), s.Options)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s.wantResults(t, digest, "false"), results(t, s.Results)); d != "" {
		t.Error(d)
	}
	if got := s.Digest(t, "team/app:v1"); got.String() != digest {
		t.Errorf("final tag %s, want %s", got, digest)
	}
	if p.Ref != s.Host+"/team/app@"+digest || p.Size <= 0 || p.Revision != "abc" || p.FromCache {
		t.Errorf("%+v", p)
	}
	if !strings.Contains(strings.Join(s.log, "\n"), plan.BuilderLabel) || strings.Contains(strings.Join(s.log, "\n"), plan.SourceLabel) {
		t.Errorf("log %q", s.log)
	}
}

func TestPinLabelsTheCommit(t *testing.T) {
	s := newSite(t)
	built := s.export(t)
	s.LabelRevision = true
	pinned := map[string]string{}
	for _, commit := range []string{"abc", "def", "abc"} {
		s.file.Revision = commit
		write(t, filepath.Join(s.Plan, plan.FileName), buildtest.JSON(t, s.file))
		p, err := Pin(t.Context(), s.Options)
		if err != nil {
			t.Fatal(err)
		}
		if before, again := pinned[commit]; again && before != p.Digest {
			t.Errorf("commit %s: %s, and %s before", commit, p.Digest, before)
		}
		pinned[commit] = p.Digest
		if d := cmp.Diff(s.wantResults(t, p.Digest, "false"), results(t, s.Results)); d != "" {
			t.Error(d)
		}
		if got := s.Digest(t, "team/app:v1"); got.String() != p.Digest {
			t.Errorf("final tag %s, want %s", got, p.Digest)
		}
		image := s.Image(t, "team/app@"+p.Digest)
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		want := s.app.Labels[plan.SourceLabel]
		if l := config.Config.Labels; l[RevisionLabel] != commit || l[BuildLabel] != built || l[plan.SourceLabel] != want {
			t.Errorf("labels %v", l)
		}
		if d := cmp.Diff(layers(t, s.Image(t, "team/app@"+built)), layers(t, image)); d != "" {
			t.Errorf("layers (-built +labelled):\n%s", d)
		}
	}
	if pinned["abc"] == pinned["def"] || pinned["abc"] == built {
		t.Errorf("built %s, labelled %v", built, pinned)
	}
	if got := s.Digest(t, "team/app:src-0123"); got.String() != built {
		t.Errorf("the build's own tag is %s, want %s", got, built)
	}
}

func layers(t *testing.T, image v1.Image) []v1.Hash {
	t.Helper()
	m, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	var all []v1.Hash
	for _, l := range m.Layers {
		all = append(all, l.Digest)
	}
	return all
}

func TestPinLabelsNoUnknownCommit(t *testing.T) {
	s := newSite(t)
	s.file.Revision = ""
	s.export(t)
	s.LabelRevision = true
	_, err := Pin(t.Context(), s.Options)
	if exitcode.Of(err) != exitcode.Usage || !strings.Contains(fmt.Sprint(err), "--revision") {
		t.Errorf("error %v", err)
	}
	if got := results(t, s.Results); len(got) > 0 {
		t.Errorf("results %v", got)
	}
}

func TestPinOfAnImageThatWasFound(t *testing.T) {
	s := newSite(t)
	s.report = "no report at all"
	digest := s.export(t)
	s.file.Action, s.file.FoundDigest = plan.Found, digest
	s.export(t)
	p, err := Pin(t.Context(), s.Options)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s.wantResults(t, digest, "true"), results(t, s.Results)); d != "" {
		t.Error(d)
	}
	if got := s.Digest(t, "team/app:v1"); got.String() != digest || !p.FromCache {
		t.Errorf("final tag %s of %s, %+v", got, digest, p)
	}
}

func TestPinOfAnImageThatHasItsTagWritesNothing(t *testing.T) {
	s := newSite(t)
	s.export(t)
	for i := range 2 {
		writes := s.Writes()
		if _, err := Pin(t.Context(), s.Options); err != nil {
			t.Fatal(err)
		}
		if wrote := s.Writes() > writes; wrote != (i == 0) {
			t.Errorf("pin %d wrote: %v", i, wrote)
		}
	}
}

func TestPinWithoutSBOM(t *testing.T) {
	s := newSite(t)
	s.app.NoSBOM = true
	s.export(t)
	if _, err := Pin(t.Context(), s.Options); err != nil {
		t.Fatal(err)
	}
	if got, ok := results(t, s.Results)["SBOM_URL"]; !ok || got != "" {
		t.Errorf("SBOM_URL %q, written %v", got, ok)
	}
}

// Whatever is wrong: one line that names it, no result, and the final tag is what it
// was.
func TestPinRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*testing.T, *site)
		code   int
		parts  []string
	}{
		"a digest that the registry does not have": {func(_ *testing.T, s *site) {
			s.report = fmt.Sprintf("[image]\ntags=[%q]\ndigest=%q\n", s.file.Build, buildtest.SHA("1"))
		}, exitcode.Integrity, []string{buildtest.SHA("1"), "src-0123", "in the registry"}},
		"a report of another image": {func(_ *testing.T, s *site) {
			s.report = fmt.Sprintf("[image]\ntags=[\"x/y:1\"]\ndigest=%q\n", buildtest.SHA("1"))
		}, exitcode.BadInput, []string{"x/y:1", "src-0123"}},
		"a report without a digest": {func(_ *testing.T, s *site) { s.report = "[image]\ntags=[]\n" }, exitcode.BadInput, []string{"no digest"}},
		"a report of a daemon":      {func(_ *testing.T, s *site) { s.report = "[image]\nimage-id=\"sha256:1\"\n" }, exitcode.BadInput, []string{"daemon"}},
		"a digest that is none":     {func(_ *testing.T, s *site) { s.report = "[image]\ndigest=\"sha256:12\"\n" }, exitcode.BadInput, []string{`"sha256:12"`}},
		"a report that is no TOML":  {func(_ *testing.T, s *site) { s.report = "[[[" }, exitcode.BadInput, []string{"report.toml"}},
		"another machine":           {func(_ *testing.T, s *site) { s.app.Arch = "arm64" }, exitcode.Integrity, []string{"linux/arm64", "linux/amd64"}},
		"another run image":         {func(_ *testing.T, s *site) { s.app.RunImage = "x@" + buildtest.SHA("2") }, exitcode.Integrity, []string{"run image"}},
		"another label":             {func(_ *testing.T, s *site) { s.app.Labels[plan.SourceLabel] = "sha256:x" }, exitcode.Integrity, []string{plan.SourceLabel, "sha256:x"}},
		"a root image":              {func(_ *testing.T, s *site) { s.app.User = "0" }, exitcode.BadInput, []string{`USER is "0"`}},
		"no results folder":         {func(_ *testing.T, s *site) { s.Results = filepath.Join(s.Results, "none") }, exitcode.Usage, []string{"results folder", "none"}},
		"a registry that fails to tag": {func(_ *testing.T, s *site) {
			s.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/manifests/v1") {
					w.WriteHeader(http.StatusForbidden)
					return true
				}
				return false
			}
		}, exitcode.IO, []string{"only its tag is missing", "403", "/team/app:v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			old := s.Push(t, "team/app:v1", buildtest.RunImage(t))
			resultsDir := s.Results
			c.change(t, s)
			s.export(t)
			_, err := Pin(t.Context(), s.Options)
			if err == nil || exitcode.Of(err) != c.code || strings.Contains(err.Error(), "\n") {
				t.Fatalf("code %d: %v", exitcode.Of(err), err)
			}
			for _, p := range c.parts {
				if !strings.Contains(err.Error(), p) {
					t.Errorf("%q does not name %q", err, p)
				}
			}
			if got := results(t, resultsDir); len(got) > 0 {
				t.Errorf("results %v", got)
			}
			if now := s.Digest(t, "team/app:v1"); !strings.HasSuffix(old, now.String()) {
				t.Errorf("the final tag moved to %s", now)
			}
		})
	}
}

func TestPinWithoutAReport(t *testing.T) {
	s := newSite(t)
	s.export(t)
	s.Report = filepath.Join(t.TempDir(), "none.toml")
	if _, err := Pin(t.Context(), s.Options); exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), "has the phase export run") {
		t.Errorf("%v", err)
	}
}

func TestPinOfAFoundImageThatIsGone(t *testing.T) {
	s := newSite(t)
	s.file.Action, s.file.FoundDigest = plan.Found, buildtest.SHA("9")
	s.export(t)
	_, err := Pin(t.Context(), s.Options)
	if exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), buildtest.SHA("9")) {
		t.Errorf("%v", err)
	}
	if d := s.Digest(t, "team/app:v1"); d != (v1.Hash{}) {
		t.Errorf("tagged %s", d)
	}
}

// I-09: the plan's list of insecure registries is the only one.
func TestPinSpeaksPlainHTTPOnlyWhereThePlanSays(t *testing.T) {
	s := newSite(t)
	s.file.Insecure = nil
	s.export(t)
	s.Options.Client = registryclient.Options{Insecure: []string{s.Host}}
	if _, err := Pin(t.Context(), s.Options); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "insecure registry") {
		t.Errorf("%v", err)
	}
}

func FuzzParseReport(f *testing.F) {
	f.Add([]byte("[image]\ntags=[\"a/b:1\"]\ndigest=\"sha256:" + strings.Repeat("a", 64) + "\"\n[build]\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := parseReport(b, "index.docker.io/a/b:1"); err == nil {
			if _, err := v1.NewHash(d); err != nil {
				t.Errorf("%q", d)
			}
		}
	})
}
