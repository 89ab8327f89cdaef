package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// Put streams r into a temporary file and moves that into place.
func (s *fileStore) Put(ctx context.Context, key string, r io.ReadSeeker) (Info, error) {
	if err := ValidateKey(key); err != nil {
		return Info{}, err
	}
	info, err := s.put(ctx, key, r)
	if err != nil {
		return Info{}, s.fail("put", key, err)
	}
	return info, nil
}

func (s *fileStore) put(ctx context.Context, key string, r io.ReadSeeker) (Info, error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return Info{}, fmt.Errorf("rewind the source: %w", err)
	}
	tmp, info, err := s.writeTemp(ctx, key, r)
	if err != nil {
		return Info{}, err
	}
	// The lock is taken after the copy: a large upload holds up nobody.
	unlock, err := s.lock(ctx)
	if err != nil {
		s.root.Remove(tmp)
		return Info{}, err
	}
	defer unlock()
	current, err := s.stat(ctx, key)
	switch {
	case errors.Is(err, ErrNotFound):
		err = s.create(key, tmp, info, true)
	case err == nil || errors.Is(err, ErrIntegrity): // a put repairs what was damaged
		err = s.replace(key, tmp, info, current.SHA256)
	}
	return info, err
}

// PutIf compares and writes under the lock of the store.
func (s *fileStore) PutIf(ctx context.Context, key string, body []byte, prevETag string) (Info, error) {
	if err := ValidateKey(key); err != nil {
		return Info{}, err
	}
	info, err := s.putIf(ctx, key, body, prevETag)
	if err != nil {
		return Info{}, s.fail("conditional put", key, err)
	}
	return info, nil
}

func (s *fileStore) putIf(ctx context.Context, key string, body []byte, prevETag string) (Info, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return Info{}, err
	}
	defer unlock()
	current, err := s.stat(ctx, key)
	switch {
	case err != nil && !errors.Is(err, ErrNotFound):
		return Info{}, err
	case current.ETag != prevETag:
		return Info{}, lost(prevETag, current.ETag)
	}
	tmp, info, err := s.writeTemp(ctx, key, bytes.NewReader(body))
	if err != nil {
		return Info{}, err
	}
	if prevETag == "" {
		return info, s.create(key, tmp, info, false)
	}
	return info, s.replace(key, tmp, info, current.SHA256)
}

func lost(want, got string) error {
	if want == "" {
		return fmt.Errorf("%w: it exists already (ETag %s)", ErrLost, got)
	}
	if got == "" {
		return fmt.Errorf("%w: expected ETag %s, but it does not exist", ErrLost, want)
	}
	return fmt.Errorf("%w: expected ETag %s, found %s", ErrLost, want, got)
}

// create moves tmp to a key that has no object. The record follows the object:
// in between the object is there without one, which is allowed.
func (s *fileStore) create(key, tmp string, info Info, overwrite bool) error {
	defer s.root.Remove(tmp)
	if err := s.step("forget"); err != nil {
		return err
	}
	// A record of an object that somebody removed by hand would contradict.
	if err := s.root.Remove(recordPath(key)); err != nil && !errors.Is(err, fs.ErrNotExist) && !isNotDir(err) {
		return err
	}
	if err := s.mkdirAll(path.Dir(key)); err != nil {
		return err
	}
	if st, err := s.root.Lstat(key); err == nil && st.IsDir() {
		return errors.New("it is a folder of objects and cannot be an object as well")
	}
	if err := s.step("link"); err != nil {
		return err
	}
	// link(2) refuses an existing name even where flock does not hold.
	err := s.root.Link(tmp, key)
	switch {
	case errors.Is(err, fs.ErrExist) && !overwrite:
		return lost("", "unknown")
	case err != nil: // some file systems have no hard links; the lock is held
		err = s.root.Rename(tmp, key)
	}
	if err != nil {
		return err
	}
	if err := s.syncDir(path.Dir(key)); err != nil {
		return err
	}
	if err := s.step("record"); err != nil {
		return err
	}
	return s.writeRecord(key, record{SHA256: info.SHA256, Size: info.Size})
}

// replace moves tmp over an object with digest old. The record names both
// digests until the move is durable.
func (s *fileStore) replace(key, tmp string, info Info, old string) error {
	defer s.root.Remove(tmp)
	rec := record{SHA256: info.SHA256, Size: info.Size, Replaces: old}
	if err := s.step("announce"); err != nil {
		return err
	}
	if old != "" {
		if err := s.writeRecord(key, rec); err != nil {
			return err
		}
	}
	if err := s.step("rename"); err != nil {
		return err
	}
	if err := s.root.Rename(tmp, key); err != nil {
		return err
	}
	if err := s.syncDir(path.Dir(key)); err != nil {
		return err
	}
	if err := s.step("settle"); err != nil {
		return err
	}
	rec.Replaces = ""
	return s.writeRecord(key, rec)
}

func (s *fileStore) writeRecord(key string, rec record) error {
	rec.Write = rand.Text()
	raw, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	name := recordPath(key)
	if err := s.mkdirAll(path.Dir(name)); err != nil {
		return err
	}
	tmp, _, err := s.writeTemp(context.Background(), name, bytes.NewReader(append(raw, '\n')))
	if err != nil {
		return err
	}
	if err := s.root.Rename(tmp, name); err != nil {
		s.root.Remove(tmp)
		return err
	}
	return s.syncDir(path.Dir(name))
}

// writeTemp copies r to a new file on the same file system, durably, and
// checks its size afterwards.
func (s *fileStore) writeTemp(ctx context.Context, key string, r io.Reader) (string, Info, error) {
	if err := s.step("temp"); err != nil {
		return "", Info{}, err
	}
	if err := s.alive(); err != nil {
		return "", Info{}, err
	}
	name := path.Join(reserved, "tmp", rand.Text())
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return "", Info{}, err
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, h), &contextReader{ctx, r})
	_ = f.Chmod(fileMode) // undo the umask; where the volume refuses, its rules hold
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		var st fs.FileInfo
		if st, err = s.root.Stat(name); err == nil && st.Size() != n {
			err = fmt.Errorf("%w: wrote %d bytes, the file has %d", ErrIntegrity, n, st.Size())
		}
	}
	if err != nil {
		s.root.Remove(name)
		return "", Info{}, err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	return name, Info{Key: key, Size: n, SHA256: sum, ETag: sum}, nil
}

// step lets a test stop the write here.
func (s *fileStore) step(name string) error {
	if s.crash == nil {
		return nil
	}
	return s.crash(name)
}
