package base

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/trainyard/trainyard/internal/builder/fileset"
	"github.com/trainyard/trainyard/internal/exitcode"
)

// packagesTar is a small stand-in for what mmdebstrap unpacks.
func packagesTar() fileset.Set {
	file := func(text string) fileset.Entry { return fileset.File([]byte(text)) }
	return fileset.Set{
		"usr/lib/os-release":                      file("PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nID=debian\nVERSION_ID=\"13\"\n"),
		"etc/os-release":                          fileset.Link("../usr/lib/os-release"),
		"etc/debian_version":                      file("13.1\n"),
		"etc/shadow":                              file("secret"),
		"usr/bin/busybox":                         {Mode: 0o755, Data: []byte("busybox")},
		"usr/bin/openssl":                         {Mode: 0o755, Data: []byte("openssl")},
		"usr/lib/x86_64-linux-gnu/libc.so.6":      file("libc"),
		"usr/share/zoneinfo/UTC":                  file("utc"),
		"usr/share/zoneinfo/localtime":            fileset.Link("/etc/localtime"),
		"usr/share/ca-certificates/mozilla/B.crt": file("cert B\n\n"),
		"usr/share/ca-certificates/mozilla/A.crt": file("cert A"),
		"usr/share/doc/tzdata/copyright":          file("c"),
		"usr/share/doc/busybox-static/copyright":  file("GPL"),
		"usr/share/doc/tzdata/changelog.gz":       file("long"),
		"usr/share/doc/libc6/copyright":           file("c"),
	}
}

// fakeMmdebstrap writes a program that unpacks files as mmdebstrap does: the
// target is the last argument but one.
func fakeMmdebstrap(t *testing.T, files fileset.Set) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "fixture.tar"))
	if err != nil {
		t.Fatal(err)
	}
	if err := files.WriteTar(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\necho \"$@\" >> %s/calls\nfor a; do target=$last; last=$a; done\ncp %s/fixture.tar \"$target\"\n", dir, dir)
	command := filepath.Join(dir, "mmdebstrap")
	if err := os.WriteFile(command, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return command
}

func TestDebianFiles(t *testing.T) {
	d := Debian{Suite: "trixie", Mirror: "http://mirror.example/debian", Command: fakeMmdebstrap(t, packagesTar()), Arch: "amd64"}
	cache := t.TempDir()
	for range 2 {
		set, err := d.Files(t.Context(), cache)
		if err != nil {
			t.Fatal(err)
		}
		for _, gone := range []string{"etc/shadow", "usr/bin/openssl", "usr/lib/x86_64-linux-gnu/libc.so.6", "usr/share/zoneinfo/localtime", "usr/share/doc/tzdata/changelog.gz", "usr/share/doc/libc6/copyright"} {
			if _, ok := set[gone]; ok {
				t.Errorf("%s was taken", gone)
			}
		}
		for _, must := range []string{"etc/os-release", "usr/bin/busybox", "usr/share/doc/tzdata/copyright"} {
			if _, ok := set[must]; !ok {
				t.Errorf("%s was not taken", must)
			}
		}
	}
	calls, err := os.ReadFile(filepath.Join(filepath.Dir(d.Command), "calls"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(calls), "\n"); n != 1 {
		t.Errorf("unpacked %d times, want once", n)
	}
	for _, arg := range []string{"--variant=extract", "--architectures=amd64", "base-files,busybox-static,ca-certificates,tzdata", "trixie", "http://mirror.example/debian"} {
		if !strings.Contains(string(calls), arg) {
			t.Errorf("mmdebstrap was called without %s: %s", arg, calls)
		}
	}
}

func TestDebianFilesFails(t *testing.T) {
	dir := t.TempDir()
	failing := filepath.Join(dir, "failing")
	if err := os.WriteFile(failing, []byte("#!/bin/sh\necho 'I: trying' >&2; echo 'E: no such suite' >&2; exit 25\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	empty := fakeMmdebstrap(t, fileset.Set{"etc/a": fileset.File(nil)})
	for name, c := range map[string]struct {
		command, says string
		code          int
	}{
		"mmdebstrap is missing": {"/nowhere/mmdebstrap", "/nowhere/mmdebstrap", 0},
		"not in PATH":           {"mmdebstrap-that-is-missing", "apt-get install mmdebstrap", 0},
		"mmdebstrap fails":      {failing, "trixie from http://m.example: exit status 25: E: no such suite", exitcode.IO},
		"other packages":        {empty, "no usr/lib/os-release", 0},
	} {
		t.Run(name, func(t *testing.T) {
			cache := t.TempDir()
			_, err := Debian{Suite: "trixie", Mirror: "http://m.example", Command: c.command, Arch: "amd64"}.Files(t.Context(), cache)
			if err == nil || !strings.Contains(err.Error(), c.says) || (c.code != 0 && exitcode.Of(err) != c.code) {
				t.Errorf("error %v (code %d), want %q", err, exitcode.Of(err), c.says)
			}
			left, _ := filepath.Glob(filepath.Join(cache, ".debian-*"))
			if len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// goRoot makes a directory that looks like a toolchain.
func goRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, mode := range map[string]fs.FileMode{
		"VERSION": 0o644, "LICENSE": 0o644, "go.env": 0o644, "bin/go": 0o755, "bin/gofmt": 0o755,
		"pkg/tool/linux_amd64/compile": 0o755, "pkg/tool/linux_amd64/link": 0o755, "pkg/tool/linux_amd64/asm": 0o755, "pkg/tool/linux_amd64/cgo": 0o755, "pkg/tool/linux_amd64/vet": 0o755,
		"pkg/include/textflag.h": 0o644, "src/fmt/print.go": 0o444, "src/fmt/print_test.go": 0o644, "src/fmt/testdata/x.go": 0o644,
		"src/cmd/go/main.go": 0o644, "src/internal/cmd/x.go": 0o644, "test/a.go": 0o644, "lib/time/zoneinfo.zip": 0o644, "lib/wasm/x": 0o644,
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		text := name
		if name == "VERSION" {
			text = "go1.26.8\ntime 2026-08-28T16:20:06Z\n"
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestGoFiles(t *testing.T) {
	root := goRoot(t)
	// As in Debian's packages: a part of the toolchain elsewhere, behind a link.
	elsewhere := t.TempDir()
	if err := os.Rename(filepath.Join(root, "src"), filepath.Join(elsewhere, "src")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(elsewhere, "src"), filepath.Join(root, "src")); err != nil {
		t.Fatal(err)
	}
	g, err := OpenGo(root, "amd64")
	if err != nil || g.Version != "go1.26.8" {
		t.Fatalf("%+v, %v", g, err)
	}
	set, err := g.Files("amd64")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"usr/local/bin/go": "Lrwxrwxrwx"}
	for _, name := range []string{"VERSION", "LICENSE", "go.env", "pkg/include/textflag.h", "src/fmt/print.go", "src/internal/cmd/x.go", "lib/time/zoneinfo.zip"} {
		want["usr/local/go/"+name] = "-rw-r--r--"
	}
	for _, name := range []string{"bin/go", "pkg/tool/linux_amd64/compile", "pkg/tool/linux_amd64/link", "pkg/tool/linux_amd64/asm", "pkg/tool/linux_amd64/cgo"} {
		want["usr/local/go/"+name] = "-rwxr-xr-x"
	}
	got := map[string]string{}
	for name, e := range set {
		got[name] = e.Mode.String()
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}

	if err := os.WriteFile(filepath.Join(root, "bin/go"), []byte("another build of it"), 0o755); err != nil {
		t.Fatal(err)
	}
	if other, err := OpenGo(root, "amd64"); err != nil || other.Key == g.Key {
		t.Errorf("another toolchain of one version has the same key: %+v, %v", other, err)
	}
}

func TestOpenGoRefuses(t *testing.T) {
	if _, err := OpenGo(t.TempDir(), "amd64"); err == nil || !strings.Contains(err.Error(), "no Go toolchain") {
		t.Errorf("an empty directory: %v", err)
	}
	if _, err := OpenGo(goRoot(t), "arm64"); err == nil || !strings.Contains(err.Error(), "linux/arm64") {
		t.Errorf("another architecture: %v", err)
	}
}

func debianFiles(t *testing.T) fileset.Set {
	t.Helper()
	set, err := Debian{Suite: "trixie", Mirror: "m", Command: fakeMmdebstrap(t, packagesTar()), Arch: "amd64"}.Files(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// contents unpacks an image into memory.
func contents(t *testing.T, img v1.Image) fileset.Set {
	t.Helper()
	r := mutate.Extract(img)
	defer r.Close()
	set, err := fileset.ReadTar(r, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		if err := validate.Layer(l); err != nil {
			t.Error(err)
		}
	}
	return set
}

func TestRunImageHasWhatStaticProgramsNeedAndNoMore(t *testing.T) {
	img, err := Run(debianFiles(t), "amd64", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	set := contents(t, img)
	if got := string(set["etc/ssl/certs/ca-certificates.crt"].Data); got != "cert A\ncert B\n" {
		t.Errorf("certificates %q", got)
	}
	if got := string(set["etc/passwd"].Data); !strings.Contains(got, "cnb:x:1002:1000:") {
		t.Errorf("users %q", got)
	}
	if e := set["home/cnb"]; e.UID != 1002 || e.GID != 1000 {
		t.Errorf("home directory %+v", e)
	}
	if _, ok := set["tmp"]; !ok {
		t.Error("no /tmp")
	}
	for name, e := range set {
		if e.Mode.IsRegular() && e.Mode&0o111 != 0 || strings.Contains(name, "busybox") || strings.Contains(name, "mozilla") {
			t.Errorf("%s is in the run image", name)
		}
	}
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c.OS != "linux" || c.Architecture != "amd64" || c.Config.User != "1002:1000" {
		t.Errorf("config %+v", c)
	}
	want := map[string]string{"io.buildpacks.base.distro.name": "debian", "io.buildpacks.base.distro.version": "13"}
	if d := cmp.Diff(want, c.Config.Labels); d != "" {
		t.Errorf("labels: -want +got\n%s", d)
	}
}

func TestBuildImage(t *testing.T) {
	g, err := OpenGo(goRoot(t), "amd64")
	if err != nil {
		t.Fatal(err)
	}
	img, err := Build(debianFiles(t), g, "amd64", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	set := contents(t, img)
	if string(set["usr/local/go/bin/go"].Data) != "bin/go" || string(set["usr/bin/busybox"].Data) != "busybox" || set["usr/bin/sh"].Link != "busybox" || set["bin"].Link != "usr/bin" {
		t.Error("toolchain or shell are missing")
	}
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []string{"CNB_USER_ID=1001", "CNB_GROUP_ID=1000", "PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"} {
		if !strings.Contains(strings.Join(c.Config.Env, "\n")+"\n", e+"\n") {
			t.Errorf("environment %q without %s", c.Config.Env, e)
		}
	}
	if c.Config.User != "1001:1000" {
		t.Errorf("user %q", c.Config.User)
	}
}

func TestImagesAreTheSameInEveryDirectory(t *testing.T) {
	digests := map[string]bool{}
	for range 2 {
		g, err := OpenGo(goRoot(t), "amd64")
		if err != nil {
			t.Fatal(err)
		}
		img, err := Build(debianFiles(t), g, "amd64", t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		d, err := img.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests[d.String()] = true
	}
	if len(digests) != 1 {
		t.Errorf("digests %v", digests)
	}
}

func TestCertificateBundleNeedsCertificates(t *testing.T) {
	if _, err := certificateBundle(fileset.Set{}); err == nil {
		t.Error("no error")
	}
}

func FuzzOSRelease(f *testing.F) {
	f.Add([]byte("ID=debian\nVERSION_ID=\"13\"\n# c=d\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for k, v := range osRelease(data) {
			if strings.ContainsAny(k+v, "\n") || strings.HasPrefix(k, "#") {
				t.Errorf("%q=%q", k, v)
			}
		}
	})
}
