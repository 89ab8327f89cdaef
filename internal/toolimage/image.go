package toolimage

import (
	"fmt"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// Name is what the tasks call the image before rendering gives it a digest.
	Name = "ghcr.io/trainyard/yard"
	// User is the user and group of the image. The group is that of the Cloud
	// Native Buildpacks images, so that all steps can share files on any storage.
	User = "65532:1000"
	// Program is the path of the program in the image.
	Program = "/usr/local/bin/yard"
	// Trainer is the path of the trainer in the image, for the one task that has to
	// run when no image of the user's trainer was built: the report.
	Trainer = "/usr/local/bin/trainer"

	certificatesPath = "/etc/ssl/certs/ca-certificates.crt"
	// CertificatesLabel holds the SHA-256 of the certificates, since they are an
	// input of the digest that no commit tells.
	CertificatesLabel = "io.github.trainyard.certificates"
)

// Config says what goes into an image.
type Config struct {
	Program      string      // file: a static Linux program for Platform
	Trainer      string      // file: the same of the trainer; "" for an image without
	Platform     v1.Platform // for example linux/amd64
	Certificates []byte      // PEM, as ReadCertificates returns it
	Version      string      // label org.opencontainers.image.version, may be empty
	Revision     string      // label org.opencontainers.image.revision, may be empty
	Created      time.Time   // time of the image and of its files; zero means 1970
}

// New assembles an image. It reads the program now, so that the file may go
// away afterwards.
func New(c Config) (v1.Image, error) {
	files := []file{dir("usr"), dir("usr/local"), dir("usr/local/bin")}
	for _, p := range []struct{ from, to string }{{c.Trainer, Trainer}, {c.Program, Program}} {
		if p.from == "" && p.to == Trainer {
			continue
		}
		program, err := os.ReadFile(p.from)
		if err != nil {
			return nil, fmt.Errorf("tool image: read the program: %w", err)
		}
		if err := checkStatic(program, c.Platform); err != nil {
			return nil, fmt.Errorf("tool image: program %s: %w", p.from, err)
		}
		files = append(files, file{name: p.to[1:], mode: 0o755, data: program})
	}
	created := c.Created.UTC()
	if c.Created.IsZero() {
		created = time.Unix(0, 0).UTC()
	}

	// Two layers: the programs change with every version, the rest does not.
	base, err := layer(baseFiles(c.Certificates), time.Unix(0, 0).UTC())
	if err != nil {
		return nil, err
	}
	tool, err := layer(files, created)
	if err != nil {
		return nil, err
	}

	img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	img = mutate.ConfigMediaType(img, types.OCIConfigJSON)
	img, err = mutate.Append(img,
		mutate.Addendum{Layer: base, History: v1.History{Created: v1.Time{Time: time.Unix(0, 0).UTC()}, CreatedBy: "yard: users and certificates"}},
		mutate.Addendum{Layer: tool, History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "yard: program"}})
	if err != nil {
		return nil, fmt.Errorf("tool image: %w", err)
	}
	cf, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("tool image: %w", err)
	}
	cf = cf.DeepCopy()
	cf.OS, cf.Architecture, cf.Variant = c.Platform.OS, c.Platform.Architecture, c.Platform.Variant
	cf.Created = v1.Time{Time: created}
	cf.Config = v1.Config{
		User:       User,
		Entrypoint: []string{Program},
		Env:        []string{"PATH=/usr/local/bin", "SSL_CERT_FILE=" + certificatesPath},
		WorkingDir: "/",
		Labels:     labels(c),
	}
	img, err = mutate.ConfigFile(img, cf)
	if err != nil {
		return nil, fmt.Errorf("tool image: %w", err)
	}
	return img, nil
}

func labels(c Config) map[string]string {
	l := map[string]string{
		"org.opencontainers.image.title":       "yard",
		"org.opencontainers.image.description": "The platform tool of Trainyard",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.source":      "https://github.com/trainyard/trainyard",
		CertificatesLabel:                      digest(c.Certificates),
	}
	if c.Version != "" {
		l["org.opencontainers.image.version"] = c.Version
	}
	if c.Revision != "" {
		l["org.opencontainers.image.revision"] = c.Revision
	}
	return l
}
