package train

import (
	"fmt"
	"math"

	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/optim"
)

// Config is what a run does. Fields marked "observes" change no weight.
type Config struct {
	MaxIters int // updates in all

	BatchSize    int // sequences of one micro-batch on one worker
	Workers      int // data-parallel workers
	Accumulation int // micro-batches of one update
	Global       int // BatchSize*Workers*Accumulation when not 0
	BlockSize    int // tokens of a sequence

	LearningRate    float64 // peak
	MinLearningRate float64 // at the end of the cosine
	Warmup          int     // updates of linear warm-up
	WeightDecay     float64
	Beta1, Beta2    float64
	Epsilon         float64
	Clip            float64 // largest gradient norm; 0 does not clip
	Dropout         float64 // probability, in all three places of the model
	Seed            uint64

	EvalInterval int // updates between evaluations; observes
	SaveInterval int // updates between checkpoints, besides those at evaluations; 0: none; observes
}

// Default returns the configuration that the flags start from.
func Default() Config {
	return Config{
		MaxIters: 300, BatchSize: 16, Workers: 1, Accumulation: 1, BlockSize: 128,
		LearningRate: 1e-3, MinLearningRate: 1e-4, Warmup: 20,
		WeightDecay: 0.1, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, Clip: 1,
		Seed: 1337, EvalInterval: 100,
	}
}

// maxStepTokens bounds the tokens of an update, all of which are drawn before it
// begins; GPT-3's had 3.2 million.
const maxStepTokens = 1 << 24

// Validate names the first field that no run can have.
func (c Config) Validate() error {
	for _, f := range []struct {
		name  string
		value int
		least int
	}{
		{"max-iters", c.MaxIters, 1}, {"batch-size", c.BatchSize, 1}, {"workers", c.Workers, 1},
		{"accumulation", c.Accumulation, 1}, {"global-batch", c.Global, 0}, {"block", c.BlockSize, 1},
		{"warmup", c.Warmup, 0}, {"eval-interval", c.EvalInterval, 1}, {"save-interval", c.SaveInterval, 0},
	} {
		if f.value < f.least || f.value > math.MaxInt32 {
			return fmt.Errorf("%w: %s is %d, want %d or more", ErrConfig, f.name, f.value, f.least)
		}
	}
	// Floats, because the product may be more than an int holds.
	if n := float64(c.BatchSize) * float64(c.Workers) * float64(c.Accumulation) * float64(c.BlockSize); n > maxStepTokens {
		return fmt.Errorf("%w: batch-size %d x workers %d x accumulation %d x block %d is %.0f tokens in an update, want at most %d",
			ErrConfig, c.BatchSize, c.Workers, c.Accumulation, c.BlockSize, n, maxStepTokens)
	}
	if got := c.SequencesPerStep(); c.Global != 0 && c.Global != got {
		return fmt.Errorf("%w: global-batch is %d, but batch-size %d x workers %d x accumulation %d is %d",
			ErrConfig, c.Global, c.BatchSize, c.Workers, c.Accumulation, got)
	}
	if c.Warmup > c.MaxIters {
		return fmt.Errorf("%w: warmup is %d, longer than max-iters %d", ErrConfig, c.Warmup, c.MaxIters)
	}
	for _, f := range []struct {
		name    string
		value   float64
		ok      bool
		allowed string
	}{
		{"lr", c.LearningRate, c.LearningRate > 0 && c.LearningRate <= 1, "more than 0 and at most 1"},
		{"min-lr", c.MinLearningRate, c.MinLearningRate >= 0 && c.MinLearningRate <= c.LearningRate, "0 to the peak rate"},
		{"weight-decay", c.WeightDecay, c.WeightDecay >= 0 && c.WeightDecay <= 10, "0 to 10"},
		{"beta1", c.Beta1, c.Beta1 >= 0 && c.Beta1 < 1, "0 or more and less than 1"},
		{"beta2", c.Beta2, c.Beta2 >= 0 && c.Beta2 < 1, "0 or more and less than 1"},
		{"epsilon", c.Epsilon, c.Epsilon > 0 && c.Epsilon < 1, "more than 0 and less than 1"},
		{"clip", c.Clip, c.Clip >= 0 && !math.IsInf(c.Clip, 0), "0 or more"},
		{"dropout", c.Dropout, c.Dropout >= 0 && c.Dropout < 1, "0 or more and less than 1"},
	} {
		if !f.ok {
			return fmt.Errorf("%w: %s is %v, want %s", ErrConfig, f.name, f.value, f.allowed)
		}
	}
	return nil
}

// Warnings tells what is allowed but probably not meant.
func (c Config) Warnings() []string {
	var w []string
	if rest := c.MaxIters % c.EvalInterval; rest != 0 {
		w = append(w, fmt.Sprintf("max-iters %d is not a multiple of eval-interval %d: the last evaluation, at step %d, comes %d steps after the one before",
			c.MaxIters, c.EvalInterval, c.MaxIters, rest))
	}
	return w
}

// SequencesPerStep returns the sequences of one update over all workers.
func (c Config) SequencesPerStep() int { return c.BatchSize * c.Workers * c.Accumulation }

func (c Config) schedule() optim.Schedule {
	return optim.Schedule{Peak: c.LearningRate, Min: c.MinLearningRate, Warmup: c.Warmup, Total: c.MaxIters}
}

// Optimizer returns AdamW's part of the configuration.
func (c Config) Optimizer(set *kernel.Set) optim.Config {
	return optim.Config{Kernels: set, Beta1: c.Beta1, Beta2: c.Beta2, Epsilon: c.Epsilon, WeightDecay: c.WeightDecay, Clip: c.Clip}
}

// Identity returns the fields that decide the weights, by their flags' names. A
// checkpoint may only be resumed by a run with equal ones.
func (c Config) Identity() []Fact {
	return []Fact{
		fact("max-iters", c.MaxIters), fact("batch-size", c.BatchSize), fact("workers", c.Workers),
		fact("accumulation", c.Accumulation), fact("block", c.BlockSize),
		fact("lr", c.LearningRate), fact("min-lr", c.MinLearningRate), fact("warmup", c.Warmup),
		fact("weight-decay", c.WeightDecay), fact("beta1", c.Beta1), fact("beta2", c.Beta2),
		fact("epsilon", c.Epsilon), fact("clip", c.Clip), fact("dropout", c.Dropout), fact("seed", c.Seed),
	}
}
