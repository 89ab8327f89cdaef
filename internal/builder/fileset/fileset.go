package fileset

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"time"
)

// Entry is a file, a directory or a symbolic link.
type Entry struct {
	Mode     fs.FileMode // type and permissions, fs.ModeSticky too
	UID, GID int
	Data     []byte // of a file that is held in memory
	Source   string // of a file: where its content is, when it is not in Data
	Link     string // of a symbolic link: where it points
}

// File returns a regular file that everybody may read.
func File(data []byte) Entry { return Entry{Mode: 0o644, Data: data} }

// Dir returns a directory.
func Dir(perm fs.FileMode) Entry { return Entry{Mode: fs.ModeDir | perm} }

// Link returns a symbolic link.
func Link(to string) Entry { return Entry{Mode: fs.ModeSymlink | 0o777, Link: to} }

// Owned returns the entry with another owner.
func (e Entry) Owned(uid, gid int) Entry {
	e.UID, e.GID = uid, gid
	return e
}

// Set is a set of entries by their paths: relative to the root, without a dot.
type Set map[string]Entry

// Merge adds the entries of other, which win.
func (s Set) Merge(other Set) { maps.Copy(s, other) }

// fixedTime is what buildpacks give to files: 1980 is the least that zip can hold.
func fixedTime() time.Time { return time.Date(1980, time.January, 1, 0, 0, 1, 0, time.UTC) }

// WriteTar writes the set as a tar stream. Directories above an entry that are not
// in the set are added, for root with mode 0755; not so those of which one is a
// link in the set, which is an error.
func (s Set) WriteTar(w io.Writer) error {
	all := Set{}
	for p, e := range s {
		if !fs.ValidPath(p) || p == "." {
			return fmt.Errorf("%q is not a path of a file in a layer", p)
		}
		all[p] = e
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			parent, ok := s[d]
			if !ok {
				all[d] = Dir(0o755)
			} else if !parent.Mode.IsDir() {
				return fmt.Errorf("%q is below %q, which is no directory", p, d)
			}
		}
	}
	t := tar.NewWriter(w)
	for _, p := range slices.Sorted(maps.Keys(all)) {
		if err := write(t, p, all[p]); err != nil {
			return fmt.Errorf("layer entry %s: %w", p, err)
		}
	}
	return t.Close()
}

func write(t *tar.Writer, name string, e Entry) error {
	h := &tar.Header{
		Name: name, Mode: int64(e.Mode.Perm()), Uid: e.UID, Gid: e.GID,
		ModTime: fixedTime(), Typeflag: tar.TypeReg, Format: tar.FormatPAX,
	}
	if e.Mode&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	switch e.Mode.Type() {
	case fs.ModeDir:
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		return t.WriteHeader(h)
	case fs.ModeSymlink:
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.Link
		return t.WriteHeader(h)
	case 0:
	default:
		return fmt.Errorf("mode %s has no place in a layer", e.Mode)
	}
	content, size, err := e.open()
	if err != nil {
		return err
	}
	defer content.Close()
	h.Size = size
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.Copy(t, content)
	if err == nil && n != size {
		err = fmt.Errorf("%s has changed while it was read", e.Source)
	}
	return err
}

func (e Entry) open() (io.ReadCloser, int64, error) {
	if e.Source == "" {
		return io.NopCloser(bytes.NewReader(e.Data)), int64(len(e.Data)), nil
	}
	f, err := os.Open(e.Source)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// ReadTar reads the entries that keep accepts, with their contents, which must be
// small. Hard links and devices are not supported.
func ReadTar(r io.Reader, keep func(name string) bool) (Set, error) {
	s := Set{}
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		// Some write ./a, some /a; what leads out of the root stays there.
		name := path.Clean("/" + h.Name)[1:]
		if !fs.ValidPath(name) || !keep(name) {
			continue
		}
		e := Entry{Mode: fs.FileMode(h.Mode).Perm(), UID: h.Uid, GID: h.Gid}
		switch h.Typeflag {
		case tar.TypeReg:
			if h.Size > maxFile {
				return nil, fmt.Errorf("%s has %d bytes, more than %d", name, h.Size, maxFile)
			}
			if e.Data, err = io.ReadAll(t); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		case tar.TypeDir:
			e.Mode |= fs.ModeDir
		case tar.TypeSymlink:
			e.Mode, e.Link = fs.ModeSymlink|0o777, h.Linkname
		default:
			return nil, fmt.Errorf("%s is of type %q", name, h.Typeflag)
		}
		s[name] = e
	}
}

const maxFile = 64 << 20
