package optim

import (
	"errors"
	"fmt"
	"math"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/par"
)

// ErrDiverged is returned when gradients are no longer finite.
var ErrDiverged = errors.New("training diverged")

// ErrConfig is wrapped by every error about a Config.
var ErrConfig = errors.New("invalid optimizer configuration")

// Config holds AdamW's constants.
type Config struct {
	Beta1, Beta2, Epsilon float64
	WeightDecay           float64 // applied where Param.Decay is set
	Clip                  float64 // largest global norm of the gradients; 0 leaves them
	// Kernels are the kernels to use.
	Kernels *kernel.Set
}

func (c Config) validate() error {
	for _, f := range []struct {
		name  string
		value float64
		ok    bool
	}{
		{"beta1", c.Beta1, c.Beta1 >= 0 && c.Beta1 < 1},
		{"beta2", c.Beta2, c.Beta2 >= 0 && c.Beta2 < 1},
		{"epsilon", c.Epsilon, c.Epsilon > 0},
		{"weight decay", c.WeightDecay, c.WeightDecay >= 0},
		{"clip", c.Clip, c.Clip >= 0},
	} {
		if !f.ok || math.IsInf(f.value, 0) {
			return fmt.Errorf("%w: %s is %v", ErrConfig, f.name, f.value)
		}
	}
	return nil
}

// pieceSize is the number of elements that one task updates. Sums of squares are
// taken by piece and added in order, so the norm does not depend on the workers.
const pieceSize = 1 << 14

// piece is a part of one parameter.
type piece struct {
	p, grad, m, v []float32
	decay         bool
}

// AdamW is the optimizer of Loshchilov and Hutter, "Decoupled Weight Decay
// Regularization" (arXiv:1711.05101). It allocates when made and never after.
type AdamW struct {
	cfg    Config
	set    *kernel.Set
	pool   *par.Pool
	m, v   [][]float32
	pieces []piece
	sums   []float64
	steps  int64

	decayed, plain [9]float32
	measure, apply func(worker, task int)
}

// New returns an optimizer over params, whose gradients must be enabled.
func New(params []gpt.Param, pool *par.Pool, cfg Config) (*AdamW, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Kernels == nil {
		return nil, fmt.Errorf("%w: no kernels", ErrConfig)
	}
	o := &AdamW{cfg: cfg, set: cfg.Kernels, pool: pool}
	for _, p := range params {
		if len(p.Grad) != len(p.Data) {
			return nil, fmt.Errorf("%w: %s has %d gradients for %d weights", ErrConfig, p.Name, len(p.Grad), len(p.Data))
		}
		m, v := gpt.Alloc(len(p.Data)), gpt.Alloc(len(p.Data))
		o.m, o.v = append(o.m, m), append(o.v, v)
		for i := 0; i < len(p.Data); i += pieceSize {
			j := min(i+pieceSize, len(p.Data))
			o.pieces = append(o.pieces, piece{p: p.Data[i:j], grad: p.Grad[i:j], m: m[i:j], v: v[i:j], decay: p.Decay})
		}
	}
	o.sums = make([]float64, len(o.pieces))
	o.measure = func(_, task int) { o.sums[task] = float64(o.set.SumSquares(o.pieces[task].grad)) }
	o.apply = func(_, task int) {
		x, c := &o.pieces[task], &o.plain
		if x.decay {
			c = &o.decayed
		}
		o.set.Update(x.p, x.grad, x.m, x.v, c)
	}
	return o, nil
}

// Step applies one update with learning rate lr and returns the global norm of
// the gradients before clipping. When the norm is NaN or infinite nothing is
// updated and the error wraps ErrDiverged.
func (o *AdamW) Step(lr float64) (norm float64, err error) {
	o.pool.Run(len(o.pieces), o.measure)
	for _, s := range o.sums {
		norm += s
	}
	norm = math.Sqrt(norm)
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return norm, fmt.Errorf("%w: gradient norm is %v at step %d", ErrDiverged, norm, o.steps+1)
	}
	scale := 1.0
	if o.cfg.Clip > 0 && norm > o.cfg.Clip {
		scale = o.cfg.Clip / norm
	}
	o.steps++
	t := float64(o.steps)
	constants := kernel.AdamW{
		Beta1: float32(o.cfg.Beta1), OneMinusBeta1: float32(1 - o.cfg.Beta1),
		Beta2: float32(o.cfg.Beta2), OneMinusBeta2: float32(1 - o.cfg.Beta2),
		GradScale: float32(scale), Decay: 1,
		Step:    float32(lr / (1 - math.Pow(o.cfg.Beta1, t))),
		InvSqrt: float32(1 / math.Sqrt(1-math.Pow(o.cfg.Beta2, t))),
		Epsilon: float32(o.cfg.Epsilon),
	}
	o.plain = constants.Fields()
	constants.Decay = float32(1 - float64(lr*o.cfg.WeightDecay)) // not fused: equal on every architecture
	o.decayed = constants.Fields()
	o.pool.Run(len(o.pieces), o.apply)
	return norm, nil
}

// Steps returns the number of updates so far.
func (o *AdamW) Steps() int64 { return o.steps }

// SetSteps restores the number of updates, for resuming.
func (o *AdamW) SetSteps(n int64) { o.steps = n }

// Moments returns the first and second moments of parameter i, the optimizer's
// own slices: a checkpoint reads and restores them.
func (o *AdamW) Moments(i int) (m, v []float32) { return o.m[i], o.v[i] }
