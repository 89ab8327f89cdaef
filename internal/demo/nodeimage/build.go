package nodeimage

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/trainyard/trainyard/internal/demo/docker"
	"github.com/trainyard/trainyard/internal/demo/ociimage"
	"github.com/trainyard/trainyard/internal/demo/rootfs"
)

// Inputs are what a node image is made of.
type Inputs struct {
	// Image is the name and tag that it gets.
	Image string
	// Platform of the programs.
	Platform v1.Platform
	// KubernetesVersion, with a v.
	KubernetesVersion string
	// KindModule is the folder of kind's Go module.
	KindModule string
	// NodeRootfs and ToolsRootfs are tar files of the file systems of those names.
	NodeRootfs, ToolsRootfs string
	// Programs are paths by name: kubelet, kubeadm, kubectl, containerd, ctr,
	// containerd-shim-runc-v2, kube-apiserver and so on.
	Programs map[string]string
}

func (in Inputs) program(name string) (string, error) {
	if path := in.Programs[name]; path != "" {
		return path, nil
	}
	return "", fmt.Errorf("no program %s was built", name)
}

// NodeRootfs is what kind's Dockerfile installs in a node, with runc and the CNI
// plugins, which kind builds, as Debian's packages.
func NodeRootfs() rootfs.Rootfs {
	return rootfs.Rootfs{Name: "node", Suite: "trixie", Packages: []string{
		"systemd", "systemd-sysv", "conntrack", "iptables", "nftables", "iproute2", "ethtool",
		"util-linux", "mount", "kmod", "libseccomp2", "pigz", "fuse-overlayfs", "ca-certificates",
		"curl", "jq", "procps", "hostname", "runc", "containernetworking-plugins",
	}}
}

// ToolsRootfs is a base for images whose program calls others: kube-proxy,
// Tekton's git resolver, a git server.
func ToolsRootfs() rootfs.Rootfs {
	return rootfs.Rootfs{Name: "tools", Suite: "trixie", Packages: []string{
		"ca-certificates", "git", "openssh-client", "tini", "busybox-static",
		"iptables", "nftables", "conntrack", "kmod",
	}}
}

// Builder makes node images with a Docker engine.
type Builder struct {
	Docker docker.CLI
}

// Build makes the image. One that is interrupted leaves neither a container nor
// an image of that name.
func (b Builder) Build(ctx context.Context, in Inputs) error {
	kind, err := readKind(in.KindModule)
	if err != nil {
		return err
	}
	kubeadm, err := in.program("kubeadm")
	if err != nil {
		return err
	}
	list, err := output(ctx, kubeadm, "config", "images", "list", "--kubernetes-version", in.KubernetesVersion)
	if err != nil {
		return fmt.Errorf("ask kubeadm for its images: %w", err)
	}
	entries, sandbox, err := nodeEntries(ctx, in, kind)
	if err != nil {
		return err
	}
	images, err := componentImages(in, kind, strings.Fields(string(list)), sandbox)
	if err != nil {
		return err
	}

	base, container := in.Image+"-base", "trainyard-node-"+strings.ToLower(rand.Text()[:12])
	defer func() {
		// Also after an interrupt, and of what the engine made behind its back.
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_, _ = b.Docker.Run(clean, "rm", "--force", "--volumes", container)
		_, _ = b.Docker.Run(clean, "image", "rm", "--no-prune", base)
	}()
	if err := b.importRootfs(ctx, in.NodeRootfs, entries, base); err != nil {
		return fmt.Errorf("import the node's file system: %w", err)
	}
	_, err = b.Docker.Run(ctx, "run", "--detach", "--name", container, "--security-opt=seccomp=unconfined",
		// systemd's signal to shut down, which the image inherits.
		"--stop-signal=SIGRTMIN+3", "--label=dev.trainyard.demo", "--entrypoint=sleep", base, "infinity")
	if err != nil {
		return err
	}
	if err := b.importImages(ctx, container, func(w io.Writer) error { return tarball.MultiWrite(images, w) }); err != nil {
		return fmt.Errorf("import the images of Kubernetes into the node image: %w", err)
	}
	_, err = b.Docker.Run(ctx, "commit",
		"--change", `ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]`,
		"--change", "ENV container=docker",
		"--change", "LABEL dev.trainyard.demo=node",
		container, in.Image)
	return err
}

// importRootfs streams the node's file system to the engine as an image.
func (b Builder) importRootfs(ctx context.Context, rootfs string, entries []ociimage.Entry, image string) error {
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(writeRootfs(writer, rootfs, entries)) }()
	defer reader.Close()
	_, err := b.Docker.Pipe(ctx, reader, "import", "-", image)
	return err
}

// importImages runs containerd in the container for as long as it takes to hand
// it the archive of images that write writes.
func (b Builder) importImages(ctx context.Context, container string, write func(io.Writer) error) error {
	if _, err := b.Docker.Run(ctx, "exec", "--detach", container, "containerd"); err != nil {
		return err
	}
	// ctr info fails until containerd answers.
	for attempt := 0; ; attempt++ {
		_, err := b.Docker.Run(ctx, "exec", container, "ctr", "--connect-timeout=1s", "info")
		if err == nil {
			break
		}
		if attempt == 60 {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(500 * time.Millisecond):
		}
	}
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(write(writer)) }()
	defer reader.Close()
	_, err := b.Docker.Pipe(ctx, reader, "exec", "--interactive", container,
		"ctr", "--namespace=k8s.io", "images", "import", "--label=io.cri-containerd.pinned=pinned",
		"--all-platforms", "--no-unpack", "--digests", "-")
	if err != nil {
		return err
	}
	_, err = b.Docker.Run(ctx, "exec", container, "pkill", "containerd")
	return err
}

var sandboxImage = regexp.MustCompile(`(?m)^\s*sandbox_image\s*=\s*"([^"]+)"`)

// nodeEntries are the files that a node has beside Debian's.
func nodeEntries(ctx context.Context, in Inputs, kind kindSource) (entries []ociimage.Entry, sandbox string, err error) {
	entries, err = kind.nodeFiles()
	if err != nil {
		return nil, "", err
	}
	for _, entry := range entries {
		if entry.Path == "etc/containerd/config.toml" {
			if match := sandboxImage.FindSubmatch(entry.Data); match != nil {
				sandbox = string(match[1])
			}
		}
	}
	if sandbox == "" {
		return nil, "", fmt.Errorf("%s: no sandbox image in kind's containerd configuration", kind.dir)
	}
	for at, names := range map[string][]string{
		"usr/bin/":       {"kubelet", "kubeadm", "kubectl"}, // where kind's kubelet.service expects them
		"usr/local/bin/": {"containerd", "ctr", "containerd-shim-runc-v2"},
	} {
		for _, name := range names {
			path, err := in.program(name)
			if err != nil {
				return nil, "", err
			}
			entries = append(entries, ociimage.Entry{Path: at + name, From: path, Mode: 0o755})
		}
	}
	spec, err := runtimeSpec(ctx, in)
	if err != nil {
		return nil, "", err
	}
	entries = append(entries, settings...)
	return append(entries,
		ociimage.Entry{Path: "etc/containerd/cri-base.json", Data: spec},
		ociimage.Entry{Path: "etc/kubernetes/manifests/"},
		ociimage.Entry{Path: "opt/cni/bin", Link: "/usr/lib/cni"},
		ociimage.Entry{Path: "kind/version", Data: []byte(in.KubernetesVersion)},
		ociimage.Entry{Path: "kind/manifests/default-storage.yaml", Data: []byte(kind.storageManifest)},
	), sandbox, nil
}

// runtimeSpec is containerd's default specification of a container with the
// changes that kind's Dockerfile makes to it.
func runtimeSpec(ctx context.Context, in Inputs) ([]byte, error) {
	ctr, err := in.program("ctr")
	if err != nil {
		return nil, err
	}
	out, err := output(ctx, ctr, "oci", "spec")
	if err != nil {
		return nil, fmt.Errorf("ask ctr for its default container: %w", err)
	}
	var spec map[string]any
	if err := json.Unmarshal(out, &spec); err != nil {
		return nil, fmt.Errorf("read ctr's default container: %w", err)
	}
	process, ok := spec["process"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("ctr's default container has no process")
	}
	delete(process, "rlimits")
	hooks, _ := spec["hooks"].(map[string]any)
	if hooks == nil {
		hooks = map[string]any{}
	}
	create, _ := hooks["createContainer"].([]any)
	hooks["createContainer"] = append(create, map[string]any{"path": "/kind/bin/mount-product-files.sh"})
	spec["hooks"] = hooks
	return json.Marshal(spec)
}

// output runs one of the programs and returns what it prints; an error has what it
// complains of.
func output(ctx context.Context, command string, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, command, args...).Output()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &exit):
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return nil, err
}
