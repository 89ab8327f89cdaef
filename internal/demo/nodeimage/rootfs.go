package nodeimage

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/trainyard/trainyard/internal/demo/ociimage"
)

// unwanted says which units of Debian's must not start in a node: those that
// kind's Dockerfile removes.
func unwanted(name string) bool {
	dir, file := path.Split(name)
	switch strings.TrimPrefix(strings.TrimPrefix(dir, "usr/"), "lib/systemd/system/") {
	case "multi-user.target.wants/", "local-fs.target.wants/", "basic.target.wants/":
		return true
	case "sysinit.target.wants/":
		return file == "systemd-tmpfiles-setup.service"
	case "sockets.target.wants/":
		return strings.Contains(file, "udev") || strings.Contains(file, "initctl")
	}
	return strings.HasPrefix(dir, "etc/systemd/system/") && strings.HasSuffix(dir, ".wants/")
}

// settings are the links that systemctl enable and mask would make, and what
// kind's Dockerfile sets.
var settings = []ociimage.Entry{
	{Path: "etc/systemd/system/multi-user.target.wants/kubelet.service", Link: "/etc/systemd/system/kubelet.service"},
	{Path: "etc/systemd/system/multi-user.target.wants/containerd.service", Link: "/etc/systemd/system/containerd.service"},
	{Path: "etc/systemd/system/multi-user.target.wants/undo-mount-hacks.service", Link: "/etc/systemd/system/undo-mount-hacks.service"},
	{Path: "etc/systemd/system/systemd-binfmt.service", Link: "/dev/null"},
	// The kernel's log is the host's, and confusing in a node's journal.
	{Path: "etc/systemd/journald.conf.d/kind.conf", Data: []byte("[Journal]\nReadKMsg=no\n")},
}

// writeRootfs copies the Debian file system in the tar file from to out, without
// the units that a node must not start, and with entries, which win over
// Debian's files.
func writeRootfs(out io.Writer, from string, entries []ociimage.Entry) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	replaced := map[string]bool{}
	for _, entry := range entries {
		replaced[entry.Path] = true
	}
	folders := map[string]bool{}
	reader, writer := tar.NewReader(file), tar.NewWriter(out)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		name := strings.TrimPrefix(header.Name, "./")
		if name == "" || replaced[name] || unwanted(name) {
			continue
		}
		if header.Typeflag == tar.TypeDir || header.Typeflag == tar.TypeSymlink {
			folders[strings.TrimSuffix(name, "/")] = true
		}
		if err := writer.WriteHeader(header); err != nil {
			return err
		}
		if _, err := io.Copy(writer, reader); err != nil {
			return err
		}
	}
	if err := ociimage.Write(writer, folders, entries...); err != nil {
		return err
	}
	return writer.Close()
}
