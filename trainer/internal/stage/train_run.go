package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/hf"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/optim"
	"github.com/trainyard/trainyard/trainer/internal/par"
	"github.com/trainyard/trainyard/trainer/internal/progress"
	"github.com/trainyard/trainyard/trainer/internal/rng"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// fromScratch stands in the record where a digest would.
const fromScratch = "scratch"

// readModel fills in the model's configuration: that of From, or the options'
// with the vocabulary of the data.
func (t *training) readModel() error {
	o := &t.opts
	t.base, t.model = fromScratch, o.Model
	if o.From == "" {
		t.model.VocabSize, t.model.BlockSize = t.data.meta.VocabSize, o.Config.BlockSize
	} else {
		var err error
		if t.model, err = hf.ReadConfig(o.From); err != nil {
			return exitcode.Errorf(exitcode.BadInput, "from: %w", err)
		}
		if t.base, err = train.FileDigest(filepath.Join(o.From, hf.WeightsFile)); err != nil {
			return exitcode.Errorf(exitcode.BadInput, "from: %w", err)
		}
	}
	p := float32(o.Config.Dropout)
	t.model.EmbdDropout, t.model.AttnDropout, t.model.ResidDropout = p, p, p
	return nil
}

// describe returns what decides the weights.
func (t *training) describe() ([]train.Fact, error) {
	m := t.model
	facts := append(t.opts.Config.Identity(),
		train.NewFact("from", t.base),
		train.NewFact("vocab", m.VocabSize), train.NewFact("positions", m.BlockSize),
		train.NewFact("layers", m.Layers), train.NewFact("heads", m.Heads), train.NewFact("channels", m.Channels),
		train.NewFact("inner", m.Inner), train.NewFact("activation", m.Activation), train.NewFact("norm-epsilon", m.Epsilon),
	)
	return append(facts, t.data.digests...), nil
}

// describeHost returns what does not decide them.
func (t *training) describeHost() []train.Fact {
	facts := []train.Fact{
		train.NewFact("isa", t.kernels.ISA()), train.NewFact("threads", t.opts.Threads),
		train.NewFact("gomaxprocs", runtime.GOMAXPROCS(0)), train.NewFact("go", runtime.Version()),
		train.NewFact("platform", runtime.GOOS+"/"+runtime.GOARCH),
	}
	if t.opts.From != "" {
		facts = append(facts, train.NewFact("from-dir", t.opts.From))
	}
	return append(facts, t.opts.Host...)
}

// warnOfOtherKernels tells when a resumed run cannot have the same bits.
func (t *training) warnOfOtherKernels() {
	if !t.found {
		return
	}
	was, ok := t.record.Fact("isa")
	now := string(t.kernels.ISA())
	if ok && (was == string(kernel.Portable)) != (now == string(kernel.Portable)) {
		t.opts.Log.Warn("the checkpoint was made by other kernels: the result will differ in its last bits", "was", was, "now", now)
	}
}

// run builds model, optimizer and hooks and runs the loop.
func (t *training) run(ctx context.Context) (err error) {
	o := &t.opts
	pool := par.NewPool(o.Threads)
	defer pool.Close()
	model, err := t.load()
	if err != nil {
		return err
	}
	session, err := gpt.NewSession(model, pool, gpt.SessionOptions{MaxB: o.Config.BatchSize, MaxT: t.data.length, Train: true, Kernels: t.kernels})
	if err != nil {
		return err
	}
	opt, err := optim.New(model.Params(), pool, o.Config.Optimizer(t.kernels))
	if err != nil {
		return err
	}
	loop, err := train.New(o.Config, train.Engine{Session: session, AdamW: opt}, t.data.feed, t.data.held, o.Now)
	if err != nil {
		return err
	}
	last := filepath.Join(o.RunDir, train.LastDir)
	if t.found {
		if err := loadMoments(filepath.Join(last, momentsFile), model.Params(), opt); err != nil {
			return err
		}
		if err := loop.Resume(t.record); err != nil {
			return err
		}
		o.Log.Info("resuming", "checkpoint", last, "step", t.record.Step, "of", t.record.TotalSteps)
	}
	history, err := train.OpenHistory(filepath.Join(o.RunDir, train.HistoryName), t.record.Step)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, history.Close()) }()
	history.Attach(loop, o.LogInterval)
	t.attachPolicies(loop)
	saver := train.Checkpointer{
		Run:      o.RunDir,
		Model:    t.saveModel(model),
		Moments:  func(dir string) error { return saveMoments(filepath.Join(dir, momentsFile), model.Params(), opt) },
		Data:     t.data.feed,
		Finite:   func() error { return finite(model.Params()) },
		Identity: t.identity, Host: t.host,
	}
	t.kept.attach(loop, &saver)
	saver.Attach(loop, o.Config.SaveInterval)
	if o.Progress != nil {
		t.attachProgress(loop)
	}
	t.state, err = loop.Run(ctx)
	return err
}

// load returns the model with the weights that training goes on from.
func (t *training) load() (*gpt.Model, error) {
	if !t.found && t.opts.From != "" {
		m, err := hf.Load(t.opts.From)
		if err != nil {
			return nil, exitcode.Errorf(exitcode.BadInput, "from: %w", err)
		}
		return m, m.SetDropout(t.model.EmbdDropout, t.model.AttnDropout, t.model.ResidDropout)
	}
	m, err := gpt.New(t.model)
	if err != nil {
		return nil, err
	}
	if t.found {
		return m, hf.LoadInto(filepath.Join(t.opts.RunDir, train.LastDir), m)
	}
	m.Init(rng.New(t.opts.Config.Seed, rng.Init))
	return m, nil
}

func (t *training) saveModel(m *gpt.Model) func(dir string) error {
	return func(dir string) error {
		var opts hf.SaveOptions
		if id, ok := t.data.tok.EndOfText(); ok {
			opts.EndOfText = &id
		}
		if _, err := hf.Save(dir, m, opts); err != nil {
			return err
		}
		return atomicfile.WriteFile(filepath.Join(dir, tokenizerFile), func(w io.Writer) error {
			_, err := w.Write(t.data.tokenizer)
			return err
		})
	}
}

func (t *training) attachPolicies(l *train.Loop) {
	train.StopWhenFlat(l, t.opts.FlatEvals, t.opts.FlatDelta)
	train.StopWithoutImprovement(l, t.opts.Patience)
	train.StopAfter(l, t.opts.MaxTime)
}

// attachProgress reports steps and evaluations, and the end after it was saved.
func (t *training) attachProgress(l *train.Loop) {
	report := func(final bool) train.Hook {
		return func(ctx context.Context, s *train.State) error {
			t.opts.Progress.Report(ctx, t.status(s, final))
			return nil
		}
	}
	l.OnStep("progress", train.PriorityProgress, func(ctx context.Context, s *train.State) error {
		if s.WillEvaluate() {
			return nil
		}
		return report(false)(ctx, s)
	})
	l.OnEval("progress", train.PriorityProgress, report(false))
	l.OnEnd("progress", train.PriorityProgress, report(true))
}

func (t *training) status(s *train.State, final bool) progress.Status {
	p := progress.Status{
		Step: s.Step, TotalSteps: s.Total, Resumed: t.record.Step, Evaluated: s.Evaluated && !final, Final: final, StopReason: s.StopReason,
		Time:    t.opts.Now(),
		HasLoss: s.Step > 0, Loss: s.Loss, LearningRate: s.LearningRate, GradNorm: s.GradNorm,
		BestLoss: s.BestLoss, BestStep: s.BestStep,
		Tokens: s.Tokens, StepTokens: s.StepTokens, TokensPerEpoch: t.data.epochToken,
		Session: s.Session, SessionTokens: s.Tokens - t.record.Tokens,
	}
	p.EvalLoss, p.HasEval = s.EvalLoss()
	return p
}

// modelDigest returns the digest of a model directory's weights, or "" when
// there is no such directory.
func modelDigest(dir string) (string, error) {
	sum, err := train.FileDigest(filepath.Join(dir, hf.WeightsFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("digest: %w", err)
	}
	return sum, nil
}
