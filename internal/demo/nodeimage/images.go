package nodeimage

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/trainyard/internal/demo/ociimage"
)

// componentImages returns the images that a node must hold, by their tags: those
// that kubeadm names, the sandbox that containerd is configured with, and the
// storage provisioner's.
func componentImages(in Inputs, kind kindSource, kubeadm []string, sandbox string) (map[name.Tag]v1.Image, error) {
	tools, err := ociimage.Tar(in.ToolsRootfs)
	if err != nil {
		return nil, err
	}
	busybox, err := ShellLayer(in.ToolsRootfs)
	if err != nil {
		return nil, err
	}
	images := map[name.Tag]v1.Image{}
	add := func(reference, program, at string, config ociimage.Config, base ...v1.Layer) error {
		tag, err := name.NewTag(reference)
		if err != nil {
			return err
		}
		layers := base
		if program != "" {
			binary, err := in.program(program)
			if err != nil {
				return fmt.Errorf("image %s: %w", reference, err)
			}
			layer, err := ociimage.Layer(ociimage.Entry{Path: at, From: binary, Mode: 0o755})
			if err != nil {
				return err
			}
			layers = append(layers, layer)
		}
		images[tag], err = ociimage.New(in.Platform, config, layers...)
		return err
	}
	for _, reference := range append(kubeadm, sandbox) {
		tag, err := name.NewTag(reference, name.StrictValidation)
		if err != nil {
			return nil, fmt.Errorf("image %q of a node: %w", reference, err)
		}
		switch program := path.Base(tag.RepositoryStr()); program {
		case "kube-proxy": // calls iptables, nft and conntrack
			err = add(reference, program, "usr/local/bin/kube-proxy", ociimage.Config{}, tools)
		case "coredns", "pause":
			err = add(reference, program, program, ociimage.Config{Entrypoint: []string{"/" + program}})
		default:
			err = add(reference, program, "usr/local/bin/"+program, ociimage.Config{})
		}
		if err != nil {
			return nil, err
		}
	}
	err = add(kind.provisionerImage, "local-path-provisioner", "usr/local/bin/local-path-provisioner",
		ociimage.Config{Entrypoint: []string{"/usr/local/bin/local-path-provisioner"}})
	if err != nil {
		return nil, err
	}
	return images, add(kind.storageImage, "", "", ociimage.Config{}, busybox)
}

// ShellLayer returns a layer with the busybox of a Debian file system and the links
// that scripts of ours and others' expect.
func ShellLayer(rootfs string) (v1.Layer, error) {
	busybox, err := readFile(rootfs, "usr/bin/busybox")
	if err != nil {
		return nil, err
	}
	entries := []ociimage.Entry{
		{Path: "bin/busybox", Data: busybox, Mode: 0o755},
		{Path: "tmp/", Mode: 0o1777},
		{Path: "etc/passwd", Data: []byte("root:x:0:0:root:/root:/bin/sh\nnonroot:x:65532:65532:nonroot:/tmp:/bin/sh\n")},
		{Path: "etc/group", Data: []byte("root:x:0:\nnonroot:x:65532:\n")},
	}
	for _, applet := range strings.Fields("sh cat chmod cp date echo env find grep head id ls mkdir mv printf rm sed sleep stat tail test touch true wc wget") {
		entries = append(entries, ociimage.Entry{Path: "bin/" + applet, Link: "busybox"})
	}
	return ociimage.Layer(entries...)
}

// readFile returns one file of a tar file.
func readFile(archive, file string) ([]byte, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for reader := tar.NewReader(f); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s holds no %s", archive, file)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", archive, err)
		}
		if strings.TrimPrefix(header.Name, "./") != file {
			continue
		}
		if header.Typeflag != tar.TypeReg {
			return nil, fmt.Errorf("%s: %s is no regular file", archive, file)
		}
		return io.ReadAll(reader)
	}
}
