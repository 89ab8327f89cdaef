package corpus

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"unicode"
	"unicode/utf8"
)

// Sum256 is the SHA-256 of a document with each run of white space read as one
// space and none at its ends: the identity by which exact duplicates are found
// and splits are drawn.
type Sum256 [sha256.Size]byte

// Hasher computes the identity of documents. Use one for each goroutine.
type Hasher struct{ buf []byte }

// Sum returns the identity of text.
func (h *Hasher) Sum(text []byte) Sum256 {
	h.buf = appendFolded(h.buf[:0], text)
	return sha256.Sum256(h.buf)
}

// appendFolded appends text with its white space folded.
func appendFolded(dst, text []byte) []byte {
	from := len(dst)
	for i := 0; i < len(text); {
		c := text[i]
		if c > ' ' && c < 0x7f {
			j := i + 1
			for j < len(text) && text[j] > ' ' && text[j] < 0x7f {
				j++
			}
			dst = append(dst, text[i:j]...)
			i = j
			continue
		}
		if c == ' ' && len(dst) > from && dst[len(dst)-1] != ' ' {
			dst = append(dst, ' ')
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		if !unicode.IsSpace(r) {
			dst = append(dst, text[i:i+n]...)
		} else if len(dst) > from && dst[len(dst)-1] != ' ' {
			dst = append(dst, ' ')
		}
		i += n
	}
	if len(dst) > from && dst[len(dst)-1] == ' ' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// Exact finds documents that came before. It keeps 64 bits of each identity, so
// about 16 bytes of memory for each distinct document. It is not safe for
// concurrent use.
type Exact struct{ seen map[uint64]struct{} }

// NewExact returns an empty set.
func NewExact() *Exact { return &Exact{seen: make(map[uint64]struct{})} }

// Seen reports whether a document with this identity was noted before, and
// notes it.
func (e *Exact) Seen(s Sum256) bool {
	k := s.key()
	if _, ok := e.seen[k]; ok {
		return true
	}
	e.seen[k] = struct{}{}
	return false
}

// Len returns the number of distinct documents.
func (e *Exact) Len() int { return len(e.seen) }

// FalsePositiveOdds returns the odds that among n distinct documents any one is
// taken for another, n(n-1)/2^65: 3 in a million for ten million documents.
func FalsePositiveOdds(n int) float64 {
	return math.Ldexp(float64(n)*float64(n-1), -65)
}

// key and point take different bytes of the digest, so that being seen says
// nothing about the split.
func (s Sum256) key() uint64   { return binary.BigEndian.Uint64(s[8:16]) }
func (s Sum256) point() uint64 { return binary.BigEndian.Uint64(s[:8]) }
