package builder

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	gooffline "github.com/trainyard/trainyard/buildpacks/go-offline"
	"github.com/trainyard/trainyard/internal/builder/base"
)

// recipe is part of the key: raise it when the same inputs give another builder.
const recipe = 1

// key tells builders apart: it is made of everything that goes into one. The run
// image stands for Debian's files, which the build image is made of as well.
func (o Options) key(run v1.Image, golang base.Go) (string, error) {
	digest, err := run.Digest()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "recipe %d\nrun %s\ngo %s %s\narch %s\n%s\n", recipe, digest, golang.Version, golang.Key, o.Arch, gooffline.Descriptor())
	for _, file := range []string{o.Lifecycle.Lifecycle, o.Lifecycle.Launcher, o.Buildpack} {
		sum, err := fileSum(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, sum)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

func fileSum(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
