package toolimage

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// file is one entry of a layer: a directory when data is nil.
type file struct {
	name string // relative to the root
	mode int64
	data []byte
}

func dir(name string) file { return file{name: name, mode: 0o755} }

// baseFiles are the files beside the program. The home directory is for any
// user: OpenShift runs the image under a number that no passwd knows.
func baseFiles(certificates []byte) []file {
	return []file{
		dir("etc"),
		{name: "etc/group", mode: 0o644, data: []byte("root:x:0:\ncnb:x:1000:\nnobody:x:65534:\n")},
		{name: "etc/nsswitch.conf", mode: 0o644, data: []byte("hosts: files dns\n")},
		{name: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\nyard:x:65532:1000:yard:/tmp:/sbin/nologin\n")},
		dir("etc/ssl"),
		dir("etc/ssl/certs"),
		{name: certificatesPath[1:], mode: 0o644, data: certificates},
		{name: "tmp", mode: 0o1777},
	}
}

// layer makes a layer in which nothing but names, modes and contents tells one
// machine from another.
func layer(files []file, modified time.Time) (v1.Layer, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, ModTime: modified, Typeflag: tar.TypeReg, Size: int64(len(f.data)), Format: tar.FormatPAX}
		if f.data == nil {
			h.Typeflag, h.Name = tar.TypeDir, f.name+"/"
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("tool image: layer entry %s: %w", f.name, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, fmt.Errorf("tool image: layer entry %s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("tool image: %w", err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buf.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("tool image: %w", err)
	}
	return l, nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
