package dataset

import (
	"fmt"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/rng"
)

// Feed is an endless supply of training batches. What comes next depends on its
// stream alone, and State holds all that SetState needs to go on from there.
type Feed interface {
	Next(b *gpt.Batch) error
	State() ([]byte, error)
	SetState([]byte) error
}

// Windows is a sequence of windows to evaluate on, each of them at most one row
// of a batch.
type Windows interface {
	// Len returns the number of windows.
	Len() int
	// Fill makes b the n windows from the first-th on. Any number of
	// goroutines may call it at once, each with a batch of its own.
	Fill(b *gpt.Batch, first, n int) error
}

// Batches draws random windows of a source, as one trains on a text.
type Batches struct {
	src    Source
	b, t   int
	stream *rng.Stream
	row    []int32
}

var _ Feed = (*Batches)(nil)

// NewBatches returns batches of b windows of t tokens. name, the path of the
// source, is for errors. A source needs t+1 tokens: a window and what follows it.
func NewBatches(src Source, name string, b, t int, stream *rng.Stream) (*Batches, error) {
	if b < 1 || t < 1 {
		return nil, fmt.Errorf("batches of %d windows of %d tokens: want 1 or more of each", b, t)
	}
	if src.Len() < int64(t)+1 {
		return nil, TooSmall(name, src.Len(), t)
	}
	return &Batches{src: src, b: b, t: t, stream: stream, row: make([]int32, t+1)}, nil
}

// TooSmall is the error about a source that holds less than a block.
func TooSmall(name string, tokens int64, block int) error {
	return fmt.Errorf("%s: %d tokens, a block of %d needs %d: give more text or a smaller block size", name, tokens, block, block+1)
}

// Next fills b, of which it keeps the slices when they are large enough.
func (x *Batches) Next(b *gpt.Batch) error {
	resize(b, x.b, x.t)
	for i := range x.b {
		pos := x.stream.Intn(int(x.src.Len() - int64(x.t)))
		if err := x.src.Read(x.row, int64(pos)); err != nil {
			return err
		}
		copy(b.Inputs[i*x.t:(i+1)*x.t], x.row)
		copy(b.Targets[i*x.t:(i+1)*x.t], x.row[1:])
	}
	return nil
}

// State returns the state of the stream.
func (x *Batches) State() ([]byte, error) { return x.stream.State() }

// SetState continues where State was taken.
func (x *Batches) SetState(s []byte) error { return x.stream.SetState(s) }

// resize makes b a batch of n rows of t tokens.
func resize(b *gpt.Batch, n, t int) {
	b.B, b.T = n, t
	if cap(b.Inputs) < n*t {
		b.Inputs = make([]int32, n*t)
	}
	if cap(b.Targets) < n*t {
		b.Targets = make([]int32, n*t)
	}
	b.Inputs, b.Targets = b.Inputs[:n*t], b.Targets[:n*t]
}
