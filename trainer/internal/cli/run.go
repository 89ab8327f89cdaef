package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/trainer/internal/gate"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/stage"
	"github.com/trainyard/trainyard/trainer/internal/store"
)

// runVerb is what the flags of run set.
type runVerb struct {
	train      trainFlags
	prepare    prepareFlags
	target     targetFlags
	policy     policyFlags
	kserve     kserveFlags
	id, image  string
	checkpoint string
	o          stage.RunOptions
}

func newRun(a *App) *cobra.Command {
	v := &runVerb{o: stage.RunOptions{Train: stage.DefaultTrain(), Sample: stage.DefaultSample()}}
	// As long as makes a minute on two cores of the nano model, which then has begun
	// to write sentences.
	v.o.Train.Config.MaxIters = 400
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Take a model through its whole life on this machine",
		Long: `Prepare, train, evaluate, gate, promote, sample and report, with the same stages,
files and flags as the subcommands of these names. Without --store the registry
is the directory store beside the run directory. A blocked candidate is reported,
promotes nothing, and ends with exit code 1.

A code image is not asked for unless --require-image or the policy says so: the
records have the digest of this program.`,
		Example: `  trainer run --run-dir runs/a --corpus corpus.txt --max-iters 300
  trainer run --run-dir runs/a --corpus corpus.txt --max-val-loss 1.5   # blocked: exits 1
  trainer run --run-dir runs/qa --qa facts.txt`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, err := v.train.settle(a, cmd)
			if err != nil {
				return err
			}
			if err := v.settle(cmd, a); err != nil {
				return err
			}
			if err := v.train.announce(a, source); err != nil {
				return err
			}
			return v.run(cmd.Context(), a)
		},
	}
	v.train.machineFlags.add(cmd)
	v.train.addModel(cmd, &v.o.Train)
	addLoop(cmd, &v.o.Train, &v.train)
	v.prepare.add(cmd)
	v.target.add(cmd)
	v.policy.add(cmd)
	v.kserve.add(cmd)
	addImage(cmd, &v.image)
	f := cmd.Flags()
	f.StringVar(&v.id, "run-id", "", "name of the run; empty is that of the run directory")
	f.StringVar(&v.checkpoint, "checkpoint", stage.DefaultCheckpoint, "the candidate: best or last")
	f.StringVar(&v.o.License, "license", "", "SPDX identifier for the model card")
	f.StringArrayVar(&v.o.Sample.Prompts, "prompt", nil, "text for the samples; empty takes some of the test split")
	f.IntVar(&v.o.Sample.Sampling.MaxTokens, "max-tokens", v.o.Sample.Sampling.MaxTokens, "most tokens of a sample")
	f.Lookup("vocab-size").Usage = "tokens of a tokenizer that is learnt; 0 is 4096, or 512 for --qa"
	f.Lookup("vocab-size").DefValue = "0"
	v.train.vocabSize = 0
	return cmd
}

// settle gives the stages their options.
func (v *runVerb) settle(cmd *cobra.Command, a *App) error {
	o := &v.o
	if err := v.train.resolve(cmd, &o.Train); err != nil {
		return err
	}
	var err error
	if v.train.qa != "" {
		if len(v.prepare.o.Inputs) > 0 {
			return usageError("both --corpus and --qa: give one of them")
		}
		v.prepare.o.Inputs, v.prepare.o.Format, v.prepare.o.Memorize = []string{v.train.qa}, "qa", true
	}
	if o.Prepare, err = v.prepare.options(cmd); err != nil {
		return err
	}
	p, t := &o.Prepare, &o.Train
	if p.Tokenizer = v.train.tokenizer; p.Tokenizer == "" {
		p.Tokenizer = t.From
	}
	switch {
	case v.train.vocabSize > 0:
		p.VocabSize = v.train.vocabSize
	case v.train.qa != "":
		p.VocabSize = 512
	}
	p.Workers = v.train.threads
	if v.train.qa == "" {
		p.BlockSize = t.Config.BlockSize
	}
	base := gate.Default()
	base.RequireImage = false
	if o.Policy, err = v.policy.policy(cmd, base); err != nil {
		return err
	}
	o.PolicyFile = v.policy.file
	o.Announce, err = v.kserve.announcer(a)
	return err
}

func (v *runVerb) run(ctx context.Context, a *App) error {
	o, t := &v.o, &v.o.Train
	o.RunDir, o.Checkpoint, o.Out = t.RunDir, v.checkpoint, a.people()
	o.Recording = a.recording(v.train.machineFlags)
	o.RunID = v.id
	if v.image != "" {
		o.Code.Image = v.image
	}
	if err := v.openStore(ctx); err != nil {
		return err
	}
	fetched, err := stage.FetchInputs(ctx, o.Store, o.Prepare.Inputs, o.RunDir)
	if err != nil {
		return err
	}
	defer fetched.Close()
	o.Prepare.Inputs, o.Origins = fetched.Inputs, fetched.Origins
	t.Threads, t.ISA, t.Host, t.Now, t.Log = v.train.threads, a.Getenv(kernel.EnvISA), a.Build.facts(), a.Now, a.logger()
	o.Evaluate.Threads, o.Evaluate.ISA = v.train.threads, t.ISA
	o.Sample.Threads, o.Sample.ISA = v.train.threads, t.ISA
	sinks, err := v.train.sinks(a, *t)
	if err != nil {
		return err
	}
	defer sinks.Close()
	t.Progress = sinks
	rep, err := stage.Run(ctx, *o)
	return hand(a, rep, err)
}

// storeBeside is the URL of the directory store beside a run directory.
func storeBeside(run string) (string, error) {
	abs, err := filepath.Abs(run) // what is beside "." is known by its path alone
	if err != nil {
		return "", fmt.Errorf("store: %w", err)
	}
	url, err := store.FileURL(filepath.Join(filepath.Dir(abs), "store"))
	if err != nil {
		return "", fmt.Errorf("store: %w", err)
	}
	return url, nil
}

// openStore opens the store that is named, or the one beside the run directory.
func (v *runVerb) openStore(ctx context.Context) error {
	if v.o.RunDir == "" {
		return usageError("no run directory: set --run-dir")
	}
	if v.target.url == "" && v.target.bucket == "" {
		url, err := storeBeside(v.o.RunDir)
		if err != nil {
			return err
		}
		v.target.url, v.target.options.Create = url, true
	}
	var err error
	v.o.Target, err = v.target.open(ctx)
	return err
}
