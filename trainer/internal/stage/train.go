package stage

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/progress"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// How Train treats a checkpoint that it finds.
const (
	ResumeAuto    = "auto"    // go on from it, or begin when there is none
	ResumeNever   = "never"   // begin anew; the first save replaces it
	ResumeRequire = "require" // go on from it, or fail
)

// TrainOptions say what Train does. Take them from DefaultTrain.
type TrainOptions struct {
	RunDir string // what Prepare wrote
	From   string // Hugging Face GPT-2 directory to go on from; "" trains from scratch
	Model  gpt.Config
	Config train.Config
	Resume string

	EvalBatches int // held-out batches of each evaluation; 0 is all
	LogInterval int // steps between rows of the loss history, besides evaluations

	FlatEvals int           // stop when so many evaluations are flat; 0 never
	FlatDelta float64       // nats within which they are
	Patience  int           // stop when the best is so many evaluations old; 0 never
	MaxTime   time.Duration // stop after; 0 never

	Threads int
	ISA     string       // of the kernels; "" chooses the best
	Host    []train.Fact // recorded beside what Train knows itself

	Keep     Keep          // copies of checkpoints in the store
	RunID    string        // names them; "" is the name of the run directory
	Progress progress.Sink // may be nil
	Now      func() time.Time
	Log      *slog.Logger
}

// DefaultTrain returns the options of a nano model from scratch.
func DefaultTrain() TrainOptions {
	m, _ := gpt.Preset("nano") // exists: a test says so
	return TrainOptions{
		Model: m, Config: train.Default(), Resume: ResumeAuto,
		EvalBatches: 50, LogInterval: 10, FlatDelta: 0.001, Threads: 1,
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
}

// TrainReport is what Train did.
type TrainReport struct {
	RunDir     string `json:"run_dir"`
	Step       int    `json:"step"`
	TotalSteps int    `json:"total_steps"`
	Resumed    int    `json:"resumed_at"` // step at which this process began
	Finished   bool   `json:"finished"`
	StopReason string `json:"stop_reason,omitempty"`

	Loss     float64  `json:"loss"`      // of the last step, nats per token
	EvalLoss *float64 `json:"eval_loss"` // of the last evaluation
	BestLoss float64  `json:"best_loss"`
	BestStep int      `json:"best_step"`

	Parameters      int64        `json:"parameters"`
	Tokens          int64        `json:"tokens"`
	Seconds         float64      `json:"seconds"`
	TokensPerSecond float64      `json:"tokens_per_second"` // of this process
	BestDigest      string       `json:"best_digest"`       // sha256:<hex> of best/model.safetensors
	LastDigest      string       `json:"last_digest"`
	Host            []train.Fact `json:"host"`
}

// Train trains a model on a run directory's data and leaves it in RUN/best and
// RUN/last. It goes on from RUN/last when that belongs to the same run, and does
// nothing when that has reached its end. When ctx ends, the step is finished and
// saved, and the error wraps train.ErrInterrupted.
func Train(ctx context.Context, opts TrainOptions) (TrainReport, error) {
	t := &training{opts: opts}
	defer t.close()
	if err := t.inputs(); err != nil {
		return TrainReport{}, fmt.Errorf("train: %w", err)
	}
	if err := t.validate(ctx); err != nil {
		return TrainReport{}, fmt.Errorf("train: %w", err)
	}
	err := t.act(ctx)
	report, reportErr := t.write()
	if err == nil {
		err = reportErr
	}
	if err != nil {
		return report, fmt.Errorf("train: %w", err)
	}
	return report, nil
}

// training is one run of Train.
type training struct {
	opts    TrainOptions
	kernels *kernel.Set
	data    *trainData
	model   gpt.Config
	base    string // digest of what training begins from, or "scratch"
	lock    *runLock
	kept    *copier // nil keeps none

	identity []train.Fact
	host     []train.Fact
	record   train.Record // of the checkpoint found
	found    bool
	state    train.State // where the run stands
}

// inputs opens the data and reads what is known of the model.
func (t *training) inputs() error {
	o := &t.opts
	if o.RunDir == "" {
		return exitcode.Errorf(exitcode.Usage, "no run directory: set run-dir")
	}
	var err error
	if t.kernels, err = kernel.Choose(o.ISA); err != nil {
		return err
	}
	if t.lock, err = lockRun(o.RunDir); err != nil {
		return err
	}
	if t.data, err = openTrainData(o.RunDir); err != nil {
		return err
	}
	return t.readModel()
}

// validate checks what can be said without data and model.
func (o *TrainOptions) validate() error {
	if err := o.Config.Validate(); err != nil {
		return err
	}
	switch {
	case o.Resume != ResumeAuto && o.Resume != ResumeNever && o.Resume != ResumeRequire:
		return exitcode.Errorf(exitcode.Usage, "resume is %q, want %s, %s or %s", o.Resume, ResumeAuto, ResumeNever, ResumeRequire)
	case o.EvalBatches < 0 || o.LogInterval < 0 || o.FlatEvals < 0 || o.Patience < 0 || o.MaxTime < 0:
		return exitcode.Errorf(exitcode.Usage, "eval-batches, log-interval, stop-flat, patience and max-time want 0 or more")
	case o.FlatEvals == 1:
		return exitcode.Errorf(exitcode.Usage, "stop-flat is 1, want 0 or at least 2 evaluations to compare")
	case o.Threads < 1:
		return exitcode.Errorf(exitcode.Usage, "threads is %d, want 1 or more", o.Threads)
	case o.Config.Workers != 1:
		return exitcode.Errorf(exitcode.Usage, "workers is %d: this trainer runs one; use threads for more cores", o.Config.Workers)
	}
	return nil
}

// validate checks settings, data and checkpoint against each other before
// anything large is allocated.
func (t *training) validate(ctx context.Context) error {
	o := &t.opts
	if err := o.validate(); err != nil {
		return err
	}
	if o.Config.BlockSize > t.model.BlockSize {
		return exitcode.Errorf(exitcode.Usage, "block is %d, the model's positions end at %d", o.Config.BlockSize, t.model.BlockSize)
	}
	if err := t.model.Validate(); err != nil {
		return err
	}
	if v := t.data.meta.VocabSize; v > t.model.VocabSize {
		return exitcode.Errorf(exitcode.BadInput, "%s has %d tokens, the model of %s knows %d: prepare the data with the model's tokenizer",
			filepath.Join(o.RunDir, tokenizerFile), v, o.From, t.model.VocabSize)
	}
	if o.From != "" {
		if err := t.checkTokenizer(); err != nil {
			return err
		}
	}
	if err := t.data.build(o.Config, o.EvalBatches); err != nil {
		return err
	}
	for _, w := range append(o.Config.Warnings(), t.data.warnings...) {
		o.Log.Warn(w)
	}
	return t.openCheckpoint(ctx)
}

// openCheckpoint finds where the run stands.
func (t *training) openCheckpoint(ctx context.Context) error {
	o := &t.opts
	var err error
	if t.identity, err = t.describe(); err != nil {
		return err
	}
	t.host = t.describeHost()
	if err := train.Recover(o.RunDir); err != nil {
		return err
	}
	id := o.RunID
	if id == "" {
		id = filepath.Base(o.RunDir)
	}
	t.kept = newCopier(o.Keep, o.RunDir, id, o.Now, o.Log)
	if o.Resume == ResumeNever {
		return t.kept.look(ctx)
	}
	if err := t.kept.restore(ctx); err != nil {
		return err
	}
	if t.record, t.found, err = train.OpenCheckpoint(o.RunDir, t.identity); err != nil {
		return err
	}
	if !t.found && o.Resume == ResumeRequire {
		return exitcode.Errorf(exitcode.BadInput, "no checkpoint %s to resume: use resume %s", filepath.Join(o.RunDir, train.LastDir), ResumeAuto)
	}
	t.warnOfOtherKernels()
	return nil
}

// act trains, unless the run has reached its end.
func (t *training) act(ctx context.Context) error {
	if t.found && t.record.Finished {
		t.opts.Log.Info("this run is finished: nothing to train", "step", t.record.Step, "of", t.record.TotalSteps, "reason", t.record.StopReason)
		t.state = t.record.State()
		return nil
	}
	return t.run(ctx)
}

// write reports what the hooks have written.
func (t *training) write() (TrainReport, error) {
	s := t.state
	r := TrainReport{
		RunDir: t.opts.RunDir, Step: s.Step, TotalSteps: t.opts.Config.MaxIters, Resumed: t.record.Step,
		Finished: s.Done() && !s.Paused, StopReason: s.StopReason,
		Loss: s.Loss, BestLoss: s.BestLoss, BestStep: s.BestStep,
		Parameters: t.model.ParamCount(), Tokens: s.Tokens, Seconds: s.Elapsed.Seconds(), Host: t.host,
	}
	if loss, ok := s.EvalLoss(); ok {
		r.EvalLoss = &loss
	}
	if s.Session > 0 {
		r.TokensPerSecond = float64(s.Tokens-t.record.Tokens) / s.Session.Seconds()
	}
	var err error
	if r.BestDigest, err = modelDigest(filepath.Join(t.opts.RunDir, train.BestDir)); err != nil {
		return r, err
	}
	r.LastDigest, err = modelDigest(filepath.Join(t.opts.RunDir, train.LastDir))
	return r, err
}

func (t *training) close() {
	t.data.close()
	t.lock.release()
}
