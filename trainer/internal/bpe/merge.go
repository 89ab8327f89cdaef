package bpe

// merge joins the tokens left and right into the token id.
type merge struct {
	left, right, id int32
}

// noRank stands for a pair that no merge joins; it is above every rank.
const noRank = 1<<31 - 1

// pairKey packs a pair of tokens into one word that sorts like the pair.
func pairKey(left, right int32) uint64 {
	return uint64(uint32(left))<<32 | uint64(uint32(right))
}

// rankTable finds the rank of a pair: a hash table with linear probing, at most half
// full. It is what encoding spends its time in, and a Go map is several times slower.
type rankTable struct {
	slots []rankSlot
	shift uint
}

type rankSlot struct {
	key  uint64
	rank int32 // rank plus one, so that the zero slot is an empty one
}

func newRankTable(merges []merge) rankTable {
	bits := uint(4)
	for 1<<bits < 2*len(merges) {
		bits++
	}
	t := rankTable{slots: make([]rankSlot, 1<<bits), shift: 64 - bits}
	for rank, m := range merges {
		key := pairKey(m.left, m.right)
		i := t.home(key)
		for t.slots[i].rank != 0 {
			i = (i + 1) & (len(t.slots) - 1)
		}
		t.slots[i] = rankSlot{key, int32(rank) + 1}
	}
	return t
}

// home is Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4); the first
// product spreads the left token over the low half as well.
func (t *rankTable) home(key uint64) int {
	key ^= key >> 29
	return int(key * 0x9e3779b97f4a7c15 >> t.shift)
}

// rank returns the rank of a pair, or noRank.
func (t *rankTable) rank(left, right int32) int32 {
	key := pairKey(left, right)
	for i := t.home(key); ; i = (i + 1) & (len(t.slots) - 1) {
		s := &t.slots[i]
		if s.rank == 0 {
			return noRank
		}
		if s.key == key {
			return s.rank - 1
		}
	}
}

// shortWord is the length in bytes up to which scanning for the lowest rank beats a heap.
const shortWord = 48

// scratch is what merging one word needs, kept from word to word.
type scratch struct {
	cache wordCache
	ids   []int32
	ranks []int32 // of the pair that starts at the same index
	next  []int32
	prev  []int32
	heap  rankHeap
}

// appendWord appends the tokens of one word to dst.
func (t *Tokenizer) appendWord(dst []int32, word []byte, s *scratch) []int32 {
	if len(word) <= shortWord {
		return append(dst, t.mergeShort(word, s)...)
	}
	// Positions are 32 bits wide. A word of this length is no text: it is encoded in parts.
	const longest = 1 << 28
	for len(word) > longest {
		dst = t.mergeLong(dst, word[:longest], s)
		word = word[longest:]
	}
	return t.mergeLong(dst, word, s)
}

// mergeShort looks through all ranks for each merge. The result is valid until the
// scratch is used again.
func (t *Tokenizer) mergeShort(word []byte, s *scratch) []int32 {
	ids, ranks := s.ids[:0], s.ranks[:0]
	for _, b := range word {
		ids = append(ids, t.byteIDs[b])
	}
	for i := 0; i+1 < len(ids); i++ {
		ranks = append(ranks, t.ranks.rank(ids[i], ids[i+1]))
	}
	s.ids, s.ranks = ids, ranks
	for {
		best, at := int32(noRank), 0
		for i, r := range ranks {
			if r < best {
				best, at = r, i
			}
		}
		if best == noRank {
			return ids
		}
		ids[at] = t.merges[best].id
		copy(ids[at+1:], ids[at+2:])
		ids = ids[:len(ids)-1]
		copy(ranks[at:], ranks[at+1:])
		ranks = ranks[:len(ranks)-1]
		if at > 0 {
			ranks[at-1] = t.ranks.rank(ids[at-1], ids[at])
		}
		if at < len(ranks) {
			ranks[at] = t.ranks.rank(ids[at], ids[at+1])
		}
	}
}

// mergeLong keeps the tokens in a linked list and the pairs in a heap, so that a word of
// n bytes takes O(n log n) steps.
func (t *Tokenizer) mergeLong(dst []int32, word []byte, s *scratch) []int32 {
	n := int32(len(word))
	ids, next, prev := s.ids[:0], s.next[:0], s.prev[:0]
	for i, b := range word {
		ids = append(ids, t.byteIDs[b])
		next = append(next, int32(i)+1)
		prev = append(prev, int32(i)-1)
	}
	heap := s.heap[:0]
	for i := int32(0); i+1 < n; i++ {
		if r := t.ranks.rank(ids[i], ids[i+1]); r != noRank {
			heap.push(r, i)
		}
	}
	for len(heap) > 0 {
		rank, at := heap.pop()
		m := t.merges[rank]
		after := next[at]
		// The pair may have gone since: a token of it has been joined to another. Joined
		// tokens leave -1 behind, which is in no merge.
		if ids[at] != m.left || after == n || ids[after] != m.right {
			continue
		}
		ids[at], ids[after] = m.id, -1
		after = next[after]
		next[at] = after
		if before := prev[at]; before >= 0 {
			if r := t.ranks.rank(ids[before], m.id); r != noRank {
				heap.push(r, before)
			}
		}
		if after < n {
			prev[after] = at
			if r := t.ranks.rank(m.id, ids[after]); r != noRank {
				heap.push(r, at)
			}
		}
	}
	for i := int32(0); i < n; i = next[i] {
		dst = append(dst, ids[i])
	}
	s.ids, s.next, s.prev, s.heap = ids, next, prev, heap
	return dst
}

// rankHeap is a binary min-heap of ranks and positions, each packed into one word: the
// lowest rank first, and of one rank the leftmost position.
type rankHeap []uint64

func (h *rankHeap) push(rank, at int32) {
	v := uint64(uint32(rank))<<32 | uint64(uint32(at))
	a := append(*h, v)
	i := len(a) - 1
	for i > 0 {
		up := (i - 1) / 2
		if a[up] <= v {
			break
		}
		a[i] = a[up]
		i = up
	}
	a[i] = v
	*h = a
}

func (h *rankHeap) pop() (rank, at int32) {
	a := *h
	top := a[0]
	v := a[len(a)-1]
	a = a[:len(a)-1]
	i := 0
	for {
		down := 2*i + 1
		if down >= len(a) {
			break
		}
		if down+1 < len(a) && a[down+1] < a[down] {
			down++
		}
		if v <= a[down] {
			break
		}
		a[i] = a[down]
		i = down
	}
	if len(a) > 0 {
		a[i] = v
	}
	*h = a
	return int32(top >> 32), int32(uint32(top))
}
