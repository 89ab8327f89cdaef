package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/trainer/internal/evaluate"
	"github.com/trainyard/trainyard/trainer/internal/gate"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/stage"
)

func newEvaluate(a *App) *cobra.Command {
	var o stage.EvaluateOptions
	var m machineFlags
	var r runFlags
	var t targetFlags
	cmd := &cobra.Command{
		Use:   "evaluate",
		Short: "Measure a candidate, and the promoted model on the same documents",
		Long: `Measure loss, perplexity and bits per byte of a run's candidate over the whole
held-out splits, with standard errors over documents, and compare it in pairs
with the model that the alias points to. Writes RUN/eval_report.json, the same
bytes for the same model and data, whatever the number of threads.`,
		Example: `  trainer evaluate --run-dir runs/a --store file:///srv/models --name llm
  trainer evaluate --run-dir runs/a --sample 50 --seed 7   # a quick look`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := stage.BeginEvaluateResults(o.ResultsDir); err != nil {
				return err
			}
			if _, err := m.settle(a, cmd); err != nil {
				return err
			}
			var err error
			if o.Target, err = t.open(cmd.Context()); err != nil {
				return err
			}
			o.Recording = a.recording(m)
			o.RunID, o.RunDir, o.Checkpoint = r.id, r.dir, r.checkpoint
			o.Threads, o.ISA = m.threads, a.Getenv(kernel.EnvISA)
			rep, err := stage.Evaluate(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.print(rep, func(w io.Writer) { evaluateText(w, rep) })
		},
	}
	m.add(cmd)
	r.add(cmd)
	t.add(cmd)
	addResults(cmd, &o.ResultsDir)
	cmd.Flags().BoolVar(&o.NoBaseline, "no-baseline", false, "do not compare with the promoted model")
	cmd.Flags().IntVar(&o.Sample, "sample", 0, "documents of each split to measure; 0 is all. The report says that it is a sample")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 1337, "of the sample")
	return cmd
}

func evaluateText(w io.Writer, r *evaluate.Report) {
	how := "whole held-out splits"
	if r.Mode == evaluate.Sampled {
		how = fmt.Sprintf("SAMPLE of %d documents a split, seed %d", r.Sample.Documents, r.Sample.Seed)
	}
	fmt.Fprintf(w, "candidate %s, step %d, %.3f M parameters: %s\n", gate.Short(r.Candidate.Digest), r.TrainIter, r.ParamsM, how)
	line := func(name string, s evaluate.SplitReport) {
		fmt.Fprintf(w, "  %-5s loss %s  perplexity %.2f  bits/byte %s  (%d documents, %d tokens)\n",
			name, estimate(s.Loss), s.Perplexity.Value, estimate(s.BitsPerByte), s.DocumentsInSplit, s.Tokens)
	}
	line("val", r.Splits.Val)
	line("test", r.Splits.Test)
	if b := r.Baseline; b != nil {
		fmt.Fprintf(w, "baseline  %s: test loss %.4f, candidate minus baseline %s %s\n",
			gate.Short(b.Digest), b.Splits.Test.Loss.Value, estimate(b.Splits.Test.Difference), b.Unit)
	}
}

func estimate(e evaluate.Estimate) string {
	if e.StandardError == nil {
		return fmt.Sprintf("%.4f", e.Value)
	}
	return fmt.Sprintf("%.4f ± %.4f", e.Value, *e.StandardError)
}
