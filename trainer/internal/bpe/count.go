package bpe

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"
	"sync"
	"unicode/utf8"
)

const (
	wordCost = 32 // what a word costs of the budget beside its bytes

	// longestCounted bounds the words that are counted: of a longer one (a run of a million
	// letters is no word) the parts are. Merging looks through a whole word for each pair.
	longestCounted = 1024
)

// chunk is whole documents, one after the other.
type chunk struct {
	text []byte
	ends []int // of each document in text
}

// tally counts words. Counters stand in a slice because a Go map of bytes allocates a key
// when it is assigned to, but not when it is only looked at.
type tally struct {
	index  map[string]int32
	counts []int64
}

func (t *tally) add(word []byte) {
	if i, ok := t.index[string(word)]; ok {
		t.counts[i]++
		return
	}
	t.index[string(word)] = int32(len(t.counts))
	t.counts = append(t.counts, 1)
}

// countWords counts the words of all documents. Documents are dealt to opts.Threads
// goroutines, each with counts of its own. These are added up at places of the text that
// do not depend on the goroutines, and only there are words forgotten, so that the result
// does not either.
func countWords(ctx context.Context, documents iter.Seq2[[]byte, error], opts TrainOptions) (map[string]int64, error) {
	c := counter{
		tallies: make([]tally, opts.Threads),
		work:    make(chan chunk, opts.Threads),
		spare:   make(chan chunk, 2*opts.Threads+1),
		total:   make(map[string]int64),
		budget:  opts.WordBudget,
	}
	var running sync.WaitGroup
	for i := range c.tallies {
		c.tallies[i].index = make(map[string]int32)
		running.Go(func() { c.count(&c.tallies[i]) })
	}
	defer running.Wait()
	defer close(c.work)

	number, round := 0, 0
	var next chunk
	for document, err := range documents {
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		number++
		round += len(document)
		next.text = append(next.text, document...)
		next.ends = append(next.ends, len(next.text))
		if len(next.text) >= opts.chunkBytes {
			next = c.deal(next)
		}
		if round >= opts.roundBytes {
			next = c.deal(next)
			c.sum()
			round = 0
		}
	}
	c.deal(next)
	c.sum()
	return c.total, ctx.Err()
}

// counter is the state of countWords.
type counter struct {
	tallies []tally
	work    chan chunk
	spare   chan chunk // counted ones, to be filled again
	pending sync.WaitGroup

	total  map[string]int64
	cost   int // of the words in total
	budget int
}

// deal gives a chunk to some goroutine and returns an empty one.
func (c *counter) deal(full chunk) chunk {
	c.pending.Add(1)
	c.work <- full
	select {
	case empty := <-c.spare:
		return chunk{empty.text[:0], empty.ends[:0]}
	default:
		return chunk{}
	}
}

// count works off chunks until there are no more.
func (c *counter) count(t *tally) {
	for part := range c.work {
		start := 0
		for _, end := range part.ends {
			t.countDocument(part.text[start:end])
			start = end
		}
		select {
		case c.spare <- part:
		default:
		}
		c.pending.Done()
	}
}

// countDocument counts the words of one document.
func (t *tally) countDocument(text []byte) {
	for i := 0; i < len(text); {
		end := wordEnd(text, i)
		for end-i > longestCounted {
			cut := i + longestCounted
			for back := 0; back < utf8.UTFMax-1 && !utf8.RuneStart(text[cut]); back++ {
				cut--
			}
			t.add(text[i:cut])
			i = cut
		}
		t.add(text[i:end])
		i = end
	}
}

// sum waits for the goroutines, adds their counts to the total and empties them.
func (c *counter) sum() {
	c.pending.Wait()
	for i := range c.tallies {
		t := &c.tallies[i]
		for word, at := range t.index {
			before := c.total[word]
			if before == 0 {
				c.cost += len(word) + wordCost
			}
			c.total[word] = before + t.counts[at]
		}
		clear(t.index)
		t.counts = t.counts[:0]
	}
	if c.cost > c.budget {
		c.forget()
	}
}

// forget drops the rarest words until three quarters of the budget are left. Of equally
// rare ones those with the highest hash go, so that no alphabet is preferred.
func (c *counter) forget() {
	type entry struct {
		word  string
		count int64
		hash  uint64
	}
	words := make([]entry, 0, len(c.total))
	for word, count := range c.total {
		h := fnv.New64a()
		h.Write([]byte(word))
		words = append(words, entry{word, count, h.Sum64()})
	}
	slices.SortFunc(words, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.count, b.count), cmp.Compare(b.hash, a.hash), cmp.Compare(a.word, b.word))
	})
	for _, e := range words {
		if c.cost <= c.budget/4*3 {
			return
		}
		delete(c.total, e.word)
		c.cost -= len(e.word) + wordCost
	}
}
