package gpt

import (
	"errors"
	"fmt"
)

// Ignore is the target of a position that must not count: padding, or the
// question of a question-answer pair.
const Ignore int32 = -1

// ErrBatch is wrapped by every error about a Batch.
var ErrBatch = errors.New("invalid batch")

// Batch is B sequences of T tokens, row-major: Inputs[b*T+t] is followed by
// Targets[b*T+t]. A target of Ignore takes no part in the loss.
type Batch struct {
	B, T    int
	Inputs  []int32 // (B, T)
	Targets []int32 // (B, T); nil where no loss is asked for
}

func (b Batch) validate(cfg Config, maxB, maxT int, needTargets bool) error {
	switch {
	case b.B < 1 || b.B > maxB:
		return fmt.Errorf("%w: %d sequences, want 1 to %d", ErrBatch, b.B, maxB)
	case b.T < 1 || b.T > maxT:
		return fmt.Errorf("%w: %d tokens in a sequence, want 1 to %d", ErrBatch, b.T, maxT)
	case len(b.Inputs) != b.B*b.T:
		return fmt.Errorf("%w: %d inputs, want %d", ErrBatch, len(b.Inputs), b.B*b.T)
	case needTargets && len(b.Targets) != b.B*b.T:
		return fmt.Errorf("%w: %d targets, want %d", ErrBatch, len(b.Targets), b.B*b.T)
	}
	for i, id := range b.Inputs {
		if id < 0 || int(id) >= cfg.VocabSize {
			return fmt.Errorf("%w: input %d is token %d, the vocabulary has %d", ErrBatch, i, id, cfg.VocabSize)
		}
	}
	for i, id := range b.Targets {
		if id != Ignore && (id < 0 || int(id) >= cfg.VocabSize) {
			return fmt.Errorf("%w: target %d is token %d, the vocabulary has %d", ErrBatch, i, id, cfg.VocabSize)
		}
	}
	return nil
}
