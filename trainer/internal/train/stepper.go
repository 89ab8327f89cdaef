package train

import (
	"iter"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/optim"
)

// Stepper is a model under its optimizer.
type Stepper interface {
	// Train leaves or adds gradients; see gpt.Session.Train.
	Train(b gpt.Batch, o gpt.TrainOptions) (sum float64, n int, err error)
	// Loss runs without dropout and changes nothing; see gpt.Session.Loss.
	Loss(b gpt.Batch, perToken []float32) (sum float64, n int, err error)
	// Step applies the gradients and returns their norm; see optim.AdamW.Step.
	Step(lr float64) (norm float64, err error)
}

// Engine makes a Stepper of a session and the optimizer of its model.
type Engine struct {
	*gpt.Session
	*optim.AdamW
}

var _ Stepper = Engine{}

// Source gives training batches; dataset.Feed is one. Which batch comes next is a
// function of its state alone, so that a restored source goes on with the same ones.
type Source interface {
	// Next fills b, whose slices it may keep.
	Next(b *gpt.Batch) error
	State() ([]byte, error)
	SetState([]byte) error
}

// Evaluation gives the held-out batches, the same ones at each call. A batch is
// valid until the next one.
type Evaluation interface {
	Batches() iter.Seq2[gpt.Batch, error]
}
