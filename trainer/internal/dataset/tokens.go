package dataset

import (
	"fmt"
	"io"
	"os"
)

// Source is a sequence of tokens that is read in parts.
type Source interface {
	// Len returns the number of tokens.
	Len() int64
	// Read fills dst with the tokens from position pos on; all of them must
	// exist. Any number of goroutines may call it at once.
	Read(dst []int32, pos int64) error
}

// File is a Source on a .bin file. It reads what is asked for and keeps nothing:
// the operating system's page cache does that better.
type File struct {
	r     io.ReaderAt
	close func() error
	path  string
	dtype DType
	n     int64
}

var _ Source = (*File)(nil)

// Open opens a file of tokens. A size that is no multiple of the type's is an
// error: the file was cut, or holds another type.
func Open(path string, t DType) (*File, error) {
	if err := t.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("tokens: %w", err)
	}
	if info.Size()%int64(t.Size()) != 0 {
		f.Close()
		return nil, fmt.Errorf("%s: %d bytes are no whole number of %s tokens: prepare the data again", path, info.Size(), t)
	}
	return &File{r: f, close: f.Close, path: path, dtype: t, n: info.Size() / int64(t.Size())}, nil
}

// Len returns the number of tokens.
func (f *File) Len() int64 { return f.n }

// readTokens is how many tokens a Read takes at a time.
const readTokens = 4096

// Read fills dst with the tokens from pos on.
func (f *File) Read(dst []int32, pos int64) error {
	if pos < 0 || pos+int64(len(dst)) > f.n {
		return fmt.Errorf("%s: tokens %d to %d asked for, there are %d", f.path, pos, pos+int64(len(dst)), f.n)
	}
	var buf [4 * readTokens]byte
	size := f.dtype.Size()
	for len(dst) > 0 {
		n := min(len(dst), readTokens)
		part := buf[:n*size]
		if _, err := f.r.ReadAt(part, pos*int64(size)); err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
		f.dtype.decode(dst[:n], part)
		dst, pos = dst[n:], pos+int64(n)
	}
	return nil
}

// Close closes the file.
func (f *File) Close() error { return f.close() }

// Slice is a Source in memory.
type Slice []int32

var _ Source = Slice(nil)

// Len returns the number of tokens.
func (s Slice) Len() int64 { return int64(len(s)) }

// Read fills dst with the tokens from pos on.
func (s Slice) Read(dst []int32, pos int64) error {
	if pos < 0 || pos+int64(len(dst)) > s.Len() {
		return fmt.Errorf("tokens %d to %d asked for, there are %d", pos, pos+int64(len(dst)), len(s))
	}
	copy(dst, s[pos:])
	return nil
}
