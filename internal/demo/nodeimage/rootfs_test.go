package nodeimage

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

	"github.com/trainyard/trainyard/internal/demo/ociimage"
)

// debian is a Debian file system as mmdebstrap writes it: device files first,
// names that begin with ./, /lib as a link.
var debian = []tar.Header{
	{Typeflag: tar.TypeDir, Name: "./dev/", Mode: 0o755},
	{Typeflag: tar.TypeChar, Name: "./dev/null", Mode: 0o666, Devmajor: 1, Devminor: 3},
	{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755},
	{Typeflag: tar.TypeSymlink, Name: "./lib", Linkname: "usr/lib", Mode: 0o777},
	{Typeflag: tar.TypeSymlink, Name: "./bin", Linkname: "usr/bin", Mode: 0o777},
	{Typeflag: tar.TypeDir, Name: "./etc/", Mode: 0o755},
	{Typeflag: tar.TypeReg, Name: "./etc/passwd", Mode: 0o644, Size: 6},
	{Typeflag: tar.TypeReg, Name: "./etc/crictl.yaml", Mode: 0o600, Size: 6},
	{Typeflag: tar.TypeDir, Name: "./etc/systemd/", Mode: 0o755},
	{Typeflag: tar.TypeDir, Name: "./etc/systemd/system/", Mode: 0o755},
	{Typeflag: tar.TypeDir, Name: "./etc/systemd/system/getty.target.wants/", Mode: 0o755},
	{Typeflag: tar.TypeSymlink, Name: "./etc/systemd/system/getty.target.wants/getty@tty1.service", Linkname: "/usr/lib/systemd/system/getty@.service", Mode: 0o777},
	{Typeflag: tar.TypeDir, Name: "./opt/", Mode: 0o700, Uid: 5, Gid: 6},
	{Typeflag: tar.TypeDir, Name: "./usr/", Mode: 0o755},
	{Typeflag: tar.TypeDir, Name: "./usr/bin/", Mode: 0o755},
	{Typeflag: tar.TypeReg, Name: "./usr/bin/busybox", Mode: 0o755, Size: 6},
	{Typeflag: tar.TypeReg, Name: "./usr/bin/passwd", Mode: 0o4755, Size: 6},
	{Typeflag: tar.TypeLink, Name: "./usr/bin/passwd2", Linkname: "./usr/bin/passwd", Mode: 0o4755},
	{Typeflag: tar.TypeDir, Name: "./usr/lib/", Mode: 0o755},
	{Typeflag: tar.TypeDir, Name: "./usr/lib/systemd/", Mode: 0o755},
}

// pack writes a tar file with these headers; regular files hold "debian".
func pack(t *testing.T, headers ...tar.Header) string {
	t.Helper()
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, header := range headers {
		if err := writer.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(writer, "debian"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rootfs.tar")
	if err := os.WriteFile(file, buffer.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// list returns the headers of an archive in their order, and the contents of its
// regular files.
func list(t *testing.T, archive io.Reader) (headers []*tar.Header, contents map[string]string) {
	t.Helper()
	contents = map[string]string{}
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return headers, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		headers = append(headers, header)
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			contents[strings.TrimPrefix(header.Name, "./")] = string(data)
		}
	}
}

func TestWriteRootfsDropsReplacesAndAdds(t *testing.T) {
	var out bytes.Buffer
	err := writeRootfs(&out, pack(t, debian...), []ociimage.Entry{
		{Path: "etc/crictl.yaml", Data: []byte("ours"), Mode: 0o644},
		{Path: "etc/systemd/system/multi-user.target.wants/kubelet.service", Link: "/etc/systemd/system/kubelet.service"},
		{Path: "opt/cni/bin", Link: "/usr/lib/cni"},
		{Path: "usr/bin/kubelet", Data: []byte("program"), Mode: 0o755},
		{Path: "lib/modules-load.d/k.conf", Data: []byte("br_netfilter")},
		{Path: "etc/kubernetes/manifests/"},
	})
	if err != nil {
		t.Fatal(err)
	}
	headers, contents := list(t, &out)
	var names []string
	for _, header := range headers {
		names = append(names, strings.TrimPrefix(header.Name, "./"))
	}
	want := []string{
		"dev/", "dev/null", "lib", "bin", "etc/", "etc/passwd", "etc/systemd/", "etc/systemd/system/",
		// getty.target.wants and its link are dropped, crictl.yaml comes below.
		"opt/", "usr/", "usr/bin/", "usr/bin/busybox", "usr/bin/passwd", "usr/bin/passwd2", "usr/lib/", "usr/lib/systemd/",
		"etc/crictl.yaml",
		"etc/kubernetes/", "etc/kubernetes/manifests/",
		"etc/systemd/system/multi-user.target.wants/", "etc/systemd/system/multi-user.target.wants/kubelet.service",
		"lib/modules-load.d/", "lib/modules-load.d/k.conf", // no folder lib/, which would take the link's place
		"opt/cni/", "opt/cni/bin",
		"usr/bin/kubelet",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	wantContents := map[string]string{
		"etc/passwd": "debian", "usr/bin/busybox": "debian", "usr/bin/passwd": "debian",
		"etc/crictl.yaml": "ours", "usr/bin/kubelet": "program", "lib/modules-load.d/k.conf": "br_netfilter",
	}
	if diff := cmp.Diff(wantContents, contents); diff != "" {
		t.Error(diff)
	}
	for _, header := range headers {
		switch header.Name {
		case "./usr/bin/passwd": // the set-user-ID bit
			if header.Mode != 0o4755 {
				t.Errorf("passwd has mode %o", header.Mode)
			}
		case "./dev/null":
			if header.Typeflag != tar.TypeChar || header.Devmajor != 1 || header.Devminor != 3 {
				t.Errorf("/dev/null is %+v", header)
			}
		case "./opt/": // Debian's, not made anew for what is put into it
			if header.Mode != 0o700 || header.Uid != 5 || header.Gid != 6 {
				t.Errorf("/opt is %+v", header)
			}
		case "opt/cni/bin":
			if header.Typeflag != tar.TypeSymlink || header.Linkname != "/usr/lib/cni" {
				t.Errorf("/opt/cni/bin is %+v", header)
			}
		case "etc/crictl.yaml":
			if header.Mode != 0o644 {
				t.Errorf("crictl.yaml has mode %o", header.Mode)
			}
		}
	}
}

func TestWriteRootfsFails(t *testing.T) {
	whole := pack(t, debian...)
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.tar")
	if err := os.WriteFile(cut, data[:len(data)/2+100], 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		from    string
		entries []ociimage.Entry
		want    string
	}{
		"no file":        {"no-such.tar", nil, "no-such.tar"},
		"half a file":    {cut, nil, cut},
		"no program":     {whole, []ociimage.Entry{{Path: "usr/bin/kubelet", From: "no/kubelet"}}, "no/kubelet"},
		"a path that is": {whole, []ociimage.Entry{{Path: "/usr/bin/kubelet"}}, "/usr/bin/kubelet"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := writeRootfs(io.Discard, test.from, test.entries)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestShellLayerIsBusyboxWithItsLinks(t *testing.T) {
	layer, err := ShellLayer(pack(t, debian...))
	if err != nil {
		t.Fatal(err)
	}
	uncompressed, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer uncompressed.Close()
	headers, contents := list(t, uncompressed)
	if contents["bin/busybox"] != "debian" {
		t.Errorf("bin/busybox holds %q", contents["bin/busybox"])
	}
	applets := map[string]bool{}
	for _, header := range headers {
		if header.Typeflag == tar.TypeSymlink && header.Linkname == "busybox" {
			applets[header.Name] = true
		}
		if header.Name == "bin/busybox" && header.Mode != 0o755 || header.Name == "tmp/" && header.Mode != 0o1777 {
			t.Errorf("%s has mode %o", header.Name, header.Mode)
		}
	}
	// What scripts of kind's storage helper and of Tekton call.
	for _, applet := range []string{"sh", "mkdir", "rm", "chmod", "cat", "sleep"} {
		if !applets["bin/"+applet] {
			t.Errorf("no %s", applet)
		}
	}
	if !strings.Contains(contents["etc/passwd"], "\nnonroot:x:65532:65532:") {
		t.Errorf("users are %q", contents["etc/passwd"])
	}

	for name, file := range map[string]string{
		"no busybox in it": pack(t, debian[:3]...),
		"a link in its place": pack(t,
			tar.Header{Typeflag: tar.TypeSymlink, Name: "./usr/bin/busybox", Linkname: "/bin/other"}),
		"no file": "no-such.tar",
	} {
		if _, err := ShellLayer(file); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: error %v, want one with the file", name, err)
		}
	}
}
