package imagelock_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/demo/imagelock"
	"github.com/trainyard/trainyard/internal/exitcode"
)

const (
	digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func TestParseReadsWhatAPersonWrites(t *testing.T) {
	got, err := imagelock.Parse([]byte(`
# ours
images:
  docker.io/library/registry:3.1.2: {digest: ` + digestA + `, source: "by hand: see the ticket"}
  "registry.test:5000/a/b":
    digest: ` + digestB + `
    source: resolved on 2026-11-30
`))
	if err != nil {
		t.Fatal(err)
	}
	want := imagelock.File{
		"docker.io/library/registry:3.1.2": {Digest: digestA, Source: "by hand: see the ticket"},
		"registry.test:5000/a/b":           {Digest: digestB, Source: "resolved on 2026-11-30"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseTakesAnEmptyLock(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "images:\n", "images: {}\n"} {
		if got, err := imagelock.Parse([]byte(text)); err != nil || len(got) != 0 || got == nil {
			t.Errorf("%q: %v (%v)", text, got, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	entry := func(name, digest, source string) string {
		return "images:\n  " + name + ": {digest: '" + digest + "', source: '" + source + "'}\n"
	}
	tests := map[string]struct{ text, want string }{
		"no YAML":                      {"images: [", "yaml"},
		"a list":                       {"images: [a]", "images"},
		"another key":                  {"image: {}", `unknown key "image"`},
		"a key in another case":        {"Images: {}", `unknown key "Images"`},
		"another key of an entry":      {"images: {docker.io/a/b:1: {digest: " + digestA + ", source: x, tag: y}}", `unknown key "tag"`},
		"an entry's key in caps":       {"images: {docker.io/a/b:1: {Digest: " + digestA + ", source: x}}", `unknown key "Digest"`},
		"a name twice":                 {entry("docker.io/a/b:1", digestA, "x") + "  docker.io/a/b:1: {digest: x}\n", "already set"},
		"a second document":            {entry("docker.io/a/b:1", digestA, "x") + "---\nimages: {}\n", "one document"},
		"something after the end":      {"images: {}\n...\nimages: {}\n", "one document"},
		"no host":                      {entry("registry:3.1.2", digestA, "x"), "HOST/REPOSITORY:TAG"},
		"Docker Hub by another name":   {entry("index.docker.io/library/registry:3.1.2", digestA, "x"), "write it as docker.io/library/registry:3.1.2"},
		"Docker Hub without library":   {entry("docker.io/registry:3.1.2", digestA, "x"), "HOST/REPOSITORY:TAG"},
		"a digest in the name":         {entry("docker.io/a/b@"+digestA, digestA, "x"), "HOST/REPOSITORY:TAG"},
		"capitals":                     {entry("docker.io/A/b:1", digestA, "x"), "HOST/REPOSITORY:TAG"},
		"no digest":                    {entry("docker.io/a/b:1", "", "x"), "64 hexadecimal"},
		"a short digest":               {entry("docker.io/a/b:1", digestA[:70], "x"), "64 hexadecimal"},
		"a digest of another length":   {entry("docker.io/a/b:1", digestA+"a", "x"), "64 hexadecimal"},
		"a digest in capitals":         {entry("docker.io/a/b:1", strings.ToUpper(digestA), "x"), "64 hexadecimal"},
		"a digest of another function": {entry("docker.io/a/b:1", "sha512"+digestA[6:], "x"), "64 hexadecimal"},
		"no source":                    {entry("docker.io/a/b:1", digestA, ""), "source"},
		"a source of two lines":        {"images: {docker.io/a/b:1: {digest: " + digestA + ", source: \"a\\nb\"}}", "source"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := imagelock.Parse([]byte(test.text))
			if err == nil {
				t.Fatalf("read as %v", got)
			}
			if !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want one line with %q", err, test.want)
			}
		})
	}
}

func TestReadNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "images.lock.yaml")
	if got, err := imagelock.Read(path); err != nil || len(got) != 0 {
		t.Errorf("a file that is not there: %v (%v)", got, err)
	}
	if err := os.WriteFile(path, []byte("x: y"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := imagelock.Read(path)
	if err == nil || !strings.Contains(err.Error(), path) || exitcode.Of(err) != exitcode.BadInput {
		t.Errorf("error %v, want bad input in %s", err, path)
	}
	if _, err := imagelock.Read(filepath.Dir(path)); err == nil {
		t.Error("a folder was read")
	}
}

func TestWriteReplacesTheFileWhole(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "images.lock.yaml")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := imagelock.File{
		"docker.io/b/b:1": {Digest: digestB, Source: "x"},
		"docker.io/a/a:1": {Digest: digestA, Source: "y: # z"},
	}
	if err := file.Write(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := bytes.Cut(data, []byte("pinned source.\n"))
	want := `images:
  docker.io/a/a:1:
    digest: ` + digestA + `
    source: 'y: # z'
  docker.io/b/b:1:
    digest: ` + digestB + `
    source: x
`
	if diff := cmp.Diff(want, string(body)); diff != "" {
		t.Error(diff)
	}
	if got, err := imagelock.Read(path); err != nil || cmp.Diff(file, got) != "" {
		t.Errorf("read back as %v (%v)", got, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	wantFiles(t, folder, "images.lock.yaml")
}

func TestWriteThatFailsLeavesTheOldFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "images.lock.yaml")
	if err := (imagelock.File{"docker.io/a/a:1": {Digest: "x", Source: "y"}}).Write(path); err == nil {
		t.Error("a wrong digest was written")
	}
	wantFiles(t, folder)
	if err := (imagelock.File{}).Write(filepath.Join(folder, "none", "lock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want that the folder is not there", err)
	}
	if err := os.Mkdir(path, 0o755); err != nil { // a rename onto it fails
		t.Fatal(err)
	}
	if err := (imagelock.File{}).Write(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want one that names %s", err, path)
	}
	wantFiles(t, folder, "images.lock.yaml")
}

func wantFiles(t *testing.T, folder string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files: %s", diff)
	}
}

// The committed file must not change when the first entry is added to it.
func TestTheCommittedLockIsWhatEncodeWrites(t *testing.T) {
	path := filepath.Join("..", "..", "..", "scripts", "images.lock.yaml")
	committed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := imagelock.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := file.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(encoded), string(committed)); diff != "" {
		t.Error(diff)
	}
}

// FuzzParse: a lock that is read is written and read again as the same.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "images: {}", "images:\n  docker.io/a/b:1: {digest: " + digestA + ", source: x}\n",
		"images:\n  registry.test:5000/a: {digest: " + digestA + ", source: 'on: [2026-11-30]'}\n", "images: {a: &a {digest: x}, b: *a}", "images: null", "? images\n: {}", "a: !!binary eA=="} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := imagelock.Parse(data)
		if err != nil {
			return
		}
		encoded, err := first.Encode()
		if err != nil {
			t.Fatal(err)
		}
		second, err := imagelock.Parse(encoded)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, encoded)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Error(diff)
		}
	})
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
