package fromsource

import (
	"fmt"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/trainyard/internal/demo/nodeimage"
	"github.com/trainyard/trainyard/internal/demo/ociimage"
	"github.com/trainyard/trainyard/internal/toolimage"
)

// Names of the images that are not Tekton's.
const (
	Registry = "registry"
	S3       = "versitygw"
	Shell    = "shell"
)

// GitImportPath is the program of Tekton's image that has git in it: the demo's
// git server is made of the same image, published or not.
const GitImportPath = "github.com/tektoncd/pipeline/cmd/resolvers"

// Maker makes images.
type Maker struct {
	Platform v1.Platform
	// Program returns the path of a built program.
	Program func(name string) (string, error)
	// ToolsRootfs is the tar file of a Debian with git, tini and busybox.
	ToolsRootfs string
	// Certificates are the CA certificates that images get, in PEM.
	Certificates []byte
}

// nonroot is the user of Tekton's own images.
const nonroot = "65532:65532"

// registryConfig is where and how the registry keeps its data, as the published
// image has it.
const registryConfig = `version: 0.1
log:
  level: warn
  accesslog:
    disabled: true
storage:
  filesystem:
    rootdirectory: /var/lib/registry
  delete:
    enabled: true
http:
  addr: :5000
  headers:
    X-Content-Type-Options: [nosniff]
`

// Make returns the image of that name.
func (m Maker) Make(name string) (v1.Image, error) {
	switch name {
	case Registry:
		return m.static("registry", "usr/local/bin/registry", ociimage.Config{
			Entrypoint: []string{"/usr/local/bin/registry", "serve", "/etc/distribution/config.yml"},
		}, ociimage.Entry{Path: "etc/distribution/config.yml", Data: []byte(registryConfig)})
	case S3:
		return m.static("versitygw", "usr/local/bin/versitygw", ociimage.Config{
			Entrypoint: []string{"/usr/local/bin/versitygw"}, User: "1000:1000",
		})
	case Shell:
		layer, err := nodeimage.ShellLayer(m.ToolsRootfs)
		if err != nil {
			return nil, err
		}
		return ociimage.New(m.Platform, ociimage.Config{Entrypoint: []string{"/bin/sh"}}, layer)
	}
	return nil, fmt.Errorf("no image is called %s", name)
}

// Tekton returns the image of one of Tekton's main packages, laid out as ko does
// it, since Tekton's manifests name paths in it.
func (m Maker) Tekton(importPath string) (v1.Image, error) {
	base := path.Base(importPath)
	at := "ko-app/" + base
	config := ociimage.Config{
		Entrypoint: []string{"/" + at},
		Env:        []string{"KO_DATA_PATH=/var/run/ko"},
		User:       nonroot,
	}
	if base != "resolvers" {
		return m.static(ProgramName(importPath), at, config)
	}
	// The git resolver calls git; the manifest starts it under /sbin/tini.
	tools, err := ociimage.Tar(m.ToolsRootfs)
	if err != nil {
		return nil, err
	}
	binary, err := m.Program(ProgramName(importPath))
	if err != nil {
		return nil, err
	}
	layer, err := ociimage.Layer(
		ociimage.Entry{Path: at, From: binary, Mode: 0o755},
		ociimage.Entry{Path: "usr/sbin/tini", Link: "/usr/bin/tini"}, // Debian's /sbin is /usr/sbin
		ociimage.Entry{Path: "home/nonroot/", Mode: 0o700, UID: 65532, GID: 65532},
	)
	if err != nil {
		return nil, err
	}
	config.Env = append(config.Env, "HOME=/home/nonroot")
	return ociimage.New(m.Platform, config, tools, layer)
}

// ProgramName is the name of the program of one of Tekton's main packages among
// the components: their base names are not unique.
func ProgramName(importPath string) string {
	project := path.Base(strings.TrimSuffix(path.Dir(importPath), "/cmd"))
	return project + "-" + path.Base(importPath)
}

// static is an image with one program and what a static program wants: CA
// certificates, a user's entry, a folder for temporary files.
func (m Maker) static(program, at string, config ociimage.Config, more ...ociimage.Entry) (v1.Image, error) {
	binary, err := m.Program(program)
	if err != nil {
		return nil, err
	}
	entries := append([]ociimage.Entry{
		{Path: at, From: binary, Mode: 0o755},
		{Path: "etc/ssl/certs/ca-certificates.crt", Data: m.Certificates},
		{Path: "etc/passwd", Data: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{Path: "etc/group", Data: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{Path: "tmp/", Mode: 0o1777},
	}, more...)
	layer, err := ociimage.Layer(entries...)
	if err != nil {
		return nil, err
	}
	return ociimage.New(m.Platform, config, layer)
}

// DefaultCertificates are those of Debian's package ca-certificates.
func DefaultCertificates() ([]byte, error) {
	return toolimage.ReadCertificates(toolimage.DebianCertificates)
}
