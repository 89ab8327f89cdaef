package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/hf"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/progress"
	"github.com/trainyard/trainyard/trainer/internal/stage"
)

// trainFlags are the flags of train that are not settings of its stage.
type trainFlags struct {
	machineFlags
	preset                         string
	layers, heads, channels, block int
	lr, minLR                      float64
	warmup                         int
	qa, tokenizer                  string
	vocabSize                      int
	progress                       string
	results                        string
	runID                          string
	target                         targetFlags
}

// auto is the value of a number that follows another one.
const auto = -1

func newTrain(a *App) *cobra.Command {
	o := stage.DefaultTrain()
	var f trainFlags
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a model on prepared data, or go on with it",
		Long: `Train a model on the data of a run directory, from scratch or from a Hugging Face
GPT-2 directory, and leave it in RUN/best and RUN/last.

Run it again after an interruption and it goes on from RUN/last, to the same bits
as if nothing had happened. SIGTERM and SIGINT finish the step and save.`,
		Example: `  # from scratch, on what prepare wrote
  trainer train --run-dir runs/a --preset nano --max-iters 300

  # fine-tune a model of Hugging Face's layout
  trainer train --run-dir runs/b --from ./gpt2 --lr 5e-5 --max-iters 200

  # fine-tune a model of the store, and keep checkpoints there, at most every 5 minutes
  trainer train --run-dir runs/c --store s3://models --from store:base/gpt2 --store-checkpoints 5m

  # learn a question-answer file by heart, and ask
  trainer train --run-dir runs/qa --qa examples/qa/facts.txt
  trainer sample --run-dir runs/qa --prompt "How far is the sun?"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := stage.BeginTrainResults(f.results); err != nil {
				return err
			}
			source, err := f.settle(a, cmd)
			if err != nil {
				return err
			}
			target, err := f.open(cmd.Context(), &o)
			if err != nil {
				return err
			}
			recording := a.recording(f.machineFlags)
			recording.RunID = f.runID
			if o.From, recording.Origins, err = stage.FetchModel(cmd.Context(), target.Store, o.From, o.RunDir); err != nil {
				return err
			}
			if err := f.resolve(cmd, &o); err != nil {
				return err
			}
			if err := f.announce(a, source); err != nil {
				return err
			}
			return f.run(cmd.Context(), a, recording, target, o)
		},
	}
	f.add(cmd)
	f.addModel(cmd, &o)
	addLoop(cmd, &o, &f)
	addResults(cmd, &f.results)
	f.target.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.runID, "run-id", "", "name of the run; empty is that of the run directory. A directory of another run is refused")
	fl.DurationVar(&o.Keep.Every, "store-checkpoints", 0, "copy checkpoints to the store, at most this often, and the last one; training goes on from there when the run directory has none; 0 does not")
	return cmd
}

// open opens the store, where one is needed.
func (f *trainFlags) open(ctx context.Context, o *stage.TrainOptions) (stage.Target, error) {
	target, err := f.target.open(ctx)
	if err != nil {
		return target, err
	}
	switch {
	case o.Keep.Every < 0:
		return target, usageError("store-checkpoints is %s, want a duration such as 5m, or 0", o.Keep.Every)
	case o.Keep.Every > 0 && target.Store == nil:
		return target, usageError("store-checkpoints is %s, but there is no store to copy them to: set --store", o.Keep.Every)
	}
	o.Keep.Store = target.Store
	return target, nil
}

func (f *trainFlags) addModel(cmd *cobra.Command, o *stage.TrainOptions) {
	fl := cmd.Flags()
	fl.StringVar(&o.RunDir, "run-dir", "", "run directory: data in, model out")
	fl.StringVar(&o.From, "from", "", "Hugging Face GPT-2 directory to fine-tune, or "+stage.StoreInput+"KEY of the store; empty trains from scratch")
	fl.StringVar(&f.preset, "preset", "nano", "size of a model from scratch: nano or gpt2")
	fl.IntVar(&f.layers, "layers", 0, "layers; 0 is the preset's")
	fl.IntVar(&f.heads, "heads", 0, "attention heads; 0 is the preset's")
	fl.IntVar(&f.channels, "channels", 0, "channels; 0 is the preset's")
	fl.IntVar(&f.block, "block", 0, "tokens of a sequence; 0 is the preset's, at most 128 with --from")
	fl.StringVar(&f.qa, "qa", "", "question-answer file to learn by heart: prepares the run directory first")
	fl.StringVar(&f.tokenizer, "tokenizer", "", "tokenizer.json or directory for --qa; empty takes that of --from, or learns one")
	fl.IntVar(&f.vocabSize, "vocab-size", 512, "tokens of a tokenizer learnt for --qa")
}

func addLoop(cmd *cobra.Command, o *stage.TrainOptions, f *trainFlags) {
	fl, c := cmd.Flags(), &o.Config
	fl.IntVar(&c.MaxIters, "max-iters", c.MaxIters, "updates in all")
	fl.IntVar(&c.EvalInterval, "eval-interval", c.EvalInterval, "updates between evaluations; changes no weight")
	fl.IntVar(&o.EvalBatches, "eval-batches", o.EvalBatches, "held-out batches of an evaluation; 0 is all")
	fl.IntVar(&c.SaveInterval, "save-interval", c.SaveInterval, "updates between checkpoints besides those at evaluations; 0 is none")
	fl.IntVar(&o.LogInterval, "log-interval", o.LogInterval, "updates between rows of loss_history.csv")
	fl.IntVar(&c.BatchSize, "batch-size", c.BatchSize, "sequences of one micro-batch")
	fl.IntVar(&c.Accumulation, "accumulation", c.Accumulation, "micro-batches of an update")
	fl.IntVar(&c.Workers, "workers", c.Workers, "data-parallel workers")
	fl.IntVar(&c.Global, "global-batch", 0, "batch-size x workers x accumulation, to be checked; 0 does not check")
	fl.Float64Var(&f.lr, "lr", auto, "peak learning rate; -1 is 3e-3 for nano, 6e-4 for gpt2, 1e-4 with --from")
	fl.Float64Var(&f.minLR, "min-lr", auto, "learning rate at the end; -1 is a tenth of the peak")
	fl.IntVar(&f.warmup, "warmup", auto, "updates of linear warm-up; -1 is a tenth of all, at most 100")
	fl.Float64Var(&c.WeightDecay, "weight-decay", c.WeightDecay, "of matrices and embeddings")
	fl.Float64Var(&c.Beta1, "beta1", c.Beta1, "AdamW's first decay")
	fl.Float64Var(&c.Beta2, "beta2", c.Beta2, "AdamW's second decay")
	fl.Float64Var(&c.Epsilon, "epsilon", c.Epsilon, "AdamW's epsilon")
	fl.Float64Var(&c.Clip, "clip", c.Clip, "largest norm of the gradients; 0 does not clip")
	fl.Float64Var(&c.Dropout, "dropout", c.Dropout, "probability of dropping an element")
	fl.Uint64Var(&c.Seed, "seed", c.Seed, "of all random streams")
	fl.StringVar(&o.Resume, "resume", o.Resume, "auto, never or require")
	fl.IntVar(&o.FlatEvals, "stop-flat", 0, "stop when so many evaluations are flat; 0 never")
	fl.Float64Var(&o.FlatDelta, "stop-flat-delta", o.FlatDelta, "nats within which evaluations are flat")
	fl.IntVar(&o.Patience, "patience", 0, "stop when the best loss is so many evaluations old; 0 never")
	fl.DurationVar(&o.MaxTime, "max-time", 0, "save and stop after this time, to be resumed; 0 never")
	fl.StringVar(&f.progress, "progress", "auto", "on the terminal: auto, bar, plain or none")
}

// resolve gives each setting that follows another one its value.
func (f *trainFlags) resolve(cmd *cobra.Command, o *stage.TrainOptions) error {
	c := &o.Config
	if o.RunDir == "" {
		return exitcode.Errorf(exitcode.Usage, "train: no run directory: set run-dir")
	}
	if !(o.FlatDelta >= 0) { // not a number compares with nothing
		return exitcode.Errorf(exitcode.Usage, "stop-flat-delta is %v, want 0 or more", o.FlatDelta)
	}
	if f.qa != "" {
		f.forQA(cmd, o)
	}
	var err error
	if o.Model, err = gpt.Preset(f.preset); err != nil {
		return err
	}
	block := o.Model.BlockSize
	if o.From != "" {
		m, err := hf.ReadConfig(o.From)
		if err != nil {
			return exitcode.Errorf(exitcode.BadInput, "from: %w", err)
		}
		block = min(m.BlockSize, 128)
		for _, name := range []string{"preset", "layers", "heads", "channels"} {
			if cmd.Flag(name).Changed {
				return exitcode.Errorf(exitcode.Usage, "%s has no use with from: the model of %s has its own size", name, o.From)
			}
		}
	}
	c.BlockSize = or(f.block, block)
	o.Model.BlockSize = c.BlockSize
	o.Model.Layers, o.Model.Heads = or(f.layers, o.Model.Layers), or(f.heads, o.Model.Heads)
	o.Model.Channels = or(f.channels, o.Model.Channels)
	o.Model.Inner = 4 * o.Model.Channels
	if c.LearningRate = f.lr; f.lr == auto {
		c.LearningRate = f.defaultRate(o.From)
	}
	if c.MinLearningRate = f.minLR; f.minLR == auto {
		c.MinLearningRate = c.LearningRate / 10
	}
	if c.Warmup = f.warmup; f.warmup == auto {
		c.Warmup = min(c.MaxIters/10, 100)
	}
	return nil
}

// defaultRate is a peak learning rate that suits what is trained: the smaller the
// model, the higher; GPT-3's table begins with 6e-4 at 125 million parameters.
func (f *trainFlags) defaultRate(from string) float64 {
	switch {
	case from != "":
		return 1e-4
	case f.preset == "gpt2":
		return 6e-4
	}
	return 3e-3
}

func or(value, otherwise int) int {
	if value == 0 {
		return otherwise
	}
	return value
}

// forQA sets what learning some dozens of short facts by heart needs, where the
// user did not say otherwise: the whole file in a batch and a high rate.
func (f *trainFlags) forQA(cmd *cobra.Command, o *stage.TrainOptions) {
	set := func(name string, apply func()) {
		if !cmd.Flag(name).Changed {
			apply()
		}
	}
	set("max-iters", func() { o.Config.MaxIters = 120 })
	set("batch-size", func() { o.Config.BatchSize = 32 })
	set("eval-interval", func() { o.Config.EvalInterval = 40 })
}

// run prepares a question-answer file when there is one, and trains.
func (f *trainFlags) run(ctx context.Context, a *App, recording stage.Recording, target stage.Target, o stage.TrainOptions) error {
	o.Threads, o.ISA, o.Host = f.threads, a.Getenv(kernel.EnvISA), a.Build.facts()
	o.Now, o.Log = a.Now, a.logger()
	if f.qa != "" {
		p := stage.DefaultPrepareQA()
		p.Inputs, p.RunDir, p.Memorize, p.VocabSize, p.Workers = []string{f.qa}, o.RunDir, true, f.vocabSize, f.threads
		if p.Tokenizer = f.tokenizer; p.Tokenizer == "" {
			p.Tokenizer = o.From
		}
		if _, err := stage.RecordedPrepare(ctx, recording, p); err != nil {
			return err
		}
	}
	sinks, err := f.sinks(a, o)
	if err != nil {
		return err
	}
	o.Progress = sinks
	report, err := stage.TrainWithResults(ctx, recording, o, target, f.results)
	sinks.Close()
	if err != nil {
		return err
	}
	return a.print(report, func(w io.Writer) { trainText(w, report) })
}

func trainText(w io.Writer, r stage.TrainReport) {
	fmt.Fprintf(w, "%s: step %d of %d", r.RunDir, r.Step, r.TotalSteps)
	if r.StopReason != "" {
		fmt.Fprintf(w, ", stopped: %s", r.StopReason)
	}
	fmt.Fprintf(w, "\n  parameters  %d\n", r.Parameters)
	if r.EvalLoss != nil {
		fmt.Fprintf(w, "  held-out    %.4f, best %.4f at step %d\n", *r.EvalLoss, r.BestLoss, r.BestStep)
	}
	fmt.Fprintf(w, "  best        %s\n  last        %s\n", r.BestDigest, r.LastDigest)
	if r.TokensPerSecond > 0 {
		fmt.Fprintf(w, "  speed       %.0f tokens/s\n", r.TokensPerSecond)
	}
}

// fileEvery is how often progress.json is replaced.
const fileEvery = time.Second

// sinks returns who is told about progress.
func (f *trainFlags) sinks(a *App, o stage.TrainOptions) (progress.Sinks, error) {
	all := progress.Sinks{progress.NewFile(o.RunDir, fileEvery, o.Log)}
	push, err := progress.NewPush(a.Getenv, o.Log)
	switch {
	case err != nil:
		// Telling is not training: a wrong variable must not cost the run.
		o.Log.Warn("progress is not pushed", "error", err)
	case push != nil:
		all = append(all, push)
	}
	fd, isTerminal := a.terminal()
	switch f.progress {
	case "none":
		return all, nil
	case "plain":
		return append(all, progress.NewPlain(a.Err)), nil
	case "auto":
		if !isTerminal || a.Getenv("TERM") == "dumb" {
			return append(all, progress.NewPlain(a.Err)), nil
		}
	case "bar":
	default:
		return nil, exitcode.Errorf(exitcode.Usage, "progress is %q, want auto, bar, plain or none", f.progress)
	}
	width := func() int {
		if w, _, err := term.GetSize(fd); isTerminal && err == nil && w > 0 {
			return w
		}
		return 80
	}
	return append(all, progress.NewTerminal(a.Err, width, a.Getenv("NO_COLOR") == "")), nil
}
