package gpt

import (
	"errors"

	"github.com/trainyard/trainyard/trainer/internal/par"
)

// ErrContextFull is returned when a decoder is fed past the model's block size.
var ErrContextFull = errors.New("context is full")

// Decoder feeds one sequence to a model token by token, keeping keys and values.
// It is not safe for concurrent use; decoders of one model may run side by side
// when each has a pool of its own.
type Decoder struct{}

// NewDecoder returns an empty decoder with a cache of the model's block size.
func NewDecoder(m *Model, pool *par.Pool) (*Decoder, error) { panic("stub") }

// Reset forgets the sequence.
func (d *Decoder) Reset() { panic("stub") }

// Len returns the number of tokens in the cache.
func (d *Decoder) Len() int { panic("stub") }

// Feed appends tokens and returns the logits (V) after the last one, valid until
// the next call. It returns ErrContextFull, and feeds nothing, when the tokens
// do not fit into the block.
func (d *Decoder) Feed(tokens []int32) ([]float32, error) { panic("stub") }
