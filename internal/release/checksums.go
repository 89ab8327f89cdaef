package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// list returns the files below a folder, in the order of their names.
func list(folder string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		sum, size, err := sumOf(path)
		if err != nil {
			return err
		}
		files = append(files, File{filepath.ToSlash(name), size, sum})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("release: %w", err)
	}
	return files, nil
}

func sumOf(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// checksums writes SHA256SUMS in the form that sha256sum -c reads.
func (m *maker) checksums() error {
	files, err := list(m.out)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&out, "%s  %s\n", f.SHA256, f.Name)
	}
	return m.write("SHA256SUMS", out.Bytes())
}
