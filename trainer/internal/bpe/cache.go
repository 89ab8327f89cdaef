package bpe

import (
	"encoding/binary"
	"math/bits"
)

const (
	cachedBytes = 24 // longest word that the cache holds
	cachedIDs   = 8  // most tokens of such a word
)

// wordCache remembers the tokens of recent words. Its size is fixed: two places for each
// hash, of which the first keeps the word that was asked for again, so that a stream of
// rare words does not push out the frequent ones. It never changes a result.
type wordCache struct {
	entries []cacheEntry
	shift   uint
}

// cacheEntry fills one cache line.
type cacheEntry struct {
	key   wordKey
	ids   [cachedIDs]int32
	bytes uint8 // length of the word; 0 marks an empty entry
	count uint8 // of ids
}

// wordKey is a word of up to cachedBytes bytes, padded with zeros.
type wordKey [cachedBytes / 8]uint64

// newWordCache holds about eight words for each token of the vocabulary, 2 MiB at most.
func newWordCache(vocab int) wordCache {
	size := uint(8)
	for size < 15 && 1<<size < 8*vocab {
		size++
	}
	return wordCache{entries: make([]cacheEntry, 1<<size), shift: 64 - size}
}

// keyAt loads text[i:i+n], with n from 1 to cachedBytes.
func keyAt(text []byte, i, n int) (key wordKey) {
	if len(text)-i < cachedBytes {
		var padded [cachedBytes]byte
		copy(padded[:], text[i:i+n])
		return load(padded[:], n)
	}
	return load(text[i:i+cachedBytes], n)
}

// load masks the bytes after the first n away.
func load(b []byte, n int) (key wordKey) {
	_ = b[cachedBytes-1]
	key[0] = binary.LittleEndian.Uint64(b)
	if n <= 8 {
		key[0] &= ^uint64(0) >> (64 - 8*uint(n))
		return key
	}
	key[1] = binary.LittleEndian.Uint64(b[8:])
	if n <= 16 {
		key[1] &= ^uint64(0) >> (128 - 8*uint(n))
		return key
	}
	key[2] = binary.LittleEndian.Uint64(b[16:])
	key[2] &= ^uint64(0) >> (192 - 8*uint(n))
	return key
}

// home returns the index of the first of the two entries of a word.
func (c *wordCache) home(key *wordKey, n int) int {
	hi, lo := bits.Mul64(key[0]^0x9e3779b97f4a7c15, key[1]^0xd1b54a32d192ed03^uint64(n)<<56)
	h := (hi ^ lo ^ key[2]) * 0x9e3779b97f4a7c15
	return int(h>>c.shift) &^ 1
}

// find returns the entry of a word, or nil.
func (c *wordCache) find(key *wordKey, n, home int) *cacheEntry {
	pair := c.entries[home : home+2]
	if e := &pair[0]; e.key == *key && int(e.bytes) == n {
		return e
	}
	if e := &pair[1]; e.key == *key && int(e.bytes) == n {
		pair[0], pair[1] = pair[1], pair[0]
		return &pair[0]
	}
	return nil
}

// keep stores the tokens of a word, unless they are too many.
func (c *wordCache) keep(key *wordKey, n, home int, ids []int32) {
	if len(ids) > cachedIDs {
		return
	}
	e := &c.entries[home]
	if e.bytes != 0 {
		e = &c.entries[home+1]
	}
	e.key, e.bytes, e.count = *key, uint8(n), uint8(len(ids))
	copy(e.ids[:], ids)
}
