package optim

import (
	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/par"
)

// Config holds AdamW's constants.
type Config struct {
	Beta1, Beta2, Epsilon float64
	WeightDecay           float64 // applied where Param.Decay is set
	Clip                  float64 // largest global norm of the gradients; 0 leaves them
}

// AdamW is the optimizer of Loshchilov and Hutter, "Decoupled Weight Decay
// Regularization" (arXiv:1711.05101).
type AdamW struct{}

// New returns an optimizer over params, whose gradients must be enabled.
func New(params []gpt.Param, pool *par.Pool, cfg Config) (*AdamW, error) { panic("stub") }

// Step applies one update with learning rate lr and returns the global norm of
// the gradients before clipping. When the norm is NaN or infinite nothing is
// updated and the error wraps ErrDiverged.
func (o *AdamW) Step(lr float64) (norm float64, err error) { panic("stub") }

// Steps returns the number of updates so far.
func (o *AdamW) Steps() int64 { panic("stub") }

// SetSteps restores the number of updates, for resuming.
func (o *AdamW) SetSteps(n int64) { panic("stub") }

// Moments returns the first and second moments of parameter i, the optimizer's
// own slices: a checkpoint reads and restores them.
func (o *AdamW) Moments(i int) (m, v []float32) { panic("stub") }
