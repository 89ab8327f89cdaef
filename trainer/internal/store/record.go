package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// record is what a file store remembers of an object, in
// .trainyard/sums/KEY.json. Without one the file was put there by other hands
// and is taken as it is.
type record struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`

	// Replaces is the digest of the object before, while the replacement is
	// under way: a process that died then left one of the two in place.
	Replaces string `json:"replaces,omitempty"`

	// Write differs for every write, so that a reader sees that it came
	// between two of them even if they wrote the same bytes.
	Write string `json:"write"`
}

// settled says whether the record alone tells the digest of the object.
func (r record) settled() bool { return r.SHA256 != "" && r.Replaces == "" }

func (r record) allows(sum string) bool {
	return r.SHA256 == "" || sum == r.SHA256 || sum == r.Replaces
}

func (r record) mismatch(got, want string) error {
	return fmt.Errorf("%w: found %s, recorded %s: the file was damaged or changed behind the store's back: put it again", ErrIntegrity, got, want)
}

func recordPath(key string) string { return path.Join(reserved, "sums", key+".json") }

func (s *fileStore) readRecord(key string) (record, error) {
	raw, err := s.root.ReadFile(recordPath(key))
	if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
		return record{}, nil
	}
	if err != nil {
		return record{}, err
	}
	var r record
	if err := json.Unmarshal(raw, &r); err != nil || r.SHA256 == "" {
		return record{}, fmt.Errorf("%w: record %s is damaged: put the object again", ErrIntegrity, recordPath(key))
	}
	return r, nil
}

// snapshot opens an object together with the record that belongs to it.
func (s *fileStore) snapshot(key string) (*os.File, record, error) {
	before, err := s.readRecord(key)
	if err != nil {
		return nil, record{}, err
	}
	for {
		f, err := s.openObject(key)
		if err != nil {
			return nil, record{}, err
		}
		after, err := s.readRecord(key)
		if err == nil && after == before {
			return f, after, nil
		}
		f.Close()
		if err != nil {
			return nil, record{}, err
		}
		before = after // a write came between; look again
	}
}

// openObject returns ErrNotFound only when the store itself is still there.
func (s *fileStore) openObject(key string) (*os.File, error) {
	f, err := s.root.Open(key)
	if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
		if err := s.alive(); err != nil {
			return nil, err
		}
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	if st.IsDir() {
		f.Close()
		return nil, ErrNotFound // a folder of objects is no object
	}
	if !st.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("not a regular file (%v)", st.Mode().Type())
	}
	return f, nil
}

// alive says whether the directory is still the one that was opened: an
// unmounted or replaced volume must not look like an empty store.
func (s *fileStore) alive() error {
	opened, err := s.root.Stat(".")
	if err != nil {
		return err
	}
	now, err := os.Stat(s.dir)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && !os.SameFile(opened, now)) {
		return fmt.Errorf("%w: the directory was removed, replaced or unmounted", ErrNoBucket)
	}
	return err
}

func sortInfos(infos []Info) {
	slices.SortFunc(infos, func(a, b Info) int { return strings.Compare(a.Key, b.Key) })
}
