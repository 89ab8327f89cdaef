// Package ociimage assembles container images from files and file systems,
// without a container engine: the same input gives the same digest.
package ociimage

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Entry is one file, folder or symbolic link of an image.
type Entry struct {
	// Path in the image, without a leading slash; one that ends in a slash is a
	// folder. The folders above it are made.
	Path string
	// From is the file on this machine whose content it gets; otherwise Data is.
	From string
	Data []byte
	// Link makes it a symbolic link to this target.
	Link string
	// Mode of a file or folder: 0644 and 0755 when zero.
	Mode int64
	// UID and GID own it.
	UID, GID int
}

// Config says what an image starts.
type Config struct {
	Entrypoint []string
	Env        []string
	User       string
	WorkingDir string
	Labels     map[string]string
}

// epoch is the time of everything in an image.
var epoch = time.Unix(0, 0).UTC()

// New returns an image for a platform.
func New(platform v1.Platform, config Config, layers ...v1.Layer) (v1.Image, error) {
	image, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Variant = platform.OS, platform.Architecture, platform.Variant
	file.Created = v1.Time{Time: epoch}
	file.Config.Entrypoint = config.Entrypoint
	file.Config.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, config.Env...)
	file.Config.User = config.User
	file.Config.WorkingDir = config.WorkingDir
	file.Config.Labels = config.Labels
	return mutate.ConfigFile(image, file)
}

// Tar returns a layer of a tar file.
func Tar(file string) (v1.Layer, error) {
	return tarball.LayerFromFile(file, tarball.WithCompressionLevel(1))
}

// Layer returns a layer of entries, sorted by path.
func Layer(entries ...Entry) (v1.Layer, error) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	if err := Write(writer, map[string]bool{}, entries...); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	data := buffer.Bytes()
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}, tarball.WithCompressionLevel(1))
}

// Write writes entries, sorted by path, and the folders above them that are not
// in folders yet. A path that leads out of the image, or that two entries have, is
// an error.
func Write(writer *tar.Writer, folders map[string]bool, entries ...Entry) error {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	names := map[string]bool{}
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Path, "/")
		if name == "." || !fs.ValidPath(name) {
			return fmt.Errorf("path %q of an image: want one without a leading slash, and without . or .. in it", entry.Path)
		}
		if names[name] {
			return fmt.Errorf("%s: two entries have this path", name)
		}
		names[name] = true
		if err := writeParents(writer, folders, entry.Path); err != nil {
			return err
		}
		if err := write(writer, folders, entry); err != nil {
			return fmt.Errorf("%s: %w", entry.Path, err)
		}
	}
	return nil
}

func writeParents(writer *tar.Writer, folders map[string]bool, name string) error {
	dir := path.Dir(strings.TrimSuffix(name, "/"))
	if dir == "." || folders[dir] {
		return nil
	}
	if err := writeParents(writer, folders, dir); err != nil {
		return err
	}
	folders[dir] = true
	return writer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: epoch})
}

func write(writer *tar.Writer, folders map[string]bool, entry Entry) error {
	header := &tar.Header{Name: entry.Path, Mode: entry.Mode, Uid: entry.UID, Gid: entry.GID, ModTime: epoch}
	switch {
	case strings.HasSuffix(entry.Path, "/"):
		folders[strings.TrimSuffix(entry.Path, "/")] = true
		header.Typeflag = tar.TypeDir
		header.Mode = orElse(entry.Mode, 0o755)
		return writer.WriteHeader(header)
	case entry.Link != "":
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, entry.Link, 0o777
		return writer.WriteHeader(header)
	}
	header.Typeflag, header.Mode = tar.TypeReg, orElse(entry.Mode, 0o644)
	var content io.Reader = bytes.NewReader(entry.Data)
	header.Size = int64(len(entry.Data))
	if entry.From != "" {
		file, err := os.Open(entry.From)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		content, header.Size = file, info.Size()
	}
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(writer, content)
	return err
}

func orElse(mode, other int64) int64 {
	if mode == 0 {
		return other
	}
	return mode
}
