package toolimage

import (
	"archive/tar"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/trainyard/trainyard/internal/registryclient"
)

func amd64() v1.Platform { return v1.Platform{OS: "linux", Architecture: "amd64"} }
func arm64() v1.Platform { return v1.Platform{OS: "linux", Architecture: "arm64"} }

// elfProgram is the least that says "I am a program for this machine".
func elfProgram(machine uint16, segments ...uint32) []byte {
	b := make([]byte, 64+56*len(segments))
	copy(b, "\x7fELF\x02\x01\x01")
	le := binary.LittleEndian
	le.PutUint16(b[16:], 2) // ET_EXEC
	le.PutUint16(b[18:], machine)
	le.PutUint32(b[20:], 1)
	le.PutUint64(b[32:], 64) // program headers follow the file header
	le.PutUint16(b[52:], 64)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], uint16(len(segments)))
	le.PutUint16(b[58:], 64)
	for i, s := range segments {
		le.PutUint32(b[64+56*i:], s)
	}
	return b
}

const (
	machineAMD64 = 62
	machineARM64 = 183
	segmentLoad  = 1
	segmentInter = 3
)

func writeFile(t *testing.T, path string, data []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func certificate(t *testing.T, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestImageHoldsItsProgramsAndNoShell(t *testing.T) {
	program := elfProgram(machineAMD64, segmentLoad)
	trainer := append(elfProgram(machineAMD64, segmentLoad), 1)
	img, err := New(Config{
		Program:  writeFile(t, filepath.Join(t.TempDir(), "p"), program),
		Trainer:  writeFile(t, filepath.Join(t.TempDir(), "t"), trainer),
		Platform: amd64(), Certificates: []byte("PEM"), Version: "v1", Revision: "abc",
	})
	if err != nil {
		t.Fatal(err)
	}
	type entry struct {
		Mode int64
		Data string
	}
	got := map[string]entry{}
	r := tar.NewReader(mutate.Extract(img))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(r)
		got[strings.TrimSuffix(h.Name, "/")] = entry{h.Mode, string(data)}
		if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(time.Unix(0, 0)) {
			t.Errorf("%s: owner %d:%d, time %v", h.Name, h.Uid, h.Gid, h.ModTime)
		}
	}
	for _, name := range []string{"etc/group", "etc/passwd", "etc/nsswitch.conf"} {
		if got[name].Mode != 0o644 {
			t.Errorf("%s: %+v", name, got[name])
		}
		delete(got, name)
	}
	want := map[string]entry{
		"etc": {0o755, ""}, "etc/ssl": {0o755, ""}, "etc/ssl/certs": {0o755, ""}, "tmp": {0o1777, ""},
		"etc/ssl/certs/ca-certificates.crt": {0o644, "PEM"},
		"usr":                               {0o755, ""}, "usr/local": {0o755, ""}, "usr/local/bin": {0o755, ""},
		"usr/local/bin/yard": {0o755, string(program)}, "usr/local/bin/trainer": {0o755, string(trainer)},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}

	cf, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if cf.Config.User != "65532:1000" || cf.OS != "linux" || cf.Architecture != "amd64" {
		t.Errorf("user %q, platform %s/%s", cf.Config.User, cf.OS, cf.Architecture)
	}
	if d := cmp.Diff([]string{"/usr/local/bin/yard"}, cf.Config.Entrypoint); d != "" {
		t.Errorf("entrypoint (-want +got):\n%s", d)
	}
	for label, want := range map[string]string{
		"org.opencontainers.image.version":  "v1",
		"org.opencontainers.image.revision": "abc",
		// printf PEM | sha256sum
		"io.github.trainyard.certificates": "sha256:384fb9a44fabe158be2757b9b8d8f67029f2280fcc1776ab2a53103e6f0c582d",
	} {
		if cf.Config.Labels[label] != want {
			t.Errorf("label %s = %q, want %q", label, cf.Config.Labels[label], want)
		}
	}
}

func TestImageDependsOnContentsAlone(t *testing.T) {
	program := elfProgram(machineAMD64, segmentLoad)
	build := func(change func(*Config)) v1.Hash {
		t.Helper()
		// Another directory, another file time.
		path := writeFile(t, filepath.Join(t.TempDir(), "p"), program)
		c := Config{Program: path, Platform: amd64(), Certificates: []byte("PEM"), Version: "v1"}
		change(&c)
		img, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		h, err := img.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	first := build(func(*Config) {})
	if again := build(func(c *Config) { _ = os.Chtimes(c.Program, time.Now(), time.Now().Add(time.Hour)) }); again != first {
		t.Errorf("same contents: %s, then %s", first, again)
	}
	for name, change := range map[string]func(*Config){
		"certificates": func(c *Config) { c.Certificates = []byte("other") },
		"version":      func(c *Config) { c.Version = "v2" },
		"time":         func(c *Config) { c.Created = time.Unix(1, 0) },
		"program":      func(c *Config) { writeFile(t, c.Program, append(program, 0)) },
	} {
		if other := build(change); other == first {
			t.Errorf("another %s gives the same digest", name)
		}
	}
}

func TestProgramThatCouldNotStartIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		program  []byte
		platform v1.Platform
		want     string
	}{
		"other machine":        {elfProgram(machineARM64, segmentLoad), amd64(), "built for EM_AARCH64"},
		"dynamically linked":   {elfProgram(machineAMD64, segmentLoad, segmentInter), amd64(), "CGO_ENABLED=0"},
		"script":               {[]byte("#!/bin/sh\n"), amd64(), "not a Linux program"},
		"cut off":              {elfProgram(machineAMD64, segmentLoad)[:40], amd64(), "not a Linux program"},
		"empty":                {nil, amd64(), "not a Linux program"},
		"platform of no build": {elfProgram(machineAMD64, segmentLoad), v1.Platform{OS: "linux", Architecture: "s390x"}, "linux/s390x is not supported"},
		"another system":       {elfProgram(machineAMD64, segmentLoad), v1.Platform{OS: "windows", Architecture: "amd64"}, "windows/amd64 is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, filepath.Join(t.TempDir(), "p"), tc.program)
			_, err := New(Config{Program: path, Platform: tc.platform})
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %v, want one line with %q", err, tc.want)
			}
		})
	}
	if _, err := New(Config{Program: filepath.Join(t.TempDir(), "absent"), Platform: amd64()}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent program: %v", err)
	}
}

func TestPushReturnsTheReferenceThatTheRegistryServes(t *testing.T) {
	srv := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer srv.Close()
	host := strings.TrimPrefix(srv.URL, "http://")
	tag := host + "/trainyard/yard:v1"
	client, err := registryclient.New(registryclient.Options{Insecure: []string{host}})
	if err != nil {
		t.Fatal(err)
	}
	var images []v1.Image
	for p, machine := range map[*v1.Platform]uint16{new(amd64()): machineAMD64, new(arm64()): machineARM64} {
		img, err := New(Config{Program: writeFile(t, filepath.Join(t.TempDir(), "p"), elfProgram(machine, segmentLoad)), Platform: *p})
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, img)
	}
	if _, err := Index(images[0], images[0]); err == nil {
		t.Error("an index with two images for one platform was accepted")
	}
	idx, err := Index(images...)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := Push(t.Context(), client, tag, idx)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []v1.Platform{amd64(), arm64()} {
		img, err := remote.Image(ref, remote.WithPlatform(p))
		if err != nil {
			t.Fatal(err)
		}
		cf, err := img.ConfigFile()
		if err != nil || cf.Architecture != p.Architecture {
			t.Errorf("for %s the registry serves %v, %v", p.String(), cf, err)
		}
		if err := validate.Image(img); err != nil {
			t.Errorf("for %s: %v", p.String(), err)
		}
	}
	parsed, err := client.Reference(tag)
	if err != nil {
		t.Fatal(err)
	}
	desc, err := remote.Head(parsed)
	if err != nil || desc.Digest.String() != ref.DigestStr() {
		t.Errorf("tag is %v, %v, pushed %s", desc, err, ref)
	}
}

func TestCompileStampsAndReproduces(t *testing.T) {
	build := func(s Source) []byte {
		t.Helper()
		s.Package, s.Platform, s.Output = ".", v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, filepath.Join(t.TempDir(), "program")
		if err := Compile(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(s.Output).Output()
		if err != nil || string(out) != s.Version+" "+s.Commit+"\n" {
			t.Fatalf("program says %q, %v", out, err)
		}
		data, err := os.ReadFile(s.Output)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkStatic(data, s.Platform); err != nil {
			t.Error(err)
		}
		return data
	}
	first := build(Source{Module: "testdata/program", Version: "v1.2.3", Commit: "abc"})

	// The same source elsewhere, by a user with settings of his own.
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.CopyFS(elsewhere, os.DirFS("testdata/program")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOFLAGS", "-tags=mine")
	t.Setenv("GOAMD64", "v3")
	t.Setenv("CGO_ENABLED", "1")
	if !bytes.Equal(first, build(Source{Module: elsewhere, Version: "v1.2.3", Commit: "abc"})) {
		t.Error("the same source in another directory gives another program")
	}
	if bytes.Equal(first, build(Source{Module: "testdata/program", Version: "v1.2.4", Commit: "abc"})) {
		t.Error("another version gives the same program")
	}
}

func TestMakeCompilesAndAssembles(t *testing.T) {
	s := Source{Module: "testdata/program", Package: ".", Platform: v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, Version: "v1", Commit: "abc"}
	img, err := Make(t.Context(), s, []byte("PEM"), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	cf, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if cf.Config.Labels["org.opencontainers.image.revision"] != "abc" || cf.Architecture != runtime.GOARCH {
		t.Errorf("image has labels %v and is for %s", cf.Config.Labels, cf.Architecture)
	}
	s.Module = t.TempDir()
	if _, err := Make(t.Context(), s, nil, time.Time{}); err == nil {
		t.Error("a directory without a module gave an image")
	}
}

func TestCompileNamesWhatFailed(t *testing.T) {
	broken := t.TempDir()
	writeFile(t, filepath.Join(broken, "go.mod"), []byte("module broken\n\ngo 1.26\n"))
	writeFile(t, filepath.Join(broken, "main.go"), []byte("package main\n\nfunc main() { x }\n"))
	for name, tc := range map[string]struct {
		source Source
		want   string
	}{
		"broken source":      {Source{Module: broken, Package: "."}, "undefined: x"},
		"no go command":      {Source{Module: broken, Package: ".", Go: "/nonexistent/go"}, "/nonexistent/go"},
		"space in a version": {Source{Module: broken, Package: ".", Version: "v1 -X main.commit=evil"}, "spaces and quotes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.source
			s.Platform, s.Output = amd64(), filepath.Join(t.TempDir(), "p")
			err := Compile(t.Context(), s)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %v, want one line with %q", err, tc.want)
			}
			if _, err := os.Stat(s.Output); err == nil {
				t.Error("a program was left behind")
			}
		})
	}
}

func TestCertificatesOfAFolderAreThoseOfItsFilesInOrder(t *testing.T) {
	d := t.TempDir()
	a, b := certificate(t, "a"), certificate(t, "b")
	writeFile(t, filepath.Join(d, "b.crt"), b)
	writeFile(t, filepath.Join(d, "a.crt"), append([]byte("# comment\n"), a...))
	writeFile(t, filepath.Join(d, "key.pem"), []byte("not read"))
	got, err := ReadCertificates(d)
	if err != nil {
		t.Fatal(err)
	}
	if want := append(append([]byte{}, a...), b...); !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhatIsNoCertificateIsRefused(t *testing.T) {
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")})
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"a private key": {append(certificate(t, "a"), key...), `block 2 is a "PRIVATE KEY"`},
		"garbage":       {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), "block 1"},
		"nothing":       {nil, "no CA certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, filepath.Join(t.TempDir(), "ca.crt"), tc.data)
			_, err := ReadCertificates(path)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) {
				t.Fatalf("error %v, want %q and the file", err, tc.want)
			}
		})
	}
	if _, err := ReadCertificates(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
}

func FuzzReadCertificates(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := writeFile(t, filepath.Join(t.TempDir(), "ca.crt"), data)
		if out, err := ReadCertificates(path); err == nil && !x509.NewCertPool().AppendCertsFromPEM(out) {
			t.Errorf("%q was accepted, but holds no certificate", data)
		}
	})
}
