package evaluate

import (
	"context"
	"fmt"
	"math"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
)

// Scorer runs a model without dropout.
type Scorer interface {
	// Loss writes the nats of every position to perToken, of length B*T, 0
	// where the target is gpt.Ignore. *gpt.Session is one.
	Loss(b gpt.Batch, perToken []float32) (sum float64, n int, err error)
}

// Plan is how a stream is put before a model.
type Plan struct {
	Rows  int   // sequences in a batch
	Block int   // tokens in a sequence
	First int32 // token taken to precede the stream, below 0 for none
	// Apart begins a row with each document and lets nothing precede it, as
	// question-answer pairs are trained.
	Apart bool
	// Bytes holds the bytes of text that each token stands for; special
	// tokens stand for none.
	Bytes []int32
}

// Score returns the sums of each document.
//
// The documents follow each other as they did in training: rows of Block tokens
// laid end to end, each token predicted once from what precedes it in its row.
// So the first tokens of a row have little context, and a document may see the
// end of the one before it. Without a token to precede it, the first token of
// the stream cannot be predicted and is not counted.
func Score(ctx context.Context, m Scorer, s Tokens, docs []Document, p Plan) ([]Sums, error) {
	if p.Rows < 1 || p.Block < 1 {
		return nil, fmt.Errorf("plan of %d rows of %d tokens: want 1 or more of each", p.Rows, p.Block)
	}
	w := &walk{m: m, p: p, sums: make([]Sums, len(docs))}
	w.inputs = make([]int32, p.Rows*p.Block)
	w.targets = make([]int32, p.Rows*p.Block)
	w.owner = make([]int, p.Rows*p.Block)
	w.loss = make([]float32, p.Rows*p.Block)
	buf := make([]int32, scanChunk)
	last := p.First // the token before the next one
	var at int64    // and its position
	for d, doc := range docs {
		switch {
		case p.Apart:
			if err := w.endRow(ctx); err != nil {
				return nil, err
			}
			last, at = -1, doc.Start
		case doc.Start != at:
			// Documents were left out. What follows reads as if they had
			// not been there when the token before both is the same.
			var prev [1]int32
			if err := s.Read(prev[:], doc.Start-1); err != nil {
				return nil, err
			}
			if prev[0] != last {
				if err := w.endRow(ctx); err != nil {
					return nil, err
				}
			}
			last, at = prev[0], doc.Start
		}
		for at < doc.End {
			chunk := buf[:min(int64(len(buf)), doc.End-at)]
			if err := s.Read(chunk, at); err != nil {
				return nil, err
			}
			for _, id := range chunk {
				if id < 0 || int(id) >= len(p.Bytes) {
					return nil, fmt.Errorf("position %d holds token %d, the vocabulary has %d: the data and the model do not belong together", at, id, len(p.Bytes))
				}
				if last >= 0 {
					if err := w.add(ctx, last, id, d, at >= doc.Count); err != nil {
						return nil, err
					}
				}
				last = id
				at++
			}
		}
	}
	if err := w.flush(ctx); err != nil {
		return nil, err
	}
	return w.sums, nil
}

// walk fills batches and adds their losses to the documents.
type walk struct {
	m               Scorer
	p               Plan
	n               int // positions filled
	inputs, targets []int32
	owner           []int
	loss            []float32
	sums            []Sums
}

func (w *walk) add(ctx context.Context, input, target int32, doc int, counts bool) error {
	w.inputs[w.n], w.owner[w.n] = input, doc
	w.targets[w.n] = gpt.Ignore
	if counts {
		w.targets[w.n] = target
	}
	if w.n++; w.n == len(w.inputs) {
		return w.flush(ctx)
	}
	return nil
}

// endRow pads the row that is being filled.
func (w *walk) endRow(ctx context.Context) error {
	for w.n%w.p.Block != 0 {
		w.inputs[w.n], w.targets[w.n] = 0, gpt.Ignore
		w.n++
	}
	if w.n == len(w.inputs) {
		return w.flush(ctx)
	}
	return nil
}

func (w *walk) flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.n == 0 {
		return nil
	}
	for w.n%w.p.Block != 0 {
		w.inputs[w.n], w.targets[w.n] = 0, gpt.Ignore
		w.n++
	}
	b := gpt.Batch{B: w.n / w.p.Block, T: w.p.Block, Inputs: w.inputs[:w.n], Targets: w.targets[:w.n]}
	loss := w.loss[:w.n]
	if _, _, err := w.m.Loss(b, loss); err != nil {
		return err
	}
	// One addition after the other in the order of the stream: the sum must
	// not depend on how the work was spread.
	for i, target := range b.Targets {
		if target == gpt.Ignore {
			continue
		}
		l := float64(loss[i])
		if math.IsNaN(l) || math.IsInf(l, 0) {
			return fmt.Errorf("%w: token %d of document %d has %v: the model diverged in training", ErrNotFinite, w.sums[w.owner[i]].Tokens, w.owner[i], l)
		}
		sum := &w.sums[w.owner[i]]
		sum.Loss += l
		sum.Tokens++
		sum.Bytes += int64(w.p.Bytes[target])
	}
	w.n = 0
	return nil
}
