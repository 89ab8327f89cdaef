package pin

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/BurntSushi/toml"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// maxReport bounds what is read: a report lists a few tags and one digest.
const maxReport = 1 << 20

// readReport returns the digest under which the exporter says that it pushed the
// image that build names.
func readReport(path, build string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", exitcode.Errorf(exitcode.BadInput, "report of the export: %w: has the phase export run?", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxReport+1))
	if err != nil {
		return "", exitcode.Errorf(exitcode.IO, "report of the export: %w", err)
	}
	digest, err := parseReport(text, build)
	if err != nil {
		return "", exitcode.Errorf(exitcode.BadInput, "report of the export %s: %w", path, err)
	}
	return digest, nil
}

func parseReport(text []byte, build string) (string, error) {
	if len(text) > maxReport {
		return "", fmt.Errorf("more than %d bytes are no report", maxReport)
	}
	var r struct {
		Image struct {
			Tags    []string `toml:"tags"`
			Digest  string   `toml:"digest"`
			ImageID string   `toml:"image-id"`
		} `toml:"image"`
	}
	if _, err := toml.Decode(string(text), &r); err != nil {
		return "", err
	}
	switch {
	case r.Image.Digest == "" && r.Image.ImageID != "":
		return "", errors.New("it has an image id and no digest: the image went to a daemon, not to a registry")
	case r.Image.Digest == "":
		return "", errors.New("it names no digest")
	}
	if h, err := v1.NewHash(r.Image.Digest); err != nil || h.Algorithm != "sha256" {
		return "", fmt.Errorf("digest %q is not sha256 and 64 digits", r.Image.Digest)
	}
	same := func(tag string) bool {
		t, err := name.ParseReference(tag)
		return err == nil && t.Name() == build
	}
	if !slices.ContainsFunc(r.Image.Tags, same) {
		return "", fmt.Errorf("it is of %q, planned was %s", r.Image.Tags, build)
	}
	return r.Image.Digest, nil
}
