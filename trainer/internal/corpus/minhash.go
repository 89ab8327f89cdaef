package corpus

import (
	"fmt"
	"math"
	"unicode"
	"unicode/utf8"
)

// Permutations is the length of a signature.
const Permutations = 64

// Signature is the MinHash of a document (Broder, "On the resemblance and
// containment of documents", 1997): of each of 64 permutations of its shingles,
// 8 bits of the least (Li and König, "b-Bit Minwise Hashing", 2010). The
// permutations are made from one hash by cutting its range into 64 bins, empty
// bins being filled from others (Shrivastava, "Optimal Densification for Fast
// and Accurate Minwise Hashing", 2017): one hash a shingle instead of 64.
type Signature [Permutations]uint8

// Similarity estimates the share of shingles that two documents have in common
// (Jaccard), with a standard error of at most 1/16. It is below 0 for documents
// that agree in fewer places than chance would have it.
func (s *Signature) Similarity(o *Signature) float64 {
	same := 0
	for i := range s {
		if s[i] == o[i] {
			same++
		}
	}
	const chance = 1.0 / 256
	return (float64(same)/Permutations - chance) / (1 - chance)
}

// MinHasher computes signatures. Use one for each goroutine.
type MinHasher struct {
	shingle int
}

// NewMinHasher returns a hasher of shingles of so many characters, 1 to 32.
func NewMinHasher(shingle int) (*MinHasher, error) {
	if shingle < 1 || shingle > maxGram {
		return nil, fmt.Errorf("near duplicates: a shingle of %d characters: want 1 to %d", shingle, maxGram)
	}
	return &MinHasher{shingle: shingle}, nil
}

// Sign returns the signature of text; white space of any length counts as one
// space. A text shorter than a shingle is one shingle.
func (m *MinHasher) Sign(text []byte) Signature {
	var least [Permutations]uint64
	for i := range least {
		least[i] = math.MaxUint64
	}
	var gram roller
	gram.reset(m.shingle)
	full, space := false, true
	for i := 0; i < len(text); {
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(text[i:])
		}
		i += n
		if r <= ' ' || r >= utf8.RuneSelf && unicode.IsSpace(r) {
			if space {
				continue
			}
			space, r = true, ' '
		} else {
			space = false
		}
		if !gram.push(r) {
			continue
		}
		full = true
		h := gram.hash()
		if bin := h % Permutations; h < least[bin] {
			least[bin] = h
		}
	}
	if !full {
		h := gram.hash()
		least[h%Permutations] = h
	}
	var sig Signature
	for i := range sig {
		from := uint64(i)
		for attempt := uint64(1); least[from] == math.MaxUint64; attempt++ {
			from = mix(uint64(i)<<32|attempt) % Permutations
		}
		sig[i] = uint8(least[from] >> 8) // below are the bits of the bin
	}
	return sig
}
