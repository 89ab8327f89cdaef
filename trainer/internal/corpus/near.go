package corpus

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Bands is the number of bands of the index: documents are compared when they
// agree in all 4 places of a band (locality-sensitive hashing: Leskovec,
// Rajaraman and Ullman, "Mining of Massive Datasets", 3.4). Two documents with
// similarity s are compared with probability 1-(1-s^4)^16: 0.89 for 0.6, 0.9998
// for 0.8.
const (
	Bands    = 16
	bandRows = Permutations / Bands
)

// NearOptions say what a near duplicate is.
type NearOptions struct {
	Shingle   int     `json:"shingle_chars"`
	Threshold float64 `json:"threshold"`        // estimated similarity from which on a document is a duplicate
	Window    int     `json:"window_documents"` // how many documents back are looked at, at least half of this
}

// DefaultNear looks back over half a million to a million documents: at most
// about 200 MiB of memory.
func DefaultNear() NearOptions { return NearOptions{Shingle: 5, Threshold: 0.6, Window: 1 << 20} }

// Validate reports the first option out of range.
func (o NearOptions) Validate() error {
	if _, err := NewMinHasher(o.Shingle); err != nil {
		return err
	}
	if !(o.Threshold > 0 && o.Threshold <= 1) {
		return fmt.Errorf("near-threshold is %v: want more than 0 and at most 1", o.Threshold)
	}
	if o.Window < 2 || o.Window > math.MaxInt32 {
		return fmt.Errorf("near-window is %d documents: want 2 to %d", o.Window, math.MaxInt32)
	}
	return nil
}

// Near finds documents that resemble an earlier one. It remembers between half a
// window and a whole one: when the newer half is full, the older is forgotten.
// It is not safe for concurrent use.
type Near struct {
	opts       NearOptions
	old, young *nearIndex
	forgotten  int64
}

// NewNear returns an empty Near.
func NewNear(opts NearOptions) *Near {
	return &Near{opts: opts, old: newNearIndex(), young: newNearIndex()}
}

// Seen reports whether a document resembles one that was noted before, and notes
// it if it does not.
func (n *Near) Seen(sig *Signature) bool {
	if n.young.any(sig, n.opts.Threshold) || n.old.any(sig, n.opts.Threshold) {
		return true
	}
	if n.young.len() >= n.opts.Window/2 {
		n.forgotten += int64(n.old.len())
		n.old, n.young = n.young, newNearIndex()
	}
	n.young.add(sig)
	return false
}

// Forgotten returns the number of documents that fell out of the window.
func (n *Near) Forgotten() int64 { return n.forgotten }

// slabSize is how many signatures are allocated at a time: 64 KiB.
const slabSize = 1 << 10

// maxSame bounds how many documents with an equal band are looked at, so that a
// phrase which every document has does not make the search quadratic.
const maxSame = 32

// nearIndex holds signatures and, for each band, an open hash table of their
// numbers. A table keeps no keys: the band of the signature is the key.
type nearIndex struct {
	slabs  [][]Signature
	n      int
	tables [Bands][]uint32 // number of a signature plus one
}

func newNearIndex() *nearIndex {
	x := &nearIndex{}
	for b := range x.tables {
		x.tables[b] = make([]uint32, 1<<8)
	}
	return x
}

func (x *nearIndex) len() int { return x.n }

func (x *nearIndex) sig(i uint32) *Signature { return &x.slabs[i/slabSize][i%slabSize] }

func band(s *Signature, b int) uint32 { return binary.LittleEndian.Uint32(s[b*bandRows:]) }

// add notes a signature and returns its number, counted from 0.
func (x *nearIndex) add(s *Signature) uint32 {
	if x.n%slabSize == 0 {
		x.slabs = append(x.slabs, make([]Signature, slabSize))
	}
	id := uint32(x.n)
	*x.sig(id) = *s
	x.n++
	for b := range x.tables {
		if 4*x.n > 3*len(x.tables[b]) {
			x.grow(b)
		}
		x.insert(b, id)
	}
	return id
}

func (x *nearIndex) insert(b int, id uint32) {
	t := x.tables[b]
	mask := uint64(len(t) - 1)
	i := mix(uint64(band(x.sig(id), b))) & mask
	for t[i] != 0 {
		i = (i + 1) & mask
	}
	t[i] = id + 1
}

func (x *nearIndex) grow(b int) {
	x.tables[b] = make([]uint32, 2*len(x.tables[b]))
	for id := range x.n - 1 {
		x.insert(b, uint32(id))
	}
}

// each calls f with the number of each signature that shares a band with s and
// is as similar as threshold, possibly more than once, until f returns false.
func (x *nearIndex) each(s *Signature, threshold float64, f func(id uint32) bool) {
	for b := range x.tables {
		key := band(s, b)
		t := x.tables[b]
		mask := uint64(len(t) - 1)
		same := 0
		for i := mix(uint64(key)) & mask; t[i] != 0 && same < maxSame; i = (i + 1) & mask {
			o := x.sig(t[i] - 1)
			if band(o, b) != key {
				continue
			}
			same++
			if s.Similarity(o) >= threshold && !f(t[i]-1) {
				return
			}
		}
	}
}

func (x *nearIndex) any(s *Signature, threshold float64) (found bool) {
	x.each(s, threshold, func(uint32) bool { found = true; return false })
	return found
}
