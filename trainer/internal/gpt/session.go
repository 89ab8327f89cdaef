package gpt

import (
	"fmt"

	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/par"
)

// SessionOptions bound the batches that a Session takes.
type SessionOptions struct {
	MaxB, MaxT int
	Train      bool // also allocate what Train needs
	// Kernels are the kernels to use.
	Kernels *kernel.Set
}

// logitBytes bounds the logits that exist at once: the output layer runs over
// chunks of rows.
const logitBytes = 32 << 20

// layerMemory is what backward needs of a layer. Layer norms and GELU are
// recomputed: that costs less than a percent of a step and saves 6C floats a
// token.
type layerMemory struct {
	x, mid   []float32 // (M, C): residual stream before attention and before the feed-forward layer
	qkv      []float32 // (M, 3C)
	att      []float32 // (M, C): heads' outputs
	h        []float32 // M rows of Inner floats, innerLD apart: before GELU
	ln1, ln2 []float32 // (M, 2): mean and 1/deviation
	soft     []float32 // (B, H, T, 2): largest score and 1/sum of each row
}

// Session holds the activations to run batches through a model. It allocates
// when made and never after. It is not safe for concurrent use.
type Session struct {
	m    *Model
	cfg  Config
	set  *kernel.Set
	pool *par.Pool
	mul  *kernel.Multiplier
	opts SessionOptions

	layers []layerMemory
	final  []float32 // (M, C): residual stream behind the last layer
	lnf    []float32 // (M, 2)
	norm   []float32 // (M, C): output of the last layer norm that ran
	branch []float32 // (M, C): what a branch adds, or its gradient
	inner  []float32 // M rows of Inner floats, innerLD apart: GELU's output, or its gradient
	heads  []*kernel.Head

	head    []float32 // (M, C): rows that have a target, normalised; then their gradient
	rows    []int     // which rows those are
	logits  []float32 // rows of V floats, logitLD apart
	logitLD int
	innerLD int       // of layerMemory.h and inner
	rowLoss []float64 // (M)

	dres     []float32 // (M, C): gradient of the residual stream
	dqkv     []float32 // (M, 3C)
	partials []float32 // (rowChunks, 2, C): gains' and biases' gradients by chunk

	now  pass
	work operations
}

// pass is the state of the batch being run.
type pass struct {
	batch    Batch
	rows     int // M = B*T
	layer    int // of the operation that runs
	training bool
	opts     TrainOptions

	first, count int // rows of Session.rows in the present chunk of logits

	norm norm      // of the layer norm that runs
	add  []float32 // (M, C): first part of its input, where that is a sum
	site int       // of the dropout that runs
}

// norm is one layer norm of the model with its input and statistics.
type norm struct {
	gain, bias *Param
	x          []float32 // (M, C)
	stats      []float32 // (M, 2)
}

// firstNormOf is the norm before attention of layer l, or the final norm behind
// the last layer.
func (s *Session) firstNormOf(l int) norm {
	if l == len(s.layers) {
		gain, bias := s.m.finalNorm()
		return norm{gain: gain, bias: bias, x: s.final, stats: s.lnf}
	}
	t := s.m.layer(l)
	return norm{gain: &t[ln1Gain], bias: &t[ln1Bias], x: s.layers[l].x, stats: s.layers[l].ln1}
}

// secondNormOf is the norm before the feed-forward part of layer l.
func (s *Session) secondNormOf(l int) norm {
	t := s.m.layer(l)
	return norm{gain: &t[ln2Gain], bias: &t[ln2Bias], x: s.layers[l].mid, stats: s.layers[l].ln2}
}

// NewSession returns a session for batches of at most opts.MaxB x opts.MaxT.
func NewSession(m *Model, pool *par.Pool, opts SessionOptions) (*Session, error) {
	cfg := m.cfg
	if opts.MaxB < 1 || opts.MaxT < 1 || opts.MaxT > cfg.BlockSize {
		return nil, fmt.Errorf("%w: session of %d x %d tokens, want at least 1 x 1 and at most the block size %d",
			ErrBatch, opts.MaxB, opts.MaxT, cfg.BlockSize)
	}
	if err := checkMemory(cfg, opts, machineMemory()); err != nil {
		return nil, err
	}
	if opts.Kernels == nil {
		return nil, fmt.Errorf("%w: session without kernels", ErrBatch)
	}
	s := &Session{m: m, cfg: cfg, set: opts.Kernels, pool: pool, opts: opts}
	s.mul = kernel.NewMultiplier(s.set, pool)
	rows, c := opts.MaxB*opts.MaxT, cfg.Channels
	s.innerLD = kernel.Stride(cfg.Inner)
	layer := func() layerMemory {
		return layerMemory{
			x: Alloc(rows * c), mid: Alloc(rows * c), qkv: Alloc(3 * rows * c), att: Alloc(rows * c), h: Alloc(rows * s.innerLD),
			ln1: Alloc(2 * rows), ln2: Alloc(2 * rows), soft: Alloc(2 * cfg.Heads * rows),
		}
	}
	s.layers = make([]layerMemory, cfg.Layers)
	shared := layer()
	for l := range s.layers {
		// Without backward, all layers share one memory.
		s.layers[l] = shared
		if opts.Train && l > 0 {
			s.layers[l] = layer()
		}
	}
	s.final, s.lnf = Alloc(rows*c), Alloc(2*rows)
	s.norm, s.branch, s.inner = Alloc(rows*c), Alloc(rows*c), Alloc(rows*s.innerLD)
	s.head, s.rows, s.rowLoss = Alloc(rows*c), make([]int, 0, rows), make([]float64, rows)
	s.logitLD = kernel.Stride(cfg.VocabSize)
	chunks := (4*rows*s.logitLD + logitBytes - 1) / logitBytes
	s.logits = Alloc((rows + chunks - 1) / chunks * s.logitLD)
	for range pool.Workers() {
		s.heads = append(s.heads, kernel.NewHead(s.set, opts.MaxT, cfg.HeadSize(), opts.Train))
	}
	if opts.Train {
		m.EnableGrad()
		s.dres, s.dqkv = Alloc(rows*c), Alloc(3*rows*c)
		s.partials = Alloc(rowChunks * 2 * c)
	}
	s.bind()
	return s, nil
}

// Kernels returns the kernels that the session uses.
func (s *Session) Kernels() *kernel.Set { return s.set }

// Train runs forward and backward with dropout and leaves gradients in the
// model's Params. It returns the summed loss in nats and the number of
// targets that counted.
func (s *Session) Train(b Batch, opts TrainOptions) (sum float64, n int, err error) {
	if !s.opts.Train {
		return 0, 0, fmt.Errorf("%w: the session was not made for training", ErrBatch)
	}
	if err := b.validate(s.cfg, s.opts.MaxB, s.opts.MaxT, true); err != nil {
		return 0, 0, err
	}
	s.now = pass{batch: b, rows: b.B * b.T, training: true, opts: opts}
	s.forward()
	sum, n = s.lossAndBackward(nil)
	return sum, n, nil
}

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

// Loss runs forward without dropout. It returns the summed loss in nats and the
// number of targets that counted, and writes each position's loss (0 where
// ignored) to perToken, of length B*T, unless that is nil.
func (s *Session) Loss(b Batch, perToken []float32) (sum float64, n int, err error) {
	if err := b.validate(s.cfg, s.opts.MaxB, s.opts.MaxT, true); err != nil {
		return 0, 0, err
	}
	if perToken != nil && len(perToken) != b.B*b.T {
		return 0, 0, fmt.Errorf("%w: %d losses, want %d", ErrBatch, len(perToken), b.B*b.T)
	}
	s.now = pass{batch: b, rows: b.B * b.T}
	s.forward()
	sum, n = s.lossAndBackward(perToken)
	return sum, n, nil
}

// Logits runs forward without dropout and returns all logits, (B, T, V), in a
// slice that the caller owns.
func (s *Session) Logits(b Batch) ([]float32, error) {
	if err := b.validate(s.cfg, s.opts.MaxB, s.opts.MaxT, false); err != nil {
		return nil, err
	}
	s.now = pass{batch: b, rows: b.B * b.T}
	s.forward()
	out := make([]float32, s.now.rows*s.cfg.VocabSize)
	s.mul.Run(kernel.Product{
		M: s.now.rows, N: s.cfg.VocabSize, K: s.cfg.Channels,
		A: s.norm, LDA: s.cfg.Channels, B: s.m.params[wte].Data, LDB: s.cfg.Channels, TransB: true,
		C: out, LDC: s.cfg.VocabSize,
	})
	return out, nil
}
