package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
)

// Upload puts the file at path under key.
func Upload(ctx context.Context, s Store, path, key string) (Info, error) {
	f, err := os.Open(path)
	if err != nil {
		return Info{}, fmt.Errorf("upload to %s: %w", key, err)
	}
	defer f.Close()
	info, err := s.Put(ctx, key, f)
	if err != nil {
		return Info{}, fmt.Errorf("upload %s: %w", path, err)
	}
	return info, nil
}

// Download gets the object under key into the file at path. The file appears
// whole and verified or not at all; an older one stays until then.
func Download(ctx context.Context, s Store, key, path string) (Info, error) {
	var info Info
	err := atomicfile.WriteFile(path, func(w io.Writer) error {
		var err error
		info, err = s.Get(ctx, key, w)
		return err
	})
	if err != nil {
		return Info{}, fmt.Errorf("download %s: %w", key, err)
	}
	return info, nil
}

// errTooLarge ends a ReadAll early; it never leaves this package unwrapped.
var errTooLarge = errors.New("object is larger than allowed")

// ReadAll gets a small object of at most limit bytes into memory.
func ReadAll(ctx context.Context, s Store, key string, limit int64) ([]byte, Info, error) {
	w := &limitedBuffer{left: limit}
	info, err := s.Get(ctx, key, w)
	if errors.Is(err, errTooLarge) {
		return nil, Info{}, fmt.Errorf("object %s in %s: larger than the %d bytes that are allowed here: %w", key, s.URL(), limit, errTooLarge)
	}
	if err != nil {
		return nil, Info{}, err
	}
	return w.buf.Bytes(), info, nil
}

// limitedBuffer refuses what does not fit, so that a wrong object under a
// small key cannot fill the memory.
type limitedBuffer struct {
	buf  bytes.Buffer
	left int64
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		return 0, errTooLarge
	}
	b.left -= int64(len(p))
	return b.buf.Write(p)
}
