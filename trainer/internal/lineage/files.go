package lineage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
)

// Files checks artifacts against a run directory and, for what came from
// outside, against the file that the record names. A record cannot make it read
// outside the run directory by way of a name, nor anything but regular files.
type Files struct {
	Run string
	// Model finds the content digest that a model has now; nil leaves models
	// unchecked.
	Model func(ctx context.Context, a Artifact) (string, error)

	known map[string]string // digests by path, so that each file is read once
}

// Digest implements Checker.
func (f *Files) Digest(ctx context.Context, a Artifact) (string, error) {
	switch a.Kind {
	case KindImage, KindSource:
		return "", ErrUnchecked
	case KindModel:
		if f.Model == nil {
			return "", ErrUnchecked
		}
		return f.Model(ctx, a)
	}
	if a.URI == "" {
		return f.sum(ctx, "run:"+a.Name, func() (*os.File, error) { return os.OpenInRoot(f.Run, filepath.FromSlash(a.Name)) })
	}
	u, err := url.Parse(a.URI)
	if err != nil || u.Scheme != "file" || u.Host != "" {
		return "", ErrUnchecked
	}
	path := filepath.FromSlash(u.Path)
	return f.sum(ctx, path, func() (*os.File, error) { return os.Open(path) })
}

func (f *Files) sum(ctx context.Context, key string, open func() (*os.File, error)) (string, error) {
	if sum, ok := f.known[key]; ok {
		return sum, nil
	}
	file, err := open()
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", file.Name())
	}
	sum, err := hashReader(ctx, file)
	if err != nil {
		return "", fmt.Errorf("hash %s: %w", file.Name(), err)
	}
	if f.known == nil {
		f.known = map[string]string{}
	}
	f.known[key] = sum
	return sum, nil
}

// hashReader returns the SHA-256 of what r holds, in hex, in constant memory.
func hashReader(ctx context.Context, r io.Reader) (string, error) {
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := r.Read(buf)
		h.Write(buf[:n])
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}
