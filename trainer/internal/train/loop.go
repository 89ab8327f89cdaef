package train

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/rng"
)

// Loop runs one training. It is not safe for concurrent use.
type Loop struct {
	cfg   Config
	model Stepper
	data  Source
	held  Evaluation
	now   func() time.Time

	dropoutKey uint64
	hooks      hooks
	state      State
	micro      []gpt.Batch // of one update; the slices are kept
	began      time.Time
	earlier    time.Duration // Elapsed when this process began
}

// New returns a loop. held may be nil: then nothing is evaluated, and best is
// never saved. now is the clock, time.Now outside of tests.
func New(cfg Config, model Stepper, data Source, held Evaluation, now func() time.Time) (*Loop, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Loop{
		cfg: cfg, model: model, data: data, held: held, now: now,
		dropoutKey: rng.New(cfg.Seed, rng.Dropout).Uint64(),
		state:      State{Total: cfg.MaxIters},
		micro:      make([]gpt.Batch, cfg.Accumulation),
	}, nil
}

// Run trains from the current step to the last one, or until a hook stops the
// run or ctx ends. When ctx ends, the step in progress is finished, the OnEnd
// hooks run (the checkpoint's among them), and the error wraps ErrInterrupted
// and the context's cause.
func (l *Loop) Run(ctx context.Context) (State, error) {
	l.began, l.earlier = l.now(), l.state.Elapsed
	err := l.run(ctx)
	l.tick()
	return l.state, err
}

func (l *Loop) run(ctx context.Context) error {
	// Hooks finish what they began: a signal must not cut a checkpoint short.
	calm := context.WithoutCancel(ctx)
	s := &l.state
	if err := l.hooks.run(calm, onStart, s); err != nil {
		return err
	}
	if s.Step == 0 && ctx.Err() == nil {
		// The loss before training is the yardstick: about ln V when all is well.
		if err := l.evaluate(calm); err != nil {
			return err
		}
	}
	for !s.Done() && ctx.Err() == nil {
		if err := l.update(); err != nil {
			return err
		}
		if err := l.hooks.run(calm, onStep, s); err != nil {
			return err
		}
		if s.WillEvaluate() {
			if err := l.evaluate(calm); err != nil {
				return err
			}
		}
	}
	if err := l.hooks.run(calm, onEnd, s); err != nil {
		return err
	}
	if !s.Done() {
		return fmt.Errorf("%w after step %d of %d: %w", ErrInterrupted, s.Step, s.Total, context.Cause(ctx))
	}
	return nil
}

// update draws all micro-batches of a step, runs them and applies the gradients.
func (l *Loop) update() error {
	s := &l.state
	targets := 0
	for i := range l.micro {
		if err := l.data.Next(&l.micro[i]); err != nil {
			return fmt.Errorf("batch %d of step %d: %w", i+1, s.Step+1, err)
		}
		targets += countTargets(l.micro[i])
	}
	// The scale needs the count of the whole step: sequences differ in how many
	// of their targets count, and the mean is over targets, not over batches.
	if targets == 0 {
		return fmt.Errorf("%w: no target counts in step %d", ErrData, s.Step+1)
	}
	sum, tokens := 0.0, 0
	for i, b := range l.micro {
		part, n, err := l.model.Train(b, gpt.TrainOptions{
			GradScale:  float32(1 / float64(targets)),
			Accumulate: i > 0,
			DropoutKey: l.key(s.Step, i),
		})
		if err != nil {
			return fmt.Errorf("step %d: %w", s.Step+1, err)
		}
		if n != countTargets(b) {
			return fmt.Errorf("step %d: the model counted %d targets of %d", s.Step+1, n, countTargets(b))
		}
		sum += part
		tokens += b.B * b.T
	}
	loss := sum / float64(targets)
	if bad(loss) {
		return diverged("loss", s.Step+1, loss)
	}
	lr := l.cfg.schedule().Rate(s.Step)
	norm, err := l.model.Step(lr)
	if bad(norm) {
		return diverged("gradient norm", s.Step+1, norm)
	}
	if err != nil {
		return fmt.Errorf("step %d: %w", s.Step+1, err)
	}
	s.Step++
	s.Loss, s.LearningRate, s.GradNorm, s.StepTokens = loss, lr, norm, tokens
	s.Tokens += int64(tokens)
	s.Evaluated, s.Improved = false, false
	s.EvalDue = s.Step%l.cfg.EvalInterval == 0
	l.tick()
	return nil
}

// evaluate takes the mean over all held-out targets.
func (l *Loop) evaluate(ctx context.Context) error {
	s := &l.state
	if l.held == nil {
		// Hooks that save at evaluations still have to save at the last step.
		return l.hooks.run(ctx, onEval, s)
	}
	sum, targets := 0.0, 0
	for b, err := range l.held.Batches() {
		if err != nil {
			return fmt.Errorf("evaluation at step %d: %w", s.Step, err)
		}
		part, n, err := l.model.Loss(b, nil)
		if err != nil {
			return fmt.Errorf("evaluation at step %d: %w", s.Step, err)
		}
		sum += part
		targets += n
	}
	if targets == 0 {
		return fmt.Errorf("%w: no held-out target counts", ErrData)
	}
	loss := sum / float64(targets)
	if bad(loss) {
		return diverged("held-out loss", s.Step, loss)
	}
	s.record(loss)
	l.tick()
	return l.hooks.run(ctx, onEval, s)
}

// key names the dropout masks of one micro-batch: a function of seed, step and
// micro-batch alone.
func (l *Loop) key(step, micro int) uint64 {
	return kernel.MixKey(kernel.MixKey(l.dropoutKey, uint64(step)), uint64(micro))
}

func (l *Loop) tick() {
	l.state.Session = l.now().Sub(l.began)
	l.state.Elapsed = l.earlier + l.state.Session
}

func countTargets(b gpt.Batch) int {
	n := 0
	for _, t := range b.Targets {
		if t != gpt.Ignore {
			n++
		}
	}
	return n
}

func bad(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }

func diverged(what string, step int, value float64) error {
	return fmt.Errorf("%w at step %d: %s is %v: lower lr, raise warmup or set clip", ErrDiverged, step, what, value)
}
