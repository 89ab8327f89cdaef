package dataset

import (
	"fmt"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
)

// TextWindows cuts a source into windows that do not overlap. Every token is the
// target of exactly one position: the first one is predicted from the token that
// ends a document, as every other first token of a document is.
type TextWindows struct {
	src   Source
	t     int
	first int32
}

var _ Windows = (*TextWindows)(nil)

// NewTextWindows returns windows of t tokens; endOfText is the token that ends
// documents. name, the path of the source, is for errors.
func NewTextWindows(src Source, name string, t int, endOfText int32) (*TextWindows, error) {
	if t < 1 {
		return nil, fmt.Errorf("windows of %d tokens: want 1 or more", t)
	}
	if src.Len() < 1 {
		return nil, fmt.Errorf("%s: no tokens to evaluate on: give this split a share of the documents", name)
	}
	return &TextWindows{src: src, t: t, first: endOfText}, nil
}

// Len returns the number of windows.
func (w *TextWindows) Len() int { return int((w.src.Len() + int64(w.t) - 1) / int64(w.t)) }

// Start returns the position in the source of the first target of window i.
func (w *TextWindows) Start(i int) int64 { return int64(i) * int64(w.t) }

// Fill makes b the n windows from the first-th on. Behind the end of the source
// targets are gpt.Ignore.
func (w *TextWindows) Fill(b *gpt.Batch, first, n int) error {
	if first < 0 || n < 1 || first+n > w.Len() {
		return fmt.Errorf("windows %d to %d asked for, there are %d", first, first+n, w.Len())
	}
	resize(b, n, w.t)
	start := w.Start(first)
	have := int(min(int64(n*w.t), w.src.Len()-start))
	if err := w.src.Read(b.Targets[:have], start); err != nil {
		return err
	}
	if start == 0 {
		b.Inputs[0] = w.first
	} else if err := w.src.Read(b.Inputs[:1], start-1); err != nil {
		return err
	}
	copy(b.Inputs[1:], b.Targets[:have])
	for i := have; i < n*w.t; i++ {
		b.Targets[i] = gpt.Ignore
		if i > have {
			b.Inputs[i] = w.first
		}
	}
	return nil
}
