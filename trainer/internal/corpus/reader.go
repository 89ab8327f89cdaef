package corpus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// Defaults of ReaderOptions.
const (
	DefaultMaxDocBytes = 16 << 20
	DefaultJSONField   = "text"
)

// ReaderOptions say how files are cut into documents.
type ReaderOptions struct {
	Separator   Separator
	JSONField   string // of *.jsonl; "" is DefaultJSONField
	MaxDocBytes int    // longest document; 0 is DefaultMaxDocBytes
	MustEnd     bool   // the last document of a file must end with the separator too
	Limit       int64  // stop after the document that reaches this many bytes; 0 reads all
}

// ReadStats count what a Reader saw.
type ReadStats struct {
	Documents int64 // returned
	Bytes     int64 // of their text
	Cut       int64 // cuts made in documents longer than MaxDocBytes
	TooLong   int64 // lines of JSON that were skipped for their length
}

// Document is one document of a corpus.
type Document struct {
	Text   []byte // valid until the next call of Next
	File   string // name of the file
	Number int64  // counted from 1 over the corpus
}

// Reader reads the documents of a list of files, one after another. It holds one
// document at a time and is not safe for concurrent use.
type Reader struct {
	ctx   context.Context
	files []File
	opts  ReaderOptions

	current *stream
	next    func() ([]byte, error)
	done    func() (cut, tooLong int64)
	sums    []Sum
	stats   ReadStats
}

// NewReader returns a reader of files. Close it.
func NewReader(ctx context.Context, files []File, opts ReaderOptions) *Reader {
	if opts.JSONField == "" {
		opts.JSONField = DefaultJSONField
	}
	if opts.MaxDocBytes == 0 {
		opts.MaxDocBytes = DefaultMaxDocBytes
	}
	return &Reader{ctx: ctx, files: files, opts: opts}
}

// Next returns the next document, or io.EOF. An error names the file.
func (r *Reader) Next() (Document, error) {
	for {
		if err := r.ctx.Err(); err != nil {
			return Document{}, context.Cause(r.ctx)
		}
		if r.opts.Limit > 0 && r.stats.Bytes >= r.opts.Limit {
			return Document{}, io.EOF
		}
		if r.current == nil {
			if len(r.files) == 0 {
				return Document{}, io.EOF
			}
			if err := r.open(r.files[0]); err != nil {
				return Document{}, err
			}
			r.files = r.files[1:]
		}
		text, err := r.next()
		if err == nil {
			r.stats.Documents++
			r.stats.Bytes += int64(len(text))
			return Document{Text: text, File: r.current.name, Number: r.stats.Documents}, nil
		}
		if !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return Document{}, fmt.Errorf("corpus: %s: %w", r.current.name, err)
		}
		if err := r.finish(); err != nil {
			return Document{}, err
		}
	}
}

func (r *Reader) open(f File) error {
	s, err := openFile(f)
	if err != nil {
		return err
	}
	r.current = s
	if f.isJSONL() || r.opts.Separator.kind == kindJSONL {
		j := newJSONReader(s, r.opts.JSONField, r.opts.MaxDocBytes)
		r.next, r.done = j.Next, func() (int64, int64) { return j.cut, j.tooLong }
		return nil
	}
	sc := NewScanner(s, r.opts.Separator, r.opts.MaxDocBytes)
	r.next, r.done = sc.Next, func() (int64, int64) { return sc.Cut(), 0 }
	if r.opts.MustEnd {
		r.next = func() ([]byte, error) {
			doc, err := sc.Next()
			if err == nil && sc.unended {
				return nil, fmt.Errorf("the last document, %.60q, does not end with %s", doc, r.opts.Separator)
			}
			return doc, err
		}
	}
	return nil
}

func (r *Reader) finish() error {
	sum, err := r.current.sum()
	if err != nil {
		return fmt.Errorf("corpus: %s: %w", r.current.name, err)
	}
	r.sums = append(r.sums, sum)
	cut, tooLong := r.done()
	r.stats.Cut += cut
	r.stats.TooLong += tooLong
	return r.Close()
}

// Stats returns the counts so far; they are complete after io.EOF.
func (r *Reader) Stats() ReadStats { return r.stats }

// Sums returns the digests of the files read to their end.
func (r *Reader) Sums() []Sum { return r.sums }

// Close closes the file that is open, if any.
func (r *Reader) Close() error {
	if r.current == nil {
		return nil
	}
	err := r.current.Close()
	r.current = nil
	return err
}

// Digest names a whole corpus: the SHA-256 of the lines "sha256  name" of its
// files in order, as sha256sum prints them.
func Digest(sums []Sum) string {
	h := sha256.New()
	for _, s := range sums {
		fmt.Fprintf(h, "%s  %s\n", s.SHA256, s.Name)
	}
	return hex.EncodeToString(h.Sum(nil))
}
