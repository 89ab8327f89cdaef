//go:build e2e && e2e_slow

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/trainyard/trainyard/internal/demo/component"
	"github.com/trainyard/trainyard/internal/demo/fromsource"
	"github.com/trainyard/trainyard/internal/demo/gomodule"
	"github.com/trainyard/trainyard/internal/demo/imagelock"
	"github.com/trainyard/trainyard/internal/demo/nodeimage"
	"github.com/trainyard/trainyard/internal/demo/published"
	"github.com/trainyard/trainyard/internal/demo/rootfs"
	"github.com/trainyard/trainyard/internal/registryclient"
)

// mirror is a registry on this machine that has the images built from source
// under the paths of the published ones.
type mirror struct {
	e      env
	host   string
	client *registryclient.Client
	images published.Images
	// lock pins what a pinned source names by a digest that is not ours.
	lock imagelock.File
}

// newMirror starts the registry on the address of Docker's own bridge: nodes of
// any Docker network reach it there, as they do no container of another network.
func newMirror(t *testing.T, e env) mirror {
	t.Helper()
	bridge, err := net.InterfaceByName("docker0")
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := bridge.Addrs()
	if err != nil || len(addresses) == 0 {
		t.Fatalf("docker0 has no address: %v", err)
	}
	host := net.JoinHostPort(addresses[0].(*net.IPNet).IP.String(), freePort(t))
	folder := t.TempDir()
	config := filepath.Join(folder, "config.yml")
	text := fmt.Sprintf("version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\n", folder, host)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(filepath.Join(filepath.Dir(e.Programs["kind"]), "registry"), "serve", config) //nolint:noctx // ended below
	server.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	var said bytes.Buffer
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if t.Failed() && said.Len() > 0 {
			t.Logf("the mirror said:\n%s", said.String())
		}
	})
	m := mirror{e: e, host: host, lock: imagelock.File{}}
	m.client, err = registryclient.New(registryclient.Options{Insecure: []string{host, e.Registry}, Transport: &http.Transport{}})
	if err != nil {
		t.Fatal(err)
	}
	m.images, err = published.List(func(module string) (gomodule.Module, error) {
		return gomodule.Find(t.Context(), "go", m.components(), module)
	})
	if err != nil {
		t.Fatal(err)
	}
	e.until(t, time.Minute, "the mirror answers", func(ctx context.Context) (bool, string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/v2/", nil)
		if err != nil {
			return false, "", err
		}
		response, err := (&http.Client{Transport: &http.Transport{}}).Do(request)
		if err != nil {
			return false, err.Error(), nil
		}
		return response.StatusCode == http.StatusOK, response.Status, response.Body.Close()
	})
	return m
}

func (m mirror) components() string {
	return filepath.Join(m.e.Checkout, "scripts", "components", "cluster")
}

// publish pushes every image that a demo with IMAGES=registry runs.
func (m mirror) publish(t *testing.T) {
	t.Helper()
	maker := m.maker(t)
	made := func(image v1.Image, err error) v1.Image {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return image
	}
	for path, image := range m.images.Tekton {
		m.push(t, image, made(maker.Tekton(path)))
	}
	m.push(t, m.images.Registry, made(maker.Make(fromsource.Registry)))
	m.push(t, m.images.S3, made(maker.Make(fromsource.S3)))
	m.push(t, m.images.Shell, made(maker.Make(fromsource.Shell)))
	platform := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	for role, image := range map[string]imagelock.Image{"builder": m.images.Builder, "run": m.images.Run} {
		reference, err := m.client.Reference(m.e.Images[role])
		if err != nil {
			t.Fatal(err)
		}
		m.push(t, image, made(m.client.Image(t.Context(), reference, platform)))
	}
	m.push(t, m.images.Node, made(m.node(t)))
}

// push pushes an image under a public name. One that is published by digest is
// locked to ours: no tag leads to it.
func (m mirror) push(t *testing.T, public imagelock.Image, image v1.Image) {
	t.Helper()
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	at := imagelock.Mirror{Host: m.host}.Name(public.Name)
	if _, err := name.NewTag(at, name.StrictValidation); err != nil {
		at += "@" + digest.String() // without a tag
	}
	if public.Digest != "" {
		m.lock[public.Name] = imagelock.Entry{Digest: digest.String(), Source: "built from source for a test"}
	}
	reference, err := m.client.Reference(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.client.Push(t.Context(), reference, image); err != nil {
		t.Fatal(err)
	}
}

// maker makes the images from what the first demo built: nothing is built anew.
func (m mirror) maker(t *testing.T) fromsource.Maker {
	t.Helper()
	cache := filepath.Dir(filepath.Dir(filepath.Dir(m.e.Kubeconfig)))
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOVERSION").Output()
	if err != nil {
		t.Fatal(err)
	}
	builder := component.Builder{
		Root: filepath.Dir(m.components()), Cache: filepath.Join(cache, "components"), Go: "go", GoVersion: strings.TrimSpace(string(out)),
	}
	built, err := builder.Build(t.Context(), component.Modules()[0])
	if err != nil {
		t.Fatal(err)
	}
	tools, _, err := rootfs.Maker{Cache: cache, Mirror: os.Getenv("DEBIAN_MIRROR")}.Make(t.Context(), nodeimage.ToolsRootfs())
	if err != nil {
		t.Fatal(err)
	}
	certificates, err := fromsource.DefaultCertificates()
	if err != nil {
		t.Fatal(err)
	}
	return fromsource.Maker{
		Platform: v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, ToolsRootfs: tools, Certificates: certificates,
		Program: func(name string) (string, error) { return built.Path(name), nil },
	}
}

// node is the node image of the first demo.
func (m mirror) node(t *testing.T) (v1.Image, error) {
	t.Helper()
	image := docker(t, "inspect", "--format", "{{.Config.Image}}", m.e.Name+"-control-plane")[0]
	file := filepath.Join(t.TempDir(), "node.tar")
	out, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	save := exec.CommandContext(t.Context(), "docker", "save", image)
	save.Stdout = out
	if err := save.Run(); err != nil {
		return nil, fmt.Errorf("docker save %s: %w", image, err)
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	return tarball.Image(func() (io.ReadCloser, error) { return os.Open(file) }, nil)
}
