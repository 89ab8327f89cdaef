package gpt

import "github.com/trainyard/trainyard/trainer/internal/par"

// SessionOptions bound the batches that a Session takes.
type SessionOptions struct {
	MaxB, MaxT int
	Train      bool // also allocate what Train needs
}

// Session holds the activations to run batches through a model. It allocates
// when made and never after. It is not safe for concurrent use.
type Session struct{}

// NewSession returns a session for batches of at most opts.MaxB x opts.MaxT.
func NewSession(m *Model, pool *par.Pool, opts SessionOptions) (*Session, error) { panic("stub") }

// TrainOptions steer one forward and backward pass.
type TrainOptions struct {
	// GradScale multiplies every gradient: 1/(targets that count) of the
	// whole accumulated batch makes the gradient that of the mean loss.
	GradScale float32
	// Accumulate adds to the gradients instead of replacing them.
	Accumulate bool
	// DropoutKey selects the dropout masks of this pass; a function of the
	// step and micro-batch alone, so that a resumed run draws the same.
	DropoutKey uint64
}

// Train runs forward and backward with dropout and leaves gradients in the
// model's Params. It returns the summed loss in nats and the number of
// targets that counted.
func (s *Session) Train(b Batch, opts TrainOptions) (sum float64, n int, err error) { panic("stub") }

// Loss runs forward without dropout. It returns the summed loss in nats and the
// number of targets that counted, and writes each position's loss (0 where
// ignored) to perToken, of length B*T, unless that is nil.
func (s *Session) Loss(b Batch, perToken []float32) (sum float64, n int, err error) { panic("stub") }

// Logits runs forward without dropout and returns all logits, (B, T, V), in a
// slice that the caller owns.
func (s *Session) Logits(b Batch) ([]float32, error) { panic("stub") }
