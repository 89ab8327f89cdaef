package bpe

import (
	"container/heap"
	"context"
	"slices"
)

// learner joins pairs in the counted words. Each distinct word is one list of tokens with
// its count, and each pair knows its total count and the words where it is, so that
// joining a pair touches only these.
type learner struct {
	words []countedWord
	pairs map[uint64]*pairStats
	queue pairQueue
	grown []uint64 // pairs whose count rose in the current join
}

type countedWord struct {
	tokens []int32
	count  int64
}

// pairStats is what is known of a pair. words may hold words that have lost the pair
// since, and a word twice.
type pairStats struct {
	count  int64
	words  []int32
	raised bool // is in grown
}

// learnMerges returns all tokens (the bytes and the merged ones) and the merges, by rank.
//
// Each merge makes a new token: wherever the same bytes stand between the same borders of
// tokens, all joins so far have treated them alike (a run of one token is joined from the
// left, and a join over a border would have removed it), so that one pair makes them.
func learnMerges(ctx context.Context, words map[string]int64, opts TrainOptions) ([][]byte, []merge, error) {
	l := newLearner(words)
	tokens := make([][]byte, 0, opts.VocabSize)
	for _, b := range byteOrder {
		tokens = append(tokens, []byte{b})
	}
	var merges []merge
	for len(tokens) < opts.VocabSize-len(opts.SpecialTokens) {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		key, ok := l.best(int64(opts.MinFrequency))
		if !ok {
			break
		}
		m := merge{left: int32(key >> 32), right: int32(uint32(key)), id: int32(len(tokens))}
		tokens = append(tokens, slices.Concat(tokens[m.left], tokens[m.right]))
		merges = append(merges, m)
		l.join(key, m)
	}
	return tokens, merges, nil
}

// newLearner spells the words as bytes and counts their pairs. The words' order, which is
// the map's and so random, has no influence on the merges: these follow from the counts.
func newLearner(words map[string]int64) *learner {
	l := &learner{words: make([]countedWord, 0, len(words)), pairs: make(map[uint64]*pairStats)}
	var ids [256]int32
	for id, b := range byteOrder {
		ids[b] = int32(id)
	}
	size := 0
	for word := range words {
		size += len(word)
	}
	arena := make([]int32, 0, size)
	for word, count := range words {
		start := len(arena)
		for i := range len(word) {
			arena = append(arena, ids[word[i]])
		}
		l.words = append(l.words, countedWord{arena[start:], count})
	}
	for w, word := range l.words {
		for i := 0; i+1 < len(word.tokens); i++ {
			l.change(word.tokens[i], word.tokens[i+1], word.count, int32(w))
		}
	}
	l.enqueue()
	return l
}

// change adds to a pair's count. If it rises, the pair is now in word w as well.
func (l *learner) change(left, right int32, by int64, w int32) {
	key := pairKey(left, right)
	p := l.pairs[key]
	if p == nil {
		p = &pairStats{}
		l.pairs[key] = p
	}
	p.count += by
	if p.count == 0 {
		delete(l.pairs, key) // no word has it: its list is out of date
		return
	}
	if by < 0 {
		return
	}
	// A word's changes come together, so that looking at the last one is enough to keep a
	// word with very many of one pair from being listed as often.
	if n := len(p.words); n == 0 || p.words[n-1] != w {
		p.words = append(p.words, w)
	}
	if !p.raised {
		p.raised = true
		l.grown = append(l.grown, key)
	}
}

// enqueue puts the pairs whose count rose in the queue.
func (l *learner) enqueue() {
	for _, key := range l.grown {
		// A pair that rose may be gone again.
		if p := l.pairs[key]; p != nil {
			p.raised = false
			heap.Push(&l.queue, queuedPair{p.count, key})
		}
	}
	l.grown = l.grown[:0]
}

// best takes the pair to be joined from the queue, or returns false when none comes often
// enough. Counts fall without the queue being told: an entry with too high a count is put
// back with the true one, and one with too low a count has a newer one elsewhere.
func (l *learner) best(least int64) (uint64, bool) {
	for l.queue.Len() > 0 {
		top := heap.Pop(&l.queue).(queuedPair)
		if top.count < least {
			return 0, false
		}
		p := l.pairs[top.key]
		switch {
		case p == nil:
		case p.count == top.count:
			return top.key, true
		case p.count < top.count && p.count >= least:
			heap.Push(&l.queue, queuedPair{p.count, top.key})
		}
	}
	return 0, false
}

// join replaces a pair by the token m.id in all words that have it.
func (l *learner) join(key uint64, m merge) {
	for _, w := range l.pairs[key].words {
		word := &l.words[w]
		word.tokens = l.joinIn(word.tokens, m, word.count, w)
	}
	l.enqueue()
}

// joinIn joins the pair in one word, from left to right and in place, and returns what is
// left of it.
func (l *learner) joinIn(tokens []int32, m merge, count int64, w int32) []int32 {
	out := 0
	for i := 0; i < len(tokens); i++ {
		if tokens[i] != m.left || i+1 == len(tokens) || tokens[i+1] != m.right {
			tokens[out] = tokens[i]
			out++
			continue
		}
		l.change(m.left, m.right, -count, w)
		if out > 0 {
			l.change(tokens[out-1], m.left, -count, w)
			l.change(tokens[out-1], m.id, count, w)
		}
		if i+2 < len(tokens) {
			l.change(m.right, tokens[i+2], -count, w)
			l.change(m.id, tokens[i+2], count, w)
		}
		tokens[out] = m.id
		out++
		i++
	}
	return tokens[:out]
}

// pairQueue is a heap of pairs: the highest count first, then the smallest ids.
type pairQueue []queuedPair

type queuedPair struct {
	count int64
	key   uint64
}

func (q pairQueue) Len() int { return len(q) }
func (q pairQueue) Less(i, j int) bool {
	if q[i].count != q[j].count {
		return q[i].count > q[j].count
	}
	return q[i].key < q[j].key
}
func (q pairQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *pairQueue) Push(x any)   { *q = append(*q, x.(queuedPair)) }
func (q *pairQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
