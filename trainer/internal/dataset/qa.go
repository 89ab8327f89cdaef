package dataset

import (
	"fmt"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/rng"
)

// QAOptions say how question-answer pairs become rows of a batch.
type QAOptions struct {
	Block       int                 // longest row in tokens
	IsSeparator func(id int32) bool // whether a token holds the bar that ends the question
	EndOfText   int32               // fills rows up behind their end
	// CountQuestion lets the tokens of the question count in the loss as well.
	CountQuestion bool
}

// QA holds the pairs of a split in memory, each a row of its own: the answer and
// the end of text are targets, everything else is gpt.Ignore. Rows are as long as
// the longest pair, at most a block. Of a pair that is longer the beginning of
// the question is dropped, then the end of the answer.
type QA struct {
	opts      QAOptions
	t         int
	rows      []qaRow
	truncated int
}

var _ Windows = (*QA)(nil)

// qaRow is the tokens of a pair; targets before the answer-th token are ignored.
type qaRow struct {
	tokens []int32
	answer int
}

// NewQA reads the pairs of a split. name, the path of the source, is for errors.
func NewQA(src Source, x Index, name string, opts QAOptions) (*QA, error) {
	if opts.Block < 1 {
		return nil, fmt.Errorf("question-answer rows of %d tokens: want 1 or more", opts.Block)
	}
	if x.Len() == 0 {
		return nil, fmt.Errorf("%s: no question-answer pairs: give this split a share of them", name)
	}
	q := &QA{opts: opts, rows: make([]qaRow, x.Len())}
	for i := range q.rows {
		from, to := x.Tokens(i)
		tokens := make([]int32, to-from)
		if err := src.Read(tokens, from); err != nil {
			return nil, err
		}
		answer := 0
		for answer < len(tokens) && !opts.IsSeparator(tokens[answer]) {
			answer++
		}
		if answer++; answer >= len(tokens) {
			return nil, fmt.Errorf("%s: pair %d has no | in it: prepare it as question-answer data", name, i+1)
		}
		q.rows[i] = q.fit(tokens, answer)
		q.t = max(q.t, len(q.rows[i].tokens)-1)
	}
	return q, nil
}

// fit cuts a pair to a block and the token that follows it.
func (q *QA) fit(tokens []int32, answer int) qaRow {
	over := len(tokens) - (q.opts.Block + 1)
	if over > 0 {
		q.truncated++
		// The bar stays: it is what the answer follows.
		front := min(over, answer-1)
		tokens, answer = tokens[front:], answer-front
		tokens = tokens[:q.opts.Block+1]
	}
	return qaRow{tokens: tokens, answer: answer}
}

// Len returns the number of pairs.
func (q *QA) Len() int { return len(q.rows) }

// T returns the tokens in a row.
func (q *QA) T() int { return q.t }

// Truncated returns how many pairs were longer than a block.
func (q *QA) Truncated() int { return q.truncated }

// Fill makes b the n pairs from the first-th on.
func (q *QA) Fill(b *gpt.Batch, first, n int) error {
	if first < 0 || n < 1 || first+n > len(q.rows) {
		return fmt.Errorf("pairs %d to %d asked for, there are %d", first, first+n, len(q.rows))
	}
	resize(b, n, q.t)
	for i := range n {
		q.fill(b, i, first+i)
	}
	return nil
}

// fill makes row i of b the pair.
func (q *QA) fill(b *gpt.Batch, i, pair int) {
	row := q.rows[pair]
	inputs, targets := b.Inputs[i*q.t:(i+1)*q.t], b.Targets[i*q.t:(i+1)*q.t]
	for p := range inputs {
		inputs[p], targets[p] = q.opts.EndOfText, gpt.Ignore
		if p+1 >= len(row.tokens) {
			continue
		}
		inputs[p] = row.tokens[p]
		if p+1 >= row.answer || q.opts.CountQuestion {
			targets[p] = row.tokens[p+1]
		}
	}
}

// QABatches goes through the pairs in epochs, each in an order of its own.
type QABatches struct {
	qa     *QA
	b      int
	stream *rng.Stream
	start  []byte // of the stream before this epoch was shuffled
	order  []int
	next   int // place in order
}

var _ Feed = (*QABatches)(nil)

// Batches returns batches of b pairs. A batch may span the end of an epoch.
func (q *QA) Batches(b int, stream *rng.Stream) (*QABatches, error) {
	if b < 1 {
		return nil, fmt.Errorf("batches of %d pairs: want 1 or more", b)
	}
	x := &QABatches{qa: q, b: b, stream: stream, order: make([]int, q.Len())}
	return x, x.shuffle()
}

// shuffle begins an epoch.
func (x *QABatches) shuffle() error {
	var err error
	if x.start, err = x.stream.State(); err != nil {
		return err
	}
	for i := range x.order {
		x.order[i] = i
	}
	x.stream.Shuffle(len(x.order), func(i, j int) { x.order[i], x.order[j] = x.order[j], x.order[i] })
	x.next = 0
	return nil
}

// Next fills b, of which it keeps the slices when they are large enough.
func (x *QABatches) Next(b *gpt.Batch) error {
	resize(b, x.b, x.qa.t)
	for i := range x.b {
		if x.next == len(x.order) {
			if err := x.shuffle(); err != nil {
				return err
			}
		}
		x.qa.fill(b, i, x.order[x.next])
		x.next++
	}
	return nil
}
