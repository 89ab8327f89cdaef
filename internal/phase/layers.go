package phase

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// The exporter writes the modes and owners of the folders above each layer into the
// image. On a volume they are Kubernetes' (root, 0777, set-group-id for an fsGroup);
// in the builder's own file system they are those that pack sees. So export works on
// a copy there, and a build in a cluster gives the digest of pack build.

// copyLayers copies what the exporter reads from a volume to dir, an empty folder of
// the builder. Layers that are neither launched nor cached stay where they are.
func copyLayers(from, dir string, cached bool) error {
	there, err := os.ReadDir(dir)
	switch {
	case err != nil:
		return exitcode.Errorf(exitcode.BadInput, "the builder has no layers folder: %w: use a builder that pack or yard made", err)
	case len(there) > 0:
		return exitcode.Errorf(exitcode.Conflict, "layers folder %s is not empty, it has %s", dir, there[0].Name())
	}
	if err := copyFolder(from, dir, func(rel string) bool { return !exported(from, rel, cached) }); err != nil {
		return exitcode.Errorf(exitcode.IO, "copy of the layers to %s as user %d:%d: %w", dir, os.Geteuid(), os.Getegid(), err)
	}
	return nil
}

// exported tells whether the exporter needs a folder. rel is relative to the layers
// folder: buildpack/layer is a layer, described by buildpack/layer.toml.
func exported(layers, rel string, cached bool) bool {
	parts := strings.Split(rel, string(filepath.Separator))
	if len(parts) != 2 || parts[0] == "config" || parts[0] == "sbom" {
		return true
	}
	text, err := os.ReadFile(filepath.Join(layers, rel+".toml"))
	if err != nil {
		return true
	}
	var layer struct {
		Types struct {
			Launch bool `toml:"launch"`
			Cache  bool `toml:"cache"`
		} `toml:"types"`
	}
	if _, err := toml.Decode(string(text), &layer); err != nil {
		return true // the exporter shall judge it
	}
	return layer.Types.Launch || layer.Types.Cache && cached
}

// copyFolder copies the contents of a folder: files, folders and links with their
// modes, but no set-group-id of folders, which the volume had handed down.
func copyFolder(from, to string, skip func(rel string) bool) error {
	type dir struct {
		path string
		mode fs.FileMode
	}
	var dirs []dir
	err := filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == from {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch mode := info.Mode(); {
		case mode.IsDir():
			if skip(rel) {
				return fs.SkipDir
			}
			// Its own mode comes at the end: it may forbid to write.
			dirs = append(dirs, dir{target, mode.Perm() | mode&fs.ModeSticky})
			return os.Mkdir(target, 0o700)
		case mode&fs.ModeSymlink != 0:
			link, err := os.Readlink(p)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case mode.IsRegular():
			return copyFile(p, target, mode)
		}
		return nil // sockets and pipes are no part of an image
	})
	for i := len(dirs) - 1; i >= 0 && err == nil; i-- {
		err = os.Chmod(dirs[i].path, dirs[i].mode)
	}
	return err
}

func copyFile(from, to string, mode fs.FileMode) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Chmod(mode)
}
