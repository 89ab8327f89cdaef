package ociimage_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/trainyard/internal/demo/ociimage"
)

// file is what a layer says of a file.
type file struct {
	Type     byte
	Mode     int64
	UID, GID int
	Link     string
	Data     string
	Time     int64
}

// contents reads a layer, and fails if it holds a path twice or a file before its
// folder.
func contents(t *testing.T, layer v1.Layer) map[string]file {
	t.Helper()
	uncompressed, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer uncompressed.Close()
	out := map[string]file{}
	for reader := tar.NewReader(uncompressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := out[header.Name]; twice {
			t.Errorf("%s is there twice", header.Name)
		}
		if parent := filepath.Dir(strings.TrimSuffix(header.Name, "/")); parent != "." {
			if _, found := out[parent+"/"]; !found {
				t.Errorf("%s comes before its folder", header.Name)
			}
		}
		out[header.Name] = file{header.Typeflag, header.Mode, header.Uid, header.Gid, header.Linkname, string(data), header.ModTime.Unix()}
	}
}

func TestALayerHoldsItsEntries(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("\x7fELF"), 0o600); err != nil {
		t.Fatal(err)
	}
	layer, err := ociimage.Layer(
		ociimage.Entry{Path: "usr/local/bin/program", From: program, Mode: 0o755},
		ociimage.Entry{Path: "usr/bin/sh", Link: "busybox"},
		ociimage.Entry{Path: "etc/passwd", Data: []byte("root")},
		ociimage.Entry{Path: "tmp/", Mode: 0o1777},
		ociimage.Entry{Path: "var/"},
		ociimage.Entry{Path: "home/user/", Mode: 0o700, UID: 65532, GID: 1000},
		ociimage.Entry{Path: "home/user/key", Data: []byte("k"), Mode: 0o600, UID: 65532, GID: 1000},
		ociimage.Entry{Path: "empty"},
	)
	if err != nil {
		t.Fatal(err)
	}
	folder := file{Type: tar.TypeDir, Mode: 0o755}
	want := map[string]file{
		"empty":                 {Type: tar.TypeReg, Mode: 0o644},
		"etc/":                  folder,
		"etc/passwd":            {Type: tar.TypeReg, Mode: 0o644, Data: "root"},
		"home/":                 folder,
		"home/user/":            {Type: tar.TypeDir, Mode: 0o700, UID: 65532, GID: 1000},
		"home/user/key":         {Type: tar.TypeReg, Mode: 0o600, UID: 65532, GID: 1000, Data: "k"},
		"tmp/":                  {Type: tar.TypeDir, Mode: 0o1777},
		"usr/":                  folder,
		"usr/bin/":              folder,
		"usr/bin/sh":            {Type: tar.TypeSymlink, Mode: 0o777, Link: "busybox"},
		"usr/local/":            folder,
		"usr/local/bin/":        folder,
		"usr/local/bin/program": {Type: tar.TypeReg, Mode: 0o755, Data: "\x7fELF"},
		"var/":                  folder,
	}
	if diff := cmp.Diff(want, contents(t, layer)); diff != "" {
		t.Error(diff)
	}
}

func TestALayerRefuses(t *testing.T) {
	tests := map[string]struct {
		entries []ociimage.Entry
		want    string
	}{
		"an absolute path":      {[]ociimage.Entry{{Path: "/etc/passwd"}}, `path "/etc/passwd"`},
		"a path out of it":      {[]ociimage.Entry{{Path: "a/../../etc/passwd"}}, "without a leading slash"},
		"its root":              {[]ociimage.Entry{{Path: "./"}}, `path "./"`},
		"no path":               {[]ociimage.Entry{{}}, `path ""`},
		"a slash alone":         {[]ociimage.Entry{{Path: "/"}}, `path "/"`},
		"one path for two":      {[]ociimage.Entry{{Path: "a", Data: []byte("1")}, {Path: "b"}, {Path: "a", Data: []byte("2")}}, "a: two entries"},
		"a file and a folder":   {[]ociimage.Entry{{Path: "a/"}, {Path: "a-b"}, {Path: "a"}}, "a: two entries"},
		"a file that is no one": {[]ociimage.Entry{{Path: "a", From: "no/such/file"}}, "no/such/file"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ociimage.Layer(test.entries...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestWriteMakesNoFolderThatIsThere(t *testing.T) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	folders := map[string]bool{"usr": true, "usr/lib": true}
	if err := ociimage.Write(writer, folders, ociimage.Entry{Path: "usr/lib/a/b"}, ociimage.Entry{Path: "usr/lib/a/c"}); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for reader := tar.NewReader(&buffer); ; {
		header, err := reader.Next()
		if err != nil {
			break
		}
		got = append(got, header.Name)
	}
	if diff := cmp.Diff([]string{"usr/lib/a/", "usr/lib/a/b", "usr/lib/a/c"}, got); diff != "" {
		t.Error(diff)
	}
}

func image(t *testing.T, entries ...ociimage.Entry) v1.Image {
	t.Helper()
	layer, err := ociimage.Layer(entries...)
	if err != nil {
		t.Fatal(err)
	}
	made, err := ociimage.New(v1.Platform{OS: "linux", Architecture: "arm64", Variant: "v8"}, ociimage.Config{
		Entrypoint: []string{"/program", "serve"}, Env: []string{"A=1"}, User: "65532:65532", WorkingDir: "/work", Labels: map[string]string{"l": "v"},
	}, layer)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func digest(t *testing.T, image v1.Image) string {
	t.Helper()
	hash, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

func TestTheSameInputGivesTheSameDigest(t *testing.T) {
	a, b, c := ociimage.Entry{Path: "b/x", Data: []byte("x")}, ociimage.Entry{Path: "b/", Mode: 0o700}, ociimage.Entry{Path: "a", Link: "b"}
	want := digest(t, image(t, a, b, c))
	tests := map[string]struct {
		entries []ociimage.Entry
		same    bool
	}{
		"again":          {[]ociimage.Entry{a, b, c}, true},
		"in other order": {[]ociimage.Entry{c, a, b}, true},
		"backwards":      {[]ociimage.Entry{c, b, a}, true},
		"without one":    {[]ociimage.Entry{a, b}, false},
		"another mode":   {[]ociimage.Entry{a, {Path: "b/", Mode: 0o750}, c}, false},
		"another owner":  {[]ociimage.Entry{a, {Path: "b/", Mode: 0o700, UID: 1}, c}, false},
		"other contents": {[]ociimage.Entry{{Path: "b/x", Data: []byte("y")}, b, c}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := digest(t, image(t, test.entries...)); (got == want) != test.same {
				t.Errorf("%s and %s", got, want)
			}
		})
	}

	// The time and mode of a file on this machine are no part of the input.
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := digest(t, image(t, ociimage.Entry{Path: "b/x", From: program}, b, c)); got != want {
		t.Errorf("from a file the digest is %s, want %s", got, want)
	}
}

func TestAnImageSaysWhatItStarts(t *testing.T) {
	config, err := image(t, ociimage.Entry{Path: "program"}).ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != "arm64" || config.Variant != "v8" || config.Created.Unix() != 0 {
		t.Errorf("made for %s %s %s at %v", config.OS, config.Architecture, config.Variant, config.Created)
	}
	want := v1.Config{
		Entrypoint: []string{"/program", "serve"}, User: "65532:65532", WorkingDir: "/work", Labels: map[string]string{"l": "v"},
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "A=1"},
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Error(diff)
	}
	if len(config.RootFS.DiffIDs) != 1 {
		t.Errorf("%d layers", len(config.RootFS.DiffIDs))
	}
}

func TestATarFileIsALayer(t *testing.T) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	if err := ociimage.Write(writer, map[string]bool{}, ociimage.Entry{Path: "etc/passwd", Data: []byte("root")}); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rootfs.tar")
	if err := os.WriteFile(path, buffer.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	layer, err := ociimage.Tar(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := contents(t, layer); got["etc/passwd"].Data != "root" || len(got) != 2 {
		t.Errorf("%v", got)
	}
	if _, err := ociimage.Tar(path + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
