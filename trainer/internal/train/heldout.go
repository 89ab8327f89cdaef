package train

import (
	"iter"
	"slices"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/rng"
)

// Windows is a held-out split cut into rows; dataset.Windows is one.
type Windows interface {
	Len() int
	Fill(b *gpt.Batch, first, n int) error
}

// HeldOut evaluates on the windows of a split, or on some of its batches.
type HeldOut struct {
	windows Windows
	size    int   // windows of a batch
	starts  []int // first window of each batch
	batch   gpt.Batch
}

var _ Evaluation = (*HeldOut)(nil)

// NewHeldOut returns an evaluation on batches of size windows: on all of them,
// or on limit batches drawn once from the run's evaluation stream, so that each
// evaluation of a run sees the same ones.
func NewHeldOut(w Windows, size, limit int, seed uint64) *HeldOut {
	h := &HeldOut{windows: w, size: size}
	for first := 0; first < w.Len(); first += size {
		h.starts = append(h.starts, first)
	}
	if limit > 0 && limit < len(h.starts) {
		rng.New(seed, rng.Eval).Shuffle(len(h.starts), func(i, j int) { h.starts[i], h.starts[j] = h.starts[j], h.starts[i] })
		h.starts = h.starts[:limit]
		slices.Sort(h.starts)
	}
	return h
}

// Batches yields the batches in the order of the split.
func (h *HeldOut) Batches() iter.Seq2[gpt.Batch, error] {
	return func(yield func(gpt.Batch, error) bool) {
		for _, first := range h.starts {
			err := h.windows.Fill(&h.batch, first, min(h.size, h.windows.Len()-first))
			if !yield(h.batch, err) || err != nil {
				return
			}
		}
	}
}
