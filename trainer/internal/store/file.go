package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"
)

// fileStore keeps every object as a plain file of the same name, so that
// people and other programs can read it, and its digest in a record beside
// the tree (see record.go).
//
// It assumes one file system on which rename(2) is atomic and flock(2) holds
// between all writers: local disks, CephFS, NFSv4 and NFSv3 with its lock
// manager do; an NFS mount with local_lock or nolock does not. There a first
// write still has one winner, through link(2), but a pointer move has not.
type fileStore struct {
	dir  string
	root *os.Root // opens nothing outside of dir, whatever symlinks say
	turn chan struct{}

	// crash, when a test sets it, is asked before each step of a write; an
	// error makes the write stop there as if the process had died.
	crash func(step string) error
}

var _ Store = (*fileStore)(nil)

func openFile(dir string, create bool) (Store, error) {
	if create {
		if err := makeRoot(dir); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("store directory %s: %w: is the volume mounted? create the directory if this is a new store", dir, ErrNoBucket)
	case err != nil:
		return nil, fmt.Errorf("store directory %s: %w", dir, classifyFile(err))
	}
	s := &fileStore{dir: dir, root: root, turn: make(chan struct{}, 1)}
	if err := s.mkdirAll(path.Join(reserved, "tmp")); err != nil && !errors.Is(err, fs.ErrPermission) && !readOnly(err) {
		// A store that may only be read is still good for reading.
		return nil, s.fail("open", "", err)
	}
	s.sweep()
	return s, nil
}

// URL is file:// and the directory.
func (s *fileStore) URL() string { return (&url.URL{Scheme: "file", Path: s.dir}).String() }

// Stat returns the recorded digest of a large object, and computes that of a
// small or an unrecorded one.
func (s *fileStore) Stat(ctx context.Context, key string) (Info, error) {
	if err := ValidateKey(key); err != nil {
		return Info{}, err
	}
	info, err := s.stat(ctx, key)
	if err != nil {
		return Info{}, s.fail("stat", key, err)
	}
	return info, nil
}

// trustSize is the size in bytes up to which Stat reads the object rather
// than believe its record.
const trustSize = 1 << 20

func (s *fileStore) stat(ctx context.Context, key string) (Info, error) {
	f, rec, err := s.snapshot(key)
	if err != nil {
		return Info{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return Info{}, err
	}
	if rec.settled() && st.Size() > trustSize {
		if st.Size() != rec.Size {
			return Info{}, rec.mismatch(fmt.Sprintf("%d bytes", st.Size()), fmt.Sprintf("%d bytes", rec.Size))
		}
		return Info{Key: key, Size: rec.Size, SHA256: rec.SHA256, ETag: rec.SHA256}, nil
	}
	return s.hash(ctx, key, f, rec, io.Discard)
}

// Get reads the object, compares it with its record, and writes it to w.
func (s *fileStore) Get(ctx context.Context, key string, w io.Writer) (Info, error) {
	if err := ValidateKey(key); err != nil {
		return Info{}, err
	}
	f, rec, err := s.snapshot(key)
	if err != nil {
		return Info{}, s.fail("get", key, err)
	}
	defer f.Close()
	info, err := s.hash(ctx, key, f, rec, w)
	if err != nil {
		return Info{}, s.fail("get", key, err)
	}
	return info, nil
}

// hash copies f to w and checks its digest.
func (s *fileStore) hash(ctx context.Context, key string, f *os.File, rec record, w io.Writer) (Info, error) {
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(h, w), &contextReader{ctx, f})
	if err != nil {
		return Info{}, err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if !rec.allows(sum) {
		return Info{}, rec.mismatch(fmt.Sprintf("sha256 %s (%d bytes)", sum, n), fmt.Sprintf("%s (%d bytes)", rec.SHA256, rec.Size))
	}
	return Info{Key: key, Size: n, SHA256: sum, ETag: sum}, nil
}

// List walks the directory. Symlinks are not listed; Get and Stat follow those
// that stay inside the store.
func (s *fileStore) List(ctx context.Context, prefix string) ([]Info, error) {
	if err := validatePrefix(prefix); err != nil {
		return nil, err
	}
	if err := s.alive(); err != nil {
		return nil, s.fail("list", prefix, err)
	}
	start := "."
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		start = prefix[:i]
	}
	var out []Info
	// The walk is by folder; its order differs from that of the keys only
	// where a name continues with a byte below '/', so sort at the end.
	err := fs.WalkDir(s.root.FS(), start, func(p string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist) || isNotDir(err):
			return nil // never was there, or went away meanwhile
		case err != nil:
			return err
		case d.IsDir():
			if p == reserved || (p != "." && !strings.HasPrefix(p, prefix) && !strings.HasPrefix(prefix, p+"/") && p != start) {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular() || !strings.HasPrefix(p, prefix) || ValidateKey(p) != nil:
			return nil
		}
		st, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		out = append(out, Info{Key: p, Size: st.Size()})
		return nil
	})
	if err != nil {
		return nil, s.fail("list", prefix, err)
	}
	sortInfos(out)
	return out, nil
}

// contextReader makes a long copy end when its context does.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
