package dataset

import (
	"encoding/binary"
	"fmt"
	"os"
	"sort"
)

// indexEntry is the bytes of an entry: two uint64.
const indexEntry = 16

// Index tells where the documents of a split begin. It is held in memory: 16
// bytes a document.
type Index struct {
	tokens, bytes []int64 // before each document, and in all
}

// ReadIndex reads a .idx file. Positions that go backwards, or that do not end at
// the number of tokens of the .bin file beside it, are an error.
func ReadIndex(path string, tokens int64) (Index, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Index{}, fmt.Errorf("index: %w", err)
	}
	x, err := parseIndex(raw, tokens)
	if err != nil {
		return Index{}, fmt.Errorf("%s: %w", path, err)
	}
	return x, nil
}

func parseIndex(raw []byte, tokens int64) (Index, error) {
	if len(raw) == 0 || len(raw)%indexEntry != 0 {
		return Index{}, fmt.Errorf("%d bytes are no index: want a multiple of %d; prepare the data again", len(raw), indexEntry)
	}
	n := len(raw) / indexEntry
	x := Index{tokens: make([]int64, n), bytes: make([]int64, n)}
	for i := range n {
		x.tokens[i] = int64(binary.LittleEndian.Uint64(raw[i*indexEntry:]))
		x.bytes[i] = int64(binary.LittleEndian.Uint64(raw[i*indexEntry+8:]))
		switch {
		case i == 0 && (x.tokens[0] != 0 || x.bytes[0] != 0):
			return Index{}, fmt.Errorf("the first document begins at token %d and byte %d, want 0", x.tokens[0], x.bytes[0])
		case i > 0 && (x.tokens[i] <= x.tokens[i-1] || x.bytes[i] < x.bytes[i-1]):
			return Index{}, fmt.Errorf("document %d ends at token %d, before it begins", i, x.tokens[i])
		}
	}
	if x.tokens[n-1] != tokens {
		return Index{}, fmt.Errorf("the last document ends at token %d of %d: the index is of another file", x.tokens[n-1], tokens)
	}
	return x, nil
}

// Len returns the number of documents.
func (x Index) Len() int { return max(0, len(x.tokens)-1) }

// Tokens returns the first token of document i and the first after it.
func (x Index) Tokens(i int) (from, to int64) { return x.tokens[i], x.tokens[i+1] }

// Bytes returns the number of bytes of the text of document i.
func (x Index) Bytes(i int) int64 { return x.bytes[i+1] - x.bytes[i] }

// TotalBytes returns the number of bytes of the text of all documents.
func (x Index) TotalBytes() int64 {
	if len(x.bytes) == 0 {
		return 0
	}
	return x.bytes[len(x.bytes)-1]
}

// Document returns the document to which the token at pos belongs.
func (x Index) Document(pos int64) int {
	return sort.Search(x.Len(), func(i int) bool { return x.tokens[i+1] > pos })
}
