package gpt

import (
	"errors"
	"fmt"

	"github.com/trainyard/trainyard/trainer/internal/kernel"
)

// ErrMemory is wrapped when a session would not fit into the machine: to try
// would end the process without a word about what to change.
var ErrMemory = errors.New("not enough memory")

// checkMemory compares what a session needs with the bytes that the machine has,
// 0 when those are unknown.
func checkMemory(cfg Config, opts SessionOptions, machine uint64) error {
	need := sessionBytes(cfg, opts)
	if machine == 0 || need <= float64(machine) {
		return nil
	}
	const gib = 1 << 30
	return fmt.Errorf("%w: a model of %d parameters with batches of %d x %d tokens needs %.1f GiB, the machine has %.1f: use smaller batches (and more accumulation), shorter ones, or a smaller model",
		ErrMemory, cfg.ParamCount(), opts.MaxB, opts.MaxT, need/gib, float64(machine)/gib)
}

// sessionBytes returns the memory of a model and its session: weights and
// activations, to train also gradients and the optimizer's two moments. Of large
// batches the logits may be a little less.
func sessionBytes(cfg Config, opts SessionOptions) float64 {
	rows, c, inner := float64(opts.MaxB)*float64(opts.MaxT), float64(cfg.Channels), float64(kernel.Stride(cfg.Inner))
	layers, copies, row := 1.0, 1.0, 4*c+inner+2
	if opts.Train {
		layers, copies, row = float64(cfg.Layers), 4, row+4*c
	}
	row += layers*(6*c+inner+4+2*float64(cfg.Heads)) + 4 // see layerMemory
	return 4 * (copies*cfg.paramCountFloat() + rows*row + min(rows*float64(kernel.Stride(cfg.VocabSize)), logitBytes/4))
}
