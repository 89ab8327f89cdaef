package evaluate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/trainer/internal/rng"
)

// Tokens is a split's token stream.
type Tokens interface {
	Len() int64
	// Read fills dst with the tokens from position at on.
	Read(dst []int32, at int64) error
}

// Slice is a token stream in memory.
type Slice []int32

// Len returns the number of tokens.
func (s Slice) Len() int64 { return int64(len(s)) }

// Read fills dst from position at on.
func (s Slice) Read(dst []int32, at int64) error {
	if at < 0 || at+int64(len(dst)) > int64(len(s)) {
		return fmt.Errorf("tokens %d to %d of a stream of %d", at, at+int64(len(dst)), len(s))
	}
	copy(dst, s[at:])
	return nil
}

// Document is the range [Start, End) of a token stream. Tokens before Count are
// context only: the question of a question-answer pair.
type Document struct{ Start, Count, End int64 }

// Kinds of cluster, the unit over which standard errors are taken.
const (
	ByDocument = "document"
	ByWindow   = "window" // consecutive pieces of block size, where a split has one document
)

// scanChunk bounds the memory of a scan, in tokens.
const scanChunk = 1 << 16

// Index tells where the documents of a stream begin and end.
type Index interface {
	Len() int
	Tokens(i int) (from, to int64)
}

// Documents returns the documents of an index, counted whole.
func Documents(x Index) []Document {
	docs := make([]Document, x.Len())
	for i := range docs {
		from, to := x.Tokens(i)
		docs[i] = Document{from, from, to}
	}
	return docs
}

// CountAfter leaves only what follows the first separator of each document to be
// counted. A document without one is an error: it would count its question.
func CountAfter(s Tokens, docs []Document, isSeparator func(int32) bool) error {
	buf := make([]int32, scanChunk)
	for i := range docs {
		d := &docs[i]
		found := false
		for at := d.Start; at < d.End && !found; {
			chunk := buf[:min(int64(len(buf)), d.End-at)]
			if err := s.Read(chunk, at); err != nil {
				return err
			}
			k := slices.IndexFunc(chunk, isSeparator)
			if found = k >= 0; found {
				d.Count = at + int64(k) + 1
			}
			at += int64(len(chunk))
		}
		if !found || d.Count == d.End {
			return fmt.Errorf("%w: pair %d has no answer behind a separator: prepare it as question-answer data", ErrNothing, i+1)
		}
	}
	return nil
}

// Windows cuts a stream into consecutive clusters of size tokens, for splits
// whose documents are too few to take a spread over.
func Windows(n int64, size int) []Document {
	var docs []Document
	for at := int64(0); at < n; at += int64(size) {
		docs = append(docs, Document{at, at, min(at+int64(size), n)})
	}
	return docs
}

// ErrSample is wrapped by errors about a sample that cannot be drawn.
var ErrSample = errors.New("cannot sample")

// Sample draws n documents without replacement, each equally likely, and
// returns them in their order in the stream. The same seed draws the same.
func Sample(docs []Document, n int, seed uint64) ([]Document, error) {
	if n < 1 {
		return nil, fmt.Errorf("%w: %d documents asked for, want 1 or more", ErrSample, n)
	}
	if n >= len(docs) {
		return docs, nil
	}
	stream := rng.New(seed, rng.Eval)
	index := make([]int, len(docs))
	for i := range index {
		index[i] = i
	}
	for i := range n { // the first n steps of a Fisher-Yates shuffle
		j := i + stream.Intn(len(index)-i)
		index[i], index[j] = index[j], index[i]
	}
	index = index[:n]
	slices.Sort(index)
	out := make([]Document, n)
	for i, j := range index {
		out[i] = docs[j]
	}
	return out, nil
}
