package fileset

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Layer writes the set as a compressed layer to the file, unless it exists, and
// returns it. The file has to stay as long as the layer is used.
func (s Set) Layer(file string) (v1.Layer, error) {
	if _, err := os.Stat(file); err != nil {
		if err := s.WriteFile(file); err != nil {
			return nil, err
		}
	}
	return OpenLayer(file)
}

// OpenLayer returns the layer that Layer wrote to a file.
func OpenLayer(file string) (v1.Layer, error) {
	l, err := tarball.LayerFromFile(file, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("layer %s: %w", file, err)
	}
	return l, nil
}

// WriteFile writes the set as a .tar.gz. The file is there whole or not at all.
func (s Set) WriteFile(file string) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".layer-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err == nil {
		err = s.WriteTar(z)
	}
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = f.Chmod(0o644)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return os.Rename(f.Name(), file)
}
