package corpus

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// maxZstdWindow bounds what a .zst file may ask a decoder to keep: the largest
// window that zstd writes without --ultra --long.
const maxZstdWindow = 128 << 20

// File is one file of a corpus.
type File struct {
	Path string // where it is read
	Name string // the argument's base name and the path below it, with slashes: the same on every machine
}

// Files lists the files that the arguments name. A directory stands for the
// regular files below it, in the order of their names, without those that begin
// with a dot or lie in such a directory. Symbolic links below it are not followed.
func Files(paths []string) ([]File, error) {
	var files []File
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, fmt.Errorf("corpus: %w", err)
		}
		base := filepath.Base(p)
		if !info.IsDir() {
			if !info.Mode().IsRegular() {
				return nil, fmt.Errorf("corpus: %s is not a regular file", p)
			}
			files = append(files, File{Path: p, Name: base})
			continue
		}
		before := len(files)
		err = filepath.WalkDir(p, func(sub string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if sub != p && strings.HasPrefix(d.Name(), ".") {
				if d.IsDir() {
					return filepath.SkipDir
				}
				return nil
			}
			if d.Type().IsRegular() {
				rel, err := filepath.Rel(p, sub)
				if err != nil {
					return err
				}
				files = append(files, File{Path: sub, Name: path.Join(base, filepath.ToSlash(rel))})
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("corpus: %w", err)
		}
		if len(files) == before {
			return nil, fmt.Errorf("corpus: directory %s holds no files: give one with text in it", p)
		}
		// WalkDir sorts within a directory; sorting names makes a/b.txt and
		// a-c.txt independent of how the tree is cut into directories.
		sort.Slice(files[before:], func(i, j int) bool { return files[before+i].Name < files[before+j].Name })
	}
	return files, nil
}

// isJSONL reports whether a file holds records, compressed or not.
func (f File) isJSONL() bool {
	name := strings.ToLower(f.Name)
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
	return strings.HasSuffix(name, ".jsonl")
}

// Sum is the identity of a file as it is stored: compressed, if it is.
type Sum struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// stream reads a file, decompressing it, and knows its Sum when all is read.
type stream struct {
	io.Reader
	name   string
	file   *os.File
	hash   hash.Hash
	raw    io.Reader // the file's bytes as stored, through hash
	size   int64
	closer func()
}

func openFile(f File) (*stream, error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	s := &stream{name: f.Name, file: file, hash: sha256.New(), closer: func() {}}
	s.raw = io.TeeReader(bufio.NewReaderSize(countReader{file, &s.size}, 64<<10), s.hash)
	switch strings.ToLower(filepath.Ext(f.Name)) {
	case ".gz":
		z, err := gzip.NewReader(s.raw)
		if err != nil {
			file.Close()
			return nil, fmt.Errorf("corpus: %s is not gzip: %w", f.Name, err)
		}
		s.Reader = z
	case ".zst":
		z, err := zstd.NewReader(s.raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			file.Close()
			return nil, fmt.Errorf("corpus: %s is not zstd: %w", f.Name, err)
		}
		s.Reader, s.closer = z, z.Close
	default:
		s.Reader = s.raw
	}
	return s, nil
}

// sum reads what a decompressor left over, so that the digest is the file's.
func (s *stream) sum() (Sum, error) {
	if _, err := io.Copy(io.Discard, s.raw); err != nil {
		return Sum{}, err
	}
	return Sum{Name: s.name, Size: s.size, SHA256: hex.EncodeToString(s.hash.Sum(nil))}, nil
}

func (s *stream) Close() error {
	s.closer()
	return s.file.Close()
}

type countReader struct {
	r io.Reader
	n *int64
}

func (c countReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	*c.n += int64(n)
	return n, err
}
