package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/trainer/internal/dataset"
	"github.com/trainyard/trainyard/trainer/internal/quality"
	"github.com/trainyard/trainyard/trainer/internal/stage"
)

// prepareFlags are the flags of prepare that run has too.
type prepareFlags struct {
	o          stage.PrepareOptions // what flags set
	clean      []string
	thresholds map[string]*float64
}

func (p *prepareFlags) add(cmd *cobra.Command) {
	p.o = stage.DefaultPrepare()
	o, f := &p.o, cmd.Flags()
	f.StringSliceVar(&o.Inputs, "corpus", nil, "text or .jsonl files, also .gz and .zst, directories of them, or "+stage.StoreInput+"KEY of the store")
	f.StringVar(&o.Format, "format", o.Format, dataset.FormatText+", or "+dataset.FormatQA+" for question | answer<|endoftext|> records")
	f.StringVar(&o.Separator, "separator", o.Separator, "what tells documents apart: blank-lines:N, blank-line, line, file, jsonl or literal:TEXT")
	f.StringVar(&o.JSONField, "json-field", o.JSONField, "field of .jsonl records that holds the text")
	f.IntVar(&o.MaxDocBytes, "max-doc-bytes", o.MaxDocBytes, "longest document; a longer one is cut")
	f.StringSliceVar(&p.clean, "clean", []string{"nfc", "html", "control", "wiki", "space"}, "cleaning steps; none cleans nothing")
	f.IntVar(&o.Filter.MinChars, "min-chars", o.Filter.MinChars, "fewer characters drop a document")
	f.Float64Var(&o.Filter.MaxSymbolRatio, "max-symbol-ratio", o.Filter.MaxSymbolRatio, "a larger share of symbols drops a document; 0 keeps all")
	f.Float64Var(&o.Filter.MaxRepetition, "max-repetition", o.Filter.MaxRepetition, "more repetition drops a document; 0 keeps all")
	f.BoolVar(&o.DropExact, "drop-exact", o.DropExact, "drop exact duplicates")
	f.BoolVar(&o.DropNear, "drop-near", o.DropNear, "drop near duplicates")
	f.Float64Var(&o.Near.Threshold, "near-threshold", o.Near.Threshold, "similarity from which on documents are near duplicates")
	f.Float64Var(&o.Split.Train, "split-train", o.Split.Train, "share of documents to train on")
	f.Float64Var(&o.Split.Val, "split-val", o.Split.Val, "share of documents to validate on")
	f.Float64Var(&o.Split.Test, "split-test", o.Split.Test, "share of documents to test on")
	f.Uint64Var(&o.SplitSeed, "split-seed", o.SplitSeed, "of the split")
	f.BoolVar(&o.Memorize, "memorize", o.Memorize, "put every document into every split, for drills")
	f.IntVar(&o.MinFrequency, "min-frequency", o.MinFrequency, "lowest count of a pair that the tokenizer merges")
	f.StringSliceVar(&o.Sensitivity, "sensitivity", o.Sensitivity, "separators under which the quality rules are shown beside each other")
	p.thresholds = map[string]*float64{}
	for _, name := range slices.Sorted(maps.Keys(quality.DefaultOptions().MaxPercent)) {
		flag := "max-percent-" + strings.ReplaceAll(name, "_", "-")
		p.thresholds[name] = f.Float64(flag, o.Quality.MaxPercent[name], "highest percentage of documents that "+name+" may flag")
	}
}

// options returns what the flags say, over the defaults of the format.
func (p *prepareFlags) options(cmd *cobra.Command) (stage.PrepareOptions, error) {
	o := p.o
	if o.Format == dataset.FormatQA {
		o = p.overQA(cmd)
	}
	if cmd.Flag("clean").Changed {
		o.Clean.NFC, o.Clean.HTML, o.Clean.Control, o.Clean.Wiki, o.Clean.Space = false, false, false, false, false
		for _, step := range p.clean {
			to := map[string]*bool{"nfc": &o.Clean.NFC, "html": &o.Clean.HTML, "control": &o.Clean.Control, "wiki": &o.Clean.Wiki, "space": &o.Clean.Space}[step]
			switch {
			case to != nil:
				*to = true
			case step != "none":
				return o, usageError("clean step %q: use nfc, html, control, wiki, space or none", step)
			}
		}
	}
	o.Quality.MaxPercent = map[string]float64{}
	for name, v := range p.thresholds {
		o.Quality.MaxPercent[name] = *v
	}
	return o, nil
}

// overQA starts from the defaults of question-answer records.
func (p *prepareFlags) overQA(cmd *cobra.Command) stage.PrepareOptions {
	o, q := p.o, stage.DefaultPrepareQA()
	for name, take := range map[string]func(){
		"separator":        func() { o.Separator = q.Separator },
		"clean":            func() { o.Clean = q.Clean },
		"min-chars":        func() { o.Filter.MinChars = q.Filter.MinChars },
		"max-symbol-ratio": func() { o.Filter.MaxSymbolRatio = q.Filter.MaxSymbolRatio },
		"max-repetition":   func() { o.Filter.MaxRepetition = q.Filter.MaxRepetition },
		"drop-near":        func() { o.DropNear = q.DropNear },
		"sensitivity":      func() { o.Sensitivity = q.Sensitivity },
	} {
		if !cmd.Flag(name).Changed {
			take()
		}
	}
	o.Quality = q.Quality
	return o
}

func newPrepare(a *App) *cobra.Command {
	var m machineFlags
	var p prepareFlags
	var t targetFlags
	var runDir, runID, tokenizer, results string
	vocab := stage.DefaultPrepare().VocabSize
	cmd := &cobra.Command{
		Use:   "prepare",
		Short: "Turn text into tokens to train and judge on",
		Long: `Read text, tell documents apart, clean them, drop duplicates, judge their quality,
split them by content and write tokens: RUN/{train,val,test}.bin, tokenizer.json,
meta.json, data_report.json and data_quality_report.json. Equal inputs and flags
give equal bytes.`,
		Example: `  trainer prepare --run-dir runs/a --corpus corpus.txt
  trainer prepare --run-dir runs/a --corpus store:corpora/docs/ --store s3://bucket --separator jsonl
  trainer prepare --run-dir runs/qa --corpus facts.txt --format qa --memorize`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := stage.BeginPrepareResults(results); err != nil {
				return err
			}
			if _, err := m.settle(a, cmd); err != nil {
				return err
			}
			o, err := p.options(cmd)
			if err != nil {
				return err
			}
			o.RunDir, o.Tokenizer, o.VocabSize, o.Workers = runDir, tokenizer, vocab, m.threads
			o.Logf = func(format string, args ...any) { fmt.Fprintf(a.Err, format+"\n", args...) }
			if a.log != nil {
				// The log is in the run directory, and what the store refuses belongs into it.
				if _, err := stage.ClaimRun(runDir, runID); err != nil {
					return err
				}
			}
			target, err := t.open(cmd.Context())
			if err != nil {
				return err
			}
			fetched, err := stage.FetchInputs(cmd.Context(), target.Store, o.Inputs, runDir)
			if err != nil {
				return err
			}
			defer fetched.Close()
			o.Inputs = fetched.Inputs
			if o.Tokenizer, err = fetched.Tokenizer(cmd.Context(), target.Store, o.Tokenizer, runDir); err != nil {
				return err
			}
			rec := a.recording(m)
			rec.RunID, rec.Origins = runID, fetched.Origins
			rep, err := stage.PrepareWithResults(cmd.Context(), rec, o, results)
			if err != nil {
				return err
			}
			return a.print(rep, func(w io.Writer) { prepareText(w, rep) })
		},
	}
	m.add(cmd)
	p.add(cmd)
	t.add(cmd)
	addResults(cmd, &results)
	f := cmd.Flags()
	f.StringVar(&runDir, "run-dir", "", "run directory to write to")
	f.StringVar(&runID, "run-id", "", "name of the run; empty is that of the run directory")
	f.StringVar(&tokenizer, "tokenizer", "", "tokenizer.json or directory to use, or "+stage.StoreInput+"KEY of the store; empty learns one from the train split")
	f.IntVar(&vocab, "vocab-size", vocab, "tokens of a tokenizer that is learnt")
	return cmd
}

func prepareText(w io.Writer, r stage.PrepareReport) {
	fmt.Fprintf(w, "%d documents of %d kept, %d tokens: train %d, val %d, test %d\n",
		r.Data.DocsOut, r.Data.DocsIn, r.Meta.TrainTokens+r.Meta.ValTokens+r.Meta.TestTokens, r.Meta.TrainTokens, r.Meta.ValTokens, r.Meta.TestTokens)
	verdict := "passed"
	if !r.Quality.Gate {
		verdict = "NOT passed"
	}
	fmt.Fprintf(w, "data quality %s over %d documents told apart by %s\n", verdict, r.Quality.Documents, r.Quality.Separator)
	for _, f := range r.Quality.Detectors {
		mark := "ok  "
		if !f.Pass {
			mark = "over"
		}
		fmt.Fprintf(w, "  %s %-16s %6.2f %% of %d documents, at most %.2f %%\n", mark, f.Name, f.Percent, f.Documents, f.MaxPercent)
	}
}
