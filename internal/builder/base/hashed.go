package base

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/trainyard/internal/builder/fileset"
)

const stickyBit = fs.ModeSticky

// hashed makes the layer of a small set in a file that is named after its content.
func hashed(set fileset.Set, cache string) (v1.Layer, error) {
	h := sha256.New()
	if err := set.WriteTar(h); err != nil {
		return nil, err
	}
	return set.Layer(filepath.Join(cache, "files-"+hex.EncodeToString(h.Sum(nil)[:6])+".tar.gz"))
}
