package export

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/buildpacks/lifecycle/archive"
	"github.com/buildpacks/lifecycle/layers"
)

// factory makes layers as the lifecycle's does for the builder's user.
type factory struct {
	*layers.Factory
	// from is the folder of the layers on disk, to the one that it is in the image.
	from, to string
	// root is to as the builder has it: its owner and mode are part of the image.
	root fs.FileInfo
	dir  string // for layers that were made over
	made map[string]layers.Layer
}

// DirLayer implements phase.LayerFactory. The exporter calls it twice for a layer,
// the second time with the tar of the first.
func (f *factory) DirLayer(id, dir, createdBy string) (layers.Layer, error) {
	if layer, ok := f.made[id]; ok {
		return layer, nil
	}
	layer, err := f.Factory.DirLayer(id, dir, createdBy)
	if err != nil {
		return layer, err
	}
	return f.over(layer)
}

// SliceLayers implements phase.LayerFactory.
func (f *factory) SliceLayers(dir string, slices []layers.Slice) ([]layers.Layer, error) {
	made, err := f.Factory.SliceLayers(dir, slices)
	for i := range made {
		if err != nil {
			break
		}
		made[i], err = f.over(made[i])
	}
	return made, err
}

// over writes a layer's tar again, with the headers that the builder's user gets.
func (f *factory) over(layer layers.Layer) (_ layers.Layer, err error) {
	wrap := func(err error) error { return fmt.Errorf("layer %s: %w", layer.ID, err) }
	in, err := os.Open(layer.TarPath)
	if err != nil {
		return layer, wrap(err)
	}
	defer func() { _ = in.Close() }()
	path := filepath.Join(f.dir, filepath.Base(layer.TarPath))
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return layer, wrap(err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	hash := sha256.New()
	w := tar.NewWriter(io.MultiWriter(out, hash))
	r := tar.NewReader(in)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return layer, wrap(err)
		}
		if header, err = f.header(header); err != nil {
			return layer, wrap(err)
		}
		if err := w.WriteHeader(header); err != nil {
			return layer, wrap(err)
		}
		if _, err := io.Copy(w, r); err != nil {
			return layer, wrap(err)
		}
	}
	if err := w.Close(); err != nil {
		return layer, wrap(err)
	}
	layer.TarPath, layer.Digest = path, "sha256:"+hex.EncodeToString(hash.Sum(nil))
	f.made[layer.ID] = layer
	return layer, nil
}

// header is one entry as it is when the builder's user made the file.
func (f *factory) header(h *tar.Header) (*tar.Header, error) {
	name, mine := f.place(h.Name)
	if mine && name == f.to {
		root, err := tar.FileInfoHeader(f.root, "")
		if err != nil {
			return nil, err
		}
		root.Name, root.ModTime, root.Uname, root.Gname = f.to, archive.NormalizedModTime, "", ""
		return root, nil
	}
	out := &tar.Header{
		Typeflag: h.Typeflag, Name: name, Linkname: h.Linkname, Size: h.Size, Mode: h.Mode, ModTime: h.ModTime,
		Uid: h.Uid, Gid: h.Gid, Devmajor: h.Devmajor, Devminor: h.Devminor,
	}
	if mine {
		// What is above a layer has the user that runs the phases; what is in it has
		// these already.
		out.Uid, out.Gid = f.UID, f.GID
	}
	if h.Typeflag == tar.TypeDir {
		// Handed down by a volume with an fsGroup.
		out.Mode &^= setGroupID
	}
	return out, nil
}

// setGroupID is a bit of a mode in a tar.
const setGroupID = 0o2000

// place returns where a file of the layers is in the image; mine says whether it is
// one of theirs.
func (f *factory) place(name string) (_ string, mine bool) {
	if name == f.from {
		return f.to, true
	}
	if rel, ok := strings.CutPrefix(name, f.from+"/"); ok {
		return f.to + "/" + rel, true
	}
	return name, false
}
