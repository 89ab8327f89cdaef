package release

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/trainyard/trainyard/internal/bundle"
	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/registryclient"
)

// repository is one in small, with all that a release takes.
func repository(t *testing.T, change map[string]string) string {
	t.Helper()
	const program = "package main\n\nimport \"os\"\n\nvar version, commit string\n\nfunc main() { os.Stdout.WriteString(version + commit) }\n"
	files := map[string]string{
		"go.mod":                      "module example.com/yard\n\ngo 1.26\n",
		"cmd/yard/main.go":            program,
		"trainer/go.mod":              "module example.com/trainer\n\ngo 1.26\n",
		"trainer/cmd/trainer/main.go": program,
		"tasks/a.yaml":                "apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: a}\nspec: {steps: [{name: s, image: ghcr.io/trainyard/yard, command: [/usr/local/bin/yard]}]}\n",
		"tasks/kustomization.yaml":    "resources: [a.yaml]\n",
		"pipelines/p.yaml":            "apiVersion: tekton.dev/v1\nkind: Pipeline\nmetadata: {name: p}\nspec: {tasks: [{name: a, taskRef: {name: a}}]}\n",
		"deploy/base/namespace.yaml":  "apiVersion: v1\nkind: Namespace\nmetadata: {name: trainyard}\n",
		"sa/sa.yaml":                  "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: trainyard-train}\n",
		"triggers/role.yaml":          "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: trainyard-listener}\n",
		"triggers/queue/sa.yaml":      "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: trainyard-queue}\n",
		"triggers/prune/sa.yaml":      "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: trainyard-prune}\n",
		"triggers/examples/s.yaml":    "apiVersion: v1\nkind: Secret\nmetadata: {name: not-released-either}\n",
		"sa/examples/secret.yaml":     "apiVersion: v1\nkind: Secret\nmetadata: {name: not-released}\n",
	}
	maps.Copy(files, change)
	root := t.TempDir()
	for path, text := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func options(root, folder string) Options {
	return Options{
		Root: root, Folder: folder, Version: "v1.2.3", Commit: "abc", Source: "https://example.com/repo",
		Created:      time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Platforms:    []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}},
		Certificates: []byte("PEM"), Repository: "registry.example/trainyard", Namespace: "trainyard",
	}
}

func quiet(string, ...any) {}

func build(t *testing.T, o Options) Report {
	t.Helper()
	r, err := Make(t.Context(), o, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// contents reads all files of a folder.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(folder, path)
		all[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestReleaseHasEverythingByDigest(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "dist", "v1.2.3")
	o := options(repository(t, nil), folder)
	o.Platforms = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}
	report := build(t, o)
	all := contents(t, folder)

	// The images of the layout are those that the report names.
	index, err := layout.ImageIndexFromPath(filepath.Join(folder, "images"))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, d := range m.Manifests {
		got[d.Annotations["org.opencontainers.image.ref.name"]] = d.Digest.String()
	}
	want := map[string]string{}
	for image, ref := range map[string]string{"yard": report.ToolImage, "tasks": report.TaskBundle, "pipelines": report.PipelineBundle} {
		repo, digest, _ := strings.Cut(ref, "@")
		if repo != "registry.example/trainyard/"+image {
			t.Errorf("%s is named %s", image, ref)
		}
		want[repo+":v1.2.3"] = digest
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("images (-reported +in the layout):\n%s", d)
	}

	// release.yaml applies, with the tool's image by digest.
	d, err := manifest.NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := d.Decode("release.yaml", []byte(all["release.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range objects {
		names = append(names, o.String())
	}
	if d := cmp.Diff([]string{"Namespace trainyard", "ServiceAccount trainyard-train", "Role trainyard-listener", "ServiceAccount trainyard-queue", "ServiceAccount trainyard-prune", "Task a", "Pipeline p"}, names); d != "" {
		t.Errorf("objects (-want +got):\n%s", d)
	}
	if !strings.Contains(all["release.yaml"], "image: "+report.ToolImage) {
		t.Errorf("no %s in\n%s", report.ToolImage, all["release.yaml"])
	}

	// The pipelines of the bundle take their tasks from the bundle of the tasks.
	_, digest, _ := strings.Cut(report.PipelineBundle, "@")
	hash, err := v1.NewHash(digest)
	if err != nil {
		t.Fatal(err)
	}
	img, err := index.Image(hash)
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := bundle.List(d, img); err != nil || len(entries) != 1 {
		t.Errorf("pipeline bundle: %+v, %v", entries, err)
	}
	if about, err := bundle.Annotations(img); err != nil || about["org.opencontainers.image.revision"] != "abc" {
		t.Errorf("pipeline bundle: %v, %v", about, err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	rc, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	if data, err := io.ReadAll(rc); err != nil || !strings.Contains(string(data), report.TaskBundle) {
		t.Errorf("the bundled pipeline does not refer to %s: %v", report.TaskBundle, err)
	}

	// The program runs, and its bill of materials names it.
	yard := filepath.Join(folder, "yard-linux-"+runtime.GOARCH)
	if out, err := exec.Command(yard).Output(); err != nil || string(out) != "v1.2.3abc" {
		t.Errorf("yard says %q, %v", out, err)
	}
	var sbom struct {
		BOMFormat  string `json:"bomFormat"`
		Components []struct {
			Name   string
			Hashes []struct{ Content string }
		}
	}
	if err := json.Unmarshal([]byte(all["sbom-linux-"+runtime.GOARCH+".cdx.json"]), &sbom); err != nil || sbom.BOMFormat != "CycloneDX" {
		t.Errorf("bill of materials: %+v, %v", sbom, err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(all["yard-linux-"+runtime.GOARCH])))
	if !slices.ContainsFunc(sbom.Components, func(c struct {
		Name   string
		Hashes []struct{ Content string }
	}) bool {
		return c.Name == "yard" && len(c.Hashes) == 1 && c.Hashes[0].Content == sum
	}) {
		t.Errorf("no yard with %s in %+v", sum, sbom.Components)
	}
}

func TestChecksumsAreThoseOfSha256sum(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "v1.2.3")
	build(t, options(repository(t, nil), folder))
	cmd := exec.Command("sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	// Every file but SHA256SUMS itself.
	all := contents(t, folder)
	if got, want := strings.Count(all["SHA256SUMS"], "\n"), len(all)-1; got != want {
		t.Errorf("%d sums for %d files", got, want)
	}
}

func TestTheSameCommitGivesTheSameBytes(t *testing.T) {
	first, again := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b", "c")
	build(t, options(repository(t, nil), first))
	build(t, options(repository(t, nil), again)) // from another directory
	if d := cmp.Diff(contents(t, first), contents(t, again)); d != "" {
		t.Errorf("(-first +again):\n%.2000s", d)
	}
	// What the images do not hold does not change them, what they hold does.
	other := filepath.Join(t.TempDir(), "d")
	before, after := build(t, optionsWith(t, first+"2", nil)), build(t, optionsWith(t, other, map[string]string{
		"tasks/a.yaml": "apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: a}\nspec: {steps: [{name: t, image: ghcr.io/trainyard/yard, command: [/usr/local/bin/yard]}]}\n",
	}))
	if before.ToolImage != after.ToolImage || before.TaskBundle == after.TaskBundle || before.PipelineBundle == after.PipelineBundle {
		t.Errorf("another task: %+v, then %+v", before, after)
	}
}

func optionsWith(t *testing.T, folder string, change map[string]string) Options {
	t.Helper()
	return options(repository(t, change), folder)
}

func TestPublishedImagesAreTheReleasedOnes(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	folder := filepath.Join(t.TempDir(), "v1.2.3")
	o := options(repository(t, nil), folder)
	o.Repository = host + "/trainyard"
	report := build(t, o)
	client, err := registryclient.New(registryclient.Options{Insecure: []string{host}})
	if err != nil {
		t.Fatal(err)
	}
	if err := Publish(t.Context(), client, folder, quiet); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{report.ToolImage, report.TaskBundle, report.PipelineBundle} {
		digest, err := name.NewDigest(ref)
		if err != nil {
			t.Fatal(err)
		}
		head, err := remote.Head(digest.Context().Tag("v1.2.3"))
		if err != nil || head.Digest.String() != digest.DigestStr() {
			t.Errorf("%s: the registry serves %v, %v", ref, head, err)
		}
	}

	// A release that was changed afterwards is not pushed.
	text := strings.Replace(contents(t, folder)["release.json"], report.TaskBundle, report.TaskBundle[:len(report.TaskBundle)-4]+"0000", 1)
	if err := os.WriteFile(filepath.Join(folder, "release.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Publish(t.Context(), client, folder, quiet); exitcode.Of(err) != exitcode.Integrity {
		t.Errorf("changed release: %v", err)
	}
	if err := Publish(t.Context(), client, filepath.Join(folder, "absent"), quiet); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent release: %v", err)
	}
}

func TestAFailedReleaseLeavesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		change map[string]string
		option func(*Options)
		want   string
	}{
		"program does not compile": {map[string]string{"trainer/cmd/trainer/main.go": "package main\n"}, nil, "trainer"},
		"task is not valid":        {map[string]string{"tasks/b.yaml": "apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: b}\nspec: {}\n"}, nil, "b.yaml"},
		"image is not pinned":      {map[string]string{"tasks/b.yaml": "apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: b}\nspec: {steps: [{image: busybox, command: [a]}]}\n"}, nil, `"busybox" is not pinned`},
		"no platform":              {nil, func(o *Options) { o.Platforms = nil }, "no platform"},
		"unknown platform":         {nil, func(o *Options) { o.Platforms = []v1.Platform{{OS: "linux", Architecture: "abacus"}} }, "abacus"},
		"no such repository":       {nil, func(o *Options) { o.Root += "/absent" }, "absent"},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			o := options(repository(t, tc.change), filepath.Join(parent, "dist"))
			if tc.option != nil {
				tc.option(&o)
			}
			_, err := Make(t.Context(), o, quiet)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q", err, tc.want)
			}
			if entries, _ := os.ReadDir(parent); len(entries) > 0 {
				t.Errorf("left %v behind", entries)
			}
		})
	}
}

func TestAnOlderReleaseIsKept(t *testing.T) {
	folder := t.TempDir()
	_, err := Make(t.Context(), options(repository(t, nil), folder), quiet)
	if exitcode.Of(err) != exitcode.Conflict {
		t.Errorf("error %v, want a conflict", err)
	}
}
