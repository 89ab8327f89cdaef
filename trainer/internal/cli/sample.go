package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/stage"
)

func newSample(a *App) *cobra.Command {
	o := stage.DefaultSample()
	var m machineFlags
	cmd := &cobra.Command{
		Use:   "sample",
		Short: "Ask the model before and after training the same",
		Long: `Continue prompts with the trained model and with what training began from, and
write RUN/samples.json. Without a prompt, some documents of the test split begin one.
Greedy unless --temperature says otherwise, so it repeats exactly. In question-answer
data the answer is what follows the bar, which is added to a prompt that has none.`,
		Example: `  trainer sample --run-dir runs/qa --prompt "How far is the sun?"
  trainer sample --run-dir runs/qa --qa examples/qa/facts.txt --output json
  trainer sample --model ./gpt2 --base none --prompt "Once upon a time" --temperature 0.8 --top-k 40`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := m.settle(a, cmd); err != nil {
				return err
			}
			o.Threads, o.ISA = m.threads, a.Getenv(kernel.EnvISA)
			report, err := stage.RecordedSample(cmd.Context(), a.recording(m), o)
			if err != nil {
				return err
			}
			return a.print(report, func(w io.Writer) { sampleText(w, report) })
		},
	}
	m.add(cmd)
	f, s := cmd.Flags(), &o.Sampling
	f.StringVar(&o.RunDir, "run-dir", "", "run directory; samples.json goes there")
	f.StringVar(&o.Model, "model", "", "directory of the model; empty is RUN/best")
	f.StringVar(&o.Base, "base", "", "directory of the model to compare with; empty is what training began from, none does not compare")
	f.StringArrayVar(&o.Prompts, "prompt", nil, "text to continue; may be given several times")
	f.StringVar(&o.QA, "qa", "", "question-answer file: asks every question and compares the answers")
	f.IntVar(&o.Limit, "limit", 0, "questions of --qa to ask; 0 is all")
	f.IntVar(&s.MaxTokens, "max-tokens", s.MaxTokens, "most tokens of an answer")
	f.Float64Var(&s.Temperature, "temperature", 0, "0 is greedy")
	f.IntVar(&s.TopK, "top-k", 0, "sample among the K most likely tokens; 0 is all")
	f.Float64Var(&s.TopP, "top-p", 0, "sample among the most likely tokens that reach this probability; 0 is all")
	f.Uint64Var(&s.Seed, "seed", 1337, "of the random stream; unused when greedy")
	f.StringArrayVar(&s.Stop, "stop", nil, "text that ends an answer; may be given several times")
	return cmd
}

func sampleText(w io.Writer, r stage.SampleReport) {
	one := func(s string) string { return strings.ReplaceAll(s, "\n", "⏎") }
	for _, x := range r.Samples {
		fmt.Fprintf(w, "%s\n", one(x.Prompt))
		if x.Base != nil {
			fmt.Fprintf(w, "  before: %s\n", one(x.Base.Text))
		}
		fmt.Fprintf(w, "  after:  %s\n", one(x.Tuned.Text))
	}
	if e := r.Exact; e != nil {
		if r.Base != nil {
			fmt.Fprintf(w, "exact answers before: %d of %d\n", e.Base, e.Of)
		}
		fmt.Fprintf(w, "exact answers after:  %d of %d\n", e.Tuned, e.Of)
	}
}
