package phase

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/buildpacks/lifecycle/cmd"
	"github.com/buildpacks/lifecycle/platform"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/plan"
	"github.com/trainyard/trainyard/internal/source"
)

// TestMain plays the lifecycle's programs when the test binary is called by one of
// their names: it prints its arguments and does what FAKE says.
func TestMain(m *testing.M) {
	switch name := filepath.Base(os.Args[0]); name {
	case "analyzer", "detector", "restorer", "builder", "exporter", "creator":
		os.Exit(fake(name))
	}
	os.Exit(m.Run())
}

func fake(name string) int {
	fmt.Fprintf(os.Stdout, "%s api=%s epoch=%s args=%q\n", name, os.Getenv("CNB_PLATFORM_API"), os.Getenv("SOURCE_DATE_EPOCH"), os.Args[1:])
	what, value, _ := strings.Cut(os.Getenv("FAKE"), ":")
	switch what {
	case "exit":
		var code int
		fmt.Sscan(value, &code)
		return code
	case "say":
		fmt.Fprintln(os.Stderr, value)
		return 62
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "user":
		fmt.Fprintf(os.Stdout, "uid=%s gid=%s home=%s\n", os.Getenv("CNB_USER_ID"), os.Getenv("CNB_GROUP_ID"), os.Getenv("HOME"))
	case "wait":
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Fprintln(os.Stdout, "waiting")
		<-c
		fmt.Fprintln(os.Stdout, "saved")
		return 7
	}
	return 0
}

// bench is a plan on disk with everything that a phase needs.
type bench struct {
	Options
	out, err bytes.Buffer
}

func newBench(t *testing.T, name string, change func(*plan.File)) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b.Options = Options{
		Name: name, Out: &b.out, Err: &b.err, Getenv: func(string) string { return "" }, Environ: os.Environ(), UID: 1001, GID: 1000, Now: time.Now,
		Places: Places{Plan: filepath.Join(dir, "plan"), Layers: filepath.Join(dir, "layers"), App: filepath.Join(dir, "app"), Report: filepath.Join(dir, "report.toml"), Bin: filepath.Join(dir, "bin")},
	}
	for _, d := range []string{b.Layers, b.App, b.Bin, filepath.Join(b.Plan, plan.SourceDir, "cmd")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"analyzer", "detector", "restorer", "builder", "exporter", "creator"} {
		if err := os.Symlink(self, filepath.Join(b.Bin, p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(b.Plan, plan.SourceDir, "cmd", "main.go"), []byte("package main\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := source.Open(b.Plan, plan.SourceDir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	tree, err := source.Scan(t.Context(), root, source.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	f := file()
	f.SourceDigest = tree.Digest
	if change != nil {
		change(f)
	}
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.Plan, plan.FileName), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return b
}

func file() *plan.File {
	return &plan.File{
		Schema: 1, Action: plan.Phases, Image: "r:5000/app:v1", Build: "r:5000/app:src-1", RunImage: "r:5000/run@sha256:1", Builder: "r:5000/builder@sha256:2",
		UID: 1001, GID: 1000, PlatformAPI: "0.15", Lifecycle: "0.21.17", Insecure: []string{"r:5000", "other"},
	}
}

func (b *bench) fake(what string) *bench {
	b.Environ = append(b.Environ, "FAKE="+what)
	return b
}

// The arguments that the lifecycle's documentation and its own flags want.
func TestCommand(t *testing.T) {
	at := Places{Plan: "/p", Layers: "/layers", App: "/workspace", Report: "/r/report.toml", Bin: "/cnb/lifecycle"}
	full := func(f *plan.File) {
		f.CacheImage, f.ProcessType, f.Created, f.Order = "r:5000/cache:1", "trainer", "5", true
	}
	insecure := []string{"-insecure-registry", "r:5000", "-insecure-registry", "other"}
	for name, c := range map[string]struct {
		phase  string
		change func(*plan.File)
		want   []string
		env    []string
	}{
		"analyze":              {Analyze, func(*plan.File) {}, slices.Concat([]string{"analyzer", "-layers", "/layers", "-run-image", "r:5000/run@sha256:1", "-previous-image", "r:5000/app:v1"}, insecure, []string{"r:5000/app:src-1"}), nil},
		"detect":               {Detect, func(*plan.File) {}, []string{"detector", "-layers", "/layers", "-platform", "/p/platform", "-app", "/workspace"}, nil},
		"restore":              {Restore, func(*plan.File) {}, slices.Concat([]string{"restorer", "-layers", "/layers"}, insecure), nil},
		"build":                {Build, full, []string{"builder", "-layers", "/layers", "-platform", "/p/platform", "-app", "/workspace"}, nil},
		"export":               {Export, func(*plan.File) {}, slices.Concat([]string{"exporter", "-layers", "/layers", "-app", "/workspace"}, insecure, []string{"-report", "/r/report.toml", "r:5000/app:src-1"}), nil},
		"detect with an order": {Detect, full, []string{"detector", "-layers", "/layers", "-platform", "/p/platform", "-app", "/workspace", "-order", "/p/order.toml"}, nil},
		"restore with a cache": {Restore, full, slices.Concat([]string{"restorer", "-layers", "/layers", "-cache-image", "r:5000/cache:1"}, insecure), nil},
		"export with all": {Export, full, slices.Concat([]string{"exporter", "-layers", "/layers", "-app", "/workspace", "-cache-image", "r:5000/cache:1"}, insecure,
			[]string{"-process-type", "trainer", "-report", "/r/report.toml", "r:5000/app:src-1"}), []string{"SOURCE_DATE_EPOCH=5"}},
		"create with all": {Create, full, slices.Concat([]string{"creator", "-layers", "/layers", "-platform", "/p/platform", "-app", "/workspace", "-order", "/p/order.toml",
			"-run-image", "r:5000/run@sha256:1", "-previous-image", "r:5000/app:v1", "-cache-image", "r:5000/cache:1"}, insecure,
			[]string{"-process-type", "trainer", "-report", "/r/report.toml", "r:5000/app:src-1"}), []string{"SOURCE_DATE_EPOCH=5"}},
		// The flag came with 0.13.
		"restore at 0.12": {Restore, func(f *plan.File) { f.PlatformAPI = "0.12" }, []string{"restorer", "-layers", "/layers"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := file()
			c.change(f)
			path, args, env, err := command(c.phase, f, at)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, append([]string{filepath.Base(path)}, args...)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(append(c.env, "CNB_PLATFORM_API="+f.PlatformAPI), env); d != "" {
				t.Error(d)
			}
			if filepath.Dir(path) != "/cnb/lifecycle" {
				t.Errorf("program %s", path)
			}
		})
	}
	if _, _, _, err := command("rebase", file(), at); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("an unknown phase: %v", err)
	}
}

func TestRunTellsTimeAndCommand(t *testing.T) {
	b := newBench(t, Restore, nil)
	clock := []time.Time{time.Unix(100, 0), time.Unix(103, 500e6)}
	b.Now = func() time.Time { n := clock[0]; clock = clock[1:]; return n }
	if err := Run(t.Context(), b.Options); err != nil {
		t.Fatal(err)
	}
	if got := b.out.String(); !strings.HasPrefix(got, "restorer api=0.15 epoch= args=") || !strings.Contains(got, `"-insecure-registry" "r:5000"`) {
		t.Errorf("the program saw %s", got)
	}
	if got := b.err.String(); !strings.HasPrefix(got, "restore: "+b.Bin+"/restorer -layers ") || !strings.HasSuffix(got, "restore took 3.5 s\n") {
		t.Errorf("log %q", got)
	}
}

// The lifecycle's own table is the truth: every code that it can return is explained.
func TestEveryCodeOfTheLifecycleIsExplained(t *testing.T) {
	exiter := platform.NewExiter("0.15")
	codes := []int{cmd.CodeForFailed, cmd.CodeForInvalidArgs, cmd.CodeForIncompatiblePlatformAPI, cmd.CodeForIncompatibleBuildpackAPI}
	for _, e := range []platform.LifecycleExitError{
		platform.FailedDetect, platform.FailedDetectWithErrors, platform.DetectError, platform.AnalyzeError, platform.RestoreError,
		platform.FailedBuildWithErrors, platform.BuildError, platform.ExportError, platform.FailedGenerateWithErrors, platform.GenerateError, platform.ExtendError,
	} {
		codes = append(codes, exiter.CodeFor(e))
	}
	var ours []int
	for _, c := range Codes() {
		ours = append(ours, c.Code)
	}
	if d := cmp.Diff(codes, ours); d != "" {
		t.Error(d)
	}
}

func TestTheDocumentHasEveryCode(t *testing.T) {
	const path = "../../docs/exit-codes.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Codes() {
		if row := fmt.Sprintf("\n%d | %s | %s\n", c.Code, c.Reason, c.Remedy); !strings.Contains(string(text), row) {
			t.Errorf("%s has no row %q", path, row)
		}
	}
}

func TestRunPassesTheExitCodeOnWithAReason(t *testing.T) {
	for _, c := range Codes() {
		b := newBench(t, Restore, nil).fake(fmt.Sprint("exit:", c.Code))
		err := Run(t.Context(), b.Options)
		if exitcode.Of(err) != c.Code || err.Error() != fmt.Sprintf("restore ended with %d: %s: %s", c.Code, c.Reason, c.Remedy) {
			t.Errorf("code %d: %d %v", c.Code, exitcode.Of(err), err)
		}
	}
	for what, c := range map[string]struct {
		code int
		part string
	}{
		"exit:99": {99, "not in its table"},
		"kill:":   {137, "want of memory"},
		// I-05
		"say:tried to set web to default but it doesn't exist": {62, "process-type empty"},
		// I-03
		"say:failed to exec as user 1001:1001: operation not permitted": {62, "runAsGroup"},
		// I-08
		`say:failed to satisfy "go" dependency version constraint ">= 1.27"`: {62, "newer builder"},
		// I-65
		"say:error obtaining VCS status: exit status 128":                       {62, "-buildvcs=false"},
		"say:Get x: tls: failed: x509: certificate signed by unknown authority": {62, "ca-config-map"},
	} {
		b := newBench(t, Restore, nil).fake(what)
		err := Run(t.Context(), b.Options)
		if exitcode.Of(err) != c.code || !strings.Contains(err.Error(), c.part) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: code %d, %v; want %d and %q", what, exitcode.Of(err), err, c.code, c.part)
		}
	}
}

func TestRunNamesALifecycleThatIsNotThere(t *testing.T) {
	b := newBench(t, Restore, nil)
	b.Bin = "/no/such"
	if err := Run(t.Context(), b.Options); exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), "/no/such/restorer") {
		t.Errorf("%v", err)
	}
}

func TestRunPassesASignalOnAndWaits(t *testing.T) {
	b := newBench(t, Restore, nil).fake("wait:")
	ctx, cancel := context.WithCancelCause(t.Context())
	out := &watched{word: "waiting", then: func() { cancel(exitcode.SignalError{Signal: syscall.SIGTERM}) }}
	b.Out = out
	err := Run(ctx, b.Options)
	if exitcode.Of(err) != exitcode.Terminated || !strings.Contains(out.String(), "saved") {
		t.Errorf("code %d, %v, output %q", exitcode.Of(err), err, out.String())
	}
}

// watched calls then once when word was written.
type watched struct {
	bytes.Buffer
	word string
	then func()
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if w.then != nil && strings.Contains(w.String(), w.word) {
		then := w.then
		w.then = nil
		then()
	}
	return n, err
}

func TestUsersThatAPhaseCannotRunAs(t *testing.T) {
	for name, c := range map[string]struct {
		phase    string
		uid, gid int
		say      string // empty: it runs
	}{
		"the builder's":               {Restore, 1001, 1000, ""},
		"root":                        {Restore, 0, 0, "runs as root, 0:0"},
		"root in the builder's group": {Export, 0, 1000, "runs as root, 0:1000"},
		"a namespace's":               {Restore, 1000680000, 0, ""},
		"another group":               {Detect, 1001, 1001, ""},
		"all phases, the builder's":   {Create, 1001, 1000, ""},
		"all phases, a namespace's":   {Create, 1000680000, 0, "set trust-builder to false"},
	} {
		b := newBench(t, c.phase, nil)
		b.UID, b.GID = c.uid, c.gid
		err := Run(t.Context(), b.Options)
		switch {
		case c.say == "" && (err != nil || b.out.Len() == 0):
			t.Errorf("%s: %v", name, err)
		case c.say != "" && (exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), c.say) || !strings.Contains(err.Error(), "as 1001:1000") || b.out.Len() > 0):
			t.Errorf("%s: %v, it printed %q", name, err, b.out.String())
		}
	}
}

// I-03, I-04: the lifecycle would try to become the builder's user.
func TestAPhaseIsToldItsUser(t *testing.T) {
	for name, want := range map[string]string{
		Analyze: "uid=1000680000 gid=0 home=/root",
		Restore: "uid=1000680000 gid=0 home=/root",
		Detect:  "uid=1001 gid=1000 home=",
		Build:   "uid=1001 gid=1000 home=",
	} {
		for _, another := range []bool{false, true} {
			b := newBench(t, name, nil)
			b.Environ = append(b.Environ, "HOME=/root", "CNB_USER_ID=1001", "CNB_GROUP_ID=1000", "FAKE=user", "TMPDIR="+t.TempDir())
			t.Setenv("TMPDIR", t.TempDir())
			if another {
				b.UID, b.GID = 1000680000, 0
			}
			if err := Run(t.Context(), b.Options); err != nil {
				t.Fatal(err)
			}
			if !another {
				want := "uid=1001 gid=1000 home=/root"
				if !strings.Contains(b.out.String(), want) {
					t.Errorf("%s as the builder's user: %q, want %q", name, b.out.String(), want)
				}
				continue
			}
			if !strings.Contains(b.out.String(), want) || strings.HasSuffix(want, "home=") && strings.Contains(b.out.String(), "home=/root") {
				t.Errorf("%s as another: %q, want %q", name, b.out.String(), want)
			}
			if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
				t.Errorf("%s leaves %v, %v", name, left, err)
			}
			if !strings.Contains(b.err.String(), "note: this step runs as 1000680000:0, the builder's user is 1001:1000") {
				t.Errorf("%s says %q", name, b.err.String())
			}
		}
	}
}

func TestExportAsAnotherIsNotTheLifecyclesProgram(t *testing.T) {
	b := newBench(t, Export, nil)
	b.UID, b.GID = 1000680000, 0
	if err := Run(t.Context(), b.Options); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "--layers-from") {
		t.Errorf("without a volume: %v", err)
	}
	b.LayersFrom = t.TempDir()
	if err := os.WriteFile(filepath.Join(b.LayersFrom, "group.toml"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	b.fake("say:the version is asked for")
	if err := Run(t.Context(), b.Options); exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), "version") || b.out.Len() > 0 {
		t.Errorf("a program that is no lifecycle: %v, it printed %q", err, b.out.String())
	}
	if entries, err := os.ReadDir(b.Layers); err != nil || len(entries) > 0 {
		t.Errorf("the builder's folder has %v, %v", entries, err)
	}
}

func TestBuildpacksNeverSeeCredentials(t *testing.T) {
	secrets := t.TempDir()
	for _, name := range Names() {
		hermetic := name == Detect || name == Build
		for what, arrange := range map[string]func(*bench){
			"a secret of the service account": func(b *bench) {
				b.Secrets = []string{"/no/such", secrets}
				if err := os.MkdirAll(filepath.Join(secrets, "registry"), 0o755); err != nil {
					t.Fatal(err)
				}
			},
			"docker's configuration": func(b *bench) {
				b.Getenv = func(k string) string { return map[string]string{"DOCKER_CONFIG": "/x"}[k] }
			},
			"credentials in a variable": func(b *bench) {
				b.Getenv = func(k string) string { return map[string]string{"CNB_REGISTRY_AUTH": "{}"}[k] }
			},
		} {
			b := newBench(t, name, nil)
			arrange(b)
			err := Run(t.Context(), b.Options)
			if (err != nil) != hermetic {
				t.Errorf("%s with %s: %v", name, what, err)
			}
			if hermetic && (exitcode.Of(err) != exitcode.BadInput || b.out.Len() > 0) {
				t.Errorf("%s with %s: code %d, ran %q", name, what, exitcode.Of(err), b.out.String())
			}
		}
	}
	b := newBench(t, Build, nil)
	b.Secrets = []string{t.TempDir()} // there, and empty
	if err := Run(t.Context(), b.Options); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestSourceIsPlacedAndVerified(t *testing.T) {
	for _, name := range []string{Detect, Create} {
		b := newBench(t, name, nil)
		if err := Run(t.Context(), b.Options); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(b.App, "cmd/main.go")); err != nil || string(got) != "package main\n" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	b := newBench(t, Detect, func(f *plan.File) { f.SourceDigest = "sha256:0" })
	if err := Run(t.Context(), b.Options); exitcode.Of(err) != exitcode.Integrity || b.out.Len() > 0 {
		t.Errorf("another source: %v", err)
	}
}

func TestModeOfTheApplicationFolderIsTold(t *testing.T) {
	for mode, told := range map[fs.FileMode]bool{0o777: false, 0o755: true, 0o777 | fs.ModeSetgid: true} {
		b := newBench(t, Export, nil)
		if err := os.Chmod(b.App, mode); err != nil {
			t.Fatal(err)
		}
		if err := Run(t.Context(), b.Options); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.err.String(), "is part of the image"); got != told {
			t.Errorf("%v: told %v", mode, got)
		}
	}
}

func TestModeThatAnotherUsersExportLeavesOutIsNotTold(t *testing.T) {
	app := t.TempDir()
	for mode, told := range map[fs.FileMode]bool{0o777: false, 0o777 | fs.ModeSetgid: false, 0o755: true, 0o777 | fs.ModeSticky: true} {
		if err := os.Chmod(app, mode); err != nil {
			t.Fatal(err)
		}
		if got := appNote(app, true) != ""; got != told {
			t.Errorf("%v: told %v", mode, got)
		}
	}
}

func TestExportGetsLayersWithTheBuildersModes(t *testing.T) {
	volume := t.TempDir()
	files := map[string]string{
		"group.toml": "g", "config/metadata.toml": "m", "sbom/launch/a/sbom.cdx.json": "s",
		"a_b/launch.toml": "l", "a_b/targets.toml": "[types]\nlaunch = true\n", "a_b/targets/bin/trainer": "elf",
		"a_b/cache.toml": "[types]\ncache = true\n", "a_b/cache/big": "x", "a_b/both.toml": "[types]\ncache = true\nbuild = true\n", "a_b/both/f": "y",
		"a_b/buildonly.toml": "[types]\nbuild = true\n", "a_b/buildonly/f": "z", "a_b/odd.toml": "[[", "a_b/odd/f": "o", "a_b/none/f": "n",
	}
	for name, content := range files {
		p := filepath.Join(volume, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("trainer", filepath.Join(volume, "a_b/targets/bin/link")); err != nil {
		t.Fatal(err)
	}
	chmod := func(name string, mode fs.FileMode) {
		if err := os.Chmod(filepath.Join(volume, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	chmod(".", 0o777|fs.ModeSetgid)
	chmod("a_b", 0o755|fs.ModeSetgid)
	chmod("a_b/targets/bin/trainer", 0o755)
	chmod("a_b/targets/bin", 0o555|fs.ModeSetgid)

	for cached, want := range map[bool][]string{
		false: {"a_b drwxr-xr-x", "a_b/targets/bin dr-xr-xr-x", "a_b/targets/bin/trainer -rwxr-xr-x", "a_b/targets/bin/link Lrwxrwxrwx", "config/metadata.toml -rw-r--r--", "group.toml -rw-r--r--",
			"sbom/launch/a/sbom.cdx.json -rw-r--r--", "a_b/odd/f -rw-r--r--", "a_b/none/f -rw-r--r--", "!a_b/cache", "!a_b/both", "!a_b/buildonly", "a_b/cache.toml -rw-r--r--"},
		true: {"a_b/cache/big -rw-r--r--", "a_b/both/f -rw-r--r--", "!a_b/buildonly"},
	} {
		b := newBench(t, Export, func(f *plan.File) {
			if cached {
				f.CacheImage = "r:5000/cache:1"
			}
		})
		b.LayersFrom = volume
		if err := Run(t.Context(), b.Options); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			name, mode, _ := strings.Cut(strings.TrimPrefix(w, "!"), " ")
			info, err := os.Lstat(filepath.Join(b.Layers, name))
			switch {
			case strings.HasPrefix(w, "!"):
				if err == nil {
					t.Errorf("cached %v: %s was copied", cached, name)
				}
			case err != nil:
				t.Errorf("cached %v: %v", cached, err)
			case info.Mode().String() != mode:
				t.Errorf("cached %v: %s has %v, want %s", cached, name, info.Mode(), mode)
			}
		}
		if info, _ := os.Stat(b.Layers); info.Mode().Perm() != 0o755 {
			t.Errorf("the builder's folder became %v", info.Mode())
		}
		if got, _ := os.ReadFile(filepath.Join(b.Layers, "a_b/targets/bin/link")); string(got) != "elf" {
			t.Errorf("through the link: %q", got)
		}
		_ = os.Chmod(filepath.Join(b.Layers, "a_b/targets/bin"), 0o755) // to be removed
	}
	chmod("a_b/targets/bin", 0o755)
}

func TestExportWantsAnEmptyLayersFolder(t *testing.T) {
	b := newBench(t, Export, nil)
	b.LayersFrom = t.TempDir()
	if err := os.WriteFile(filepath.Join(b.Layers, "old"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), b.Options); exitcode.Of(err) != exitcode.Conflict || !strings.Contains(err.Error(), "old") {
		t.Errorf("%v", err)
	}
	b = newBench(t, Export, nil)
	b.LayersFrom, b.Layers = t.TempDir(), "/no/such"
	if err := Run(t.Context(), b.Options); exitcode.Of(err) != exitcode.BadInput || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestInstall(t *testing.T) {
	to := filepath.Join(t.TempDir(), "yard")
	for range 2 { // a second time over the first
		if err := Install(to); err != nil {
			t.Fatal(err)
		}
	}
	self, _ := os.Executable()
	want, _ := os.Stat(self)
	got, err := os.Stat(to)
	if err != nil || got.Mode() != 0o755 || got.Size() != want.Size() {
		t.Errorf("%v, %v", got, err)
	}
	if left, _ := os.ReadDir(filepath.Dir(to)); len(left) != 1 {
		t.Errorf("%d files", len(left))
	}
}

func TestLastBytes(t *testing.T) {
	l := &lastBytes{max: 4}
	for _, s := range []string{"ab", "cd", "ef", "0123456789"} {
		if n, err := l.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	if l.String() != "6789" {
		t.Errorf("%q", l.String())
	}
}
