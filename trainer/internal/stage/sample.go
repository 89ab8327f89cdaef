package stage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/bpe"
	"github.com/trainyard/trainyard/trainer/internal/corpus"
	"github.com/trainyard/trainyard/trainer/internal/dataset"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/generate"
	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/hf"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/par"
	"github.com/trainyard/trainyard/trainer/internal/rng"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// SamplesFile is what Sample writes into the run directory.
const SamplesFile = "samples.json"

// BaseNone compares with no base model.
const BaseNone = "none"

// SampleOptions say what Sample does. Take them from DefaultSample.
type SampleOptions struct {
	RunDir string
	Model  string // directory of the tuned model; "" is RUN/best
	Base   string // directory of the base model; "" is what training began from, BaseNone none

	Prompts []string // with none and without QA, beginnings of documents of the test split
	QA      string   // question-answer file: every question is asked and its answer compared
	Limit   int      // questions of QA to ask; 0 is all

	Sampling generate.Options
	Threads  int
	ISA      string // of the kernels; "" chooses the best
}

// DefaultSample returns greedy sampling.
func DefaultSample() SampleOptions {
	return SampleOptions{Sampling: generate.Options{MaxTokens: 64}, Threads: 1}
}

// GenerateSamples asks base and tuned model the same and writes samples.json.
// In question-answer data a prompt without the bar gets one, so that the answer
// is what follows it.
func GenerateSamples(ctx context.Context, opts SampleOptions) (SampleReport, error) {
	s := &sampling{opts: opts}
	for _, step := range []func(context.Context) error{s.inputs, s.validate, s.act, s.write} {
		if err := step(ctx); err != nil {
			return s.report, fmt.Errorf("sample: %w", err)
		}
	}
	return s.report, nil
}

// sampling is one run of GenerateSamples.
type sampling struct {
	opts    SampleOptions
	kernels *kernel.Set
	tok     *bpe.Tokenizer
	qa      bool // prompts are questions
	tuned   *gpt.Model
	base    *gpt.Model
	report  SampleReport
}

// inputs reads prompts, tokenizer and models.
func (s *sampling) inputs(context.Context) error {
	o := &s.opts
	var err error
	if s.kernels, err = kernel.Choose(o.ISA); err != nil {
		return err
	}
	if o.Model == "" {
		if o.RunDir == "" {
			return exitcode.Errorf(exitcode.Usage, "no model: set run-dir or model")
		}
		o.Model = filepath.Join(o.RunDir, train.BestDir)
	}
	for _, p := range o.Prompts {
		s.report.Samples = append(s.report.Samples, Sample{Prompt: p})
	}
	if o.RunDir != "" {
		meta, err := dataset.ReadMeta(o.RunDir)
		s.qa = err == nil && meta.Format == dataset.FormatQA // without data a prompt is a prompt
	}
	if o.QA != "" {
		s.qa = true
		if err := s.readQuestions(); err != nil {
			return err
		}
	}
	if len(s.report.Samples) == 0 && o.RunDir != "" {
		prompts, err := testPrompts(o.RunDir, promptCount)
		if err != nil {
			return fmt.Errorf("no prompt, and none to be had from the test split: %w", err)
		}
		for _, p := range prompts {
			s.report.Samples = append(s.report.Samples, Sample{Prompt: p})
		}
	}
	if s.tuned, s.tok, s.report.Tuned, err = loadSampleModel(o.Model); err != nil {
		return err
	}
	s.report.Tuned.Source = s.source(o.Model)
	return s.readBase()
}

func (s *sampling) readQuestions() error {
	b, err := os.ReadFile(s.opts.QA)
	if err != nil {
		return exitcode.Errorf(exitcode.BadInput, "questions: %w", err)
	}
	n := 0
	for record := range strings.SplitSeq(string(b), corpus.EndOfText) {
		if strings.TrimSpace(record) == "" {
			continue
		}
		text, prompt, err := corpus.ParseQA([]byte(record))
		if err != nil {
			return exitcode.Errorf(exitcode.BadInput, "%s: record %d: %w", s.opts.QA, n+1, err)
		}
		if n++; s.opts.Limit > 0 && n > s.opts.Limit {
			break
		}
		s.report.Samples = append(s.report.Samples, Sample{Prompt: string(text[:prompt]), Expected: strings.TrimSpace(string(text[prompt:]))})
	}
	return nil
}

// readBase finds what the tuned model was before training.
func (s *sampling) readBase() error {
	dir := s.opts.Base
	if dir == BaseNone {
		return nil
	}
	if dir == "" {
		if s.opts.RunDir == "" {
			return nil
		}
		last := filepath.Join(s.opts.RunDir, train.LastDir)
		r, err := train.ReadRecord(last)
		if err != nil {
			return fmt.Errorf("base model: %w: name one with base, or use base %s", err, BaseNone)
		}
		if from, ok := r.Fact("from"); ok && from == fromScratch {
			return s.drawBase(r)
		}
		if dir, _ = r.Fact("from-dir"); dir == "" {
			return exitcode.Errorf(exitcode.BadInput, "%s does not say what training began from: name it with base, or use base %s", last, BaseNone)
		}
	}
	model, _, info, err := loadSampleModel(dir)
	if err != nil {
		return err
	}
	info.Source = s.source(dir)
	s.base, s.report.Base = model, &info
	return nil
}

// source names a model directory: relative to the run directory when it is in
// there, so that equal runs have equal samples wherever they lie.
func (s *sampling) source(dir string) string {
	if s.opts.RunDir == "" || !within(s.opts.RunDir, dir) {
		return dir
	}
	abs, err := filepath.Abs(dir)
	run, err2 := filepath.Abs(s.opts.RunDir)
	if err != nil || err2 != nil {
		return dir
	}
	rel, err := filepath.Rel(run, abs)
	if err != nil {
		return dir
	}
	return filepath.ToSlash(rel)
}

// drawBase draws the initial weights again, as training did.
func (s *sampling) drawBase(r train.Record) error {
	text, _ := r.Fact("seed")
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return exitcode.Errorf(exitcode.BadInput, "checkpoint of %s: seed is %q", s.opts.RunDir, text)
	}
	if s.base, err = gpt.New(s.tuned.Config()); err != nil {
		return err
	}
	s.base.Init(rng.New(seed, rng.Init))
	s.report.Base = &SampleModel{Source: "initial weights of seed " + text}
	return nil
}

func loadSampleModel(dir string) (*gpt.Model, *bpe.Tokenizer, SampleModel, error) {
	info := SampleModel{Source: dir}
	m, err := hf.Load(dir)
	if err != nil {
		return nil, nil, info, exitcode.Errorf(exitcode.BadInput, "model: %w", err)
	}
	tok, err := bpe.Load(dir)
	if err != nil {
		return nil, nil, info, exitcode.Errorf(exitcode.BadInput, "model: %w", err)
	}
	if tok.VocabSize() > m.Config().VocabSize {
		return nil, nil, info, exitcode.Errorf(exitcode.BadInput, "model %s knows %d tokens, its tokenizer has %d", dir, m.Config().VocabSize, tok.VocabSize())
	}
	info.Digest, err = modelDigest(dir)
	return m, tok, info, err
}

func (s *sampling) validate(context.Context) error {
	if len(s.report.Samples) == 0 {
		return exitcode.Errorf(exitcode.Usage, "no prompt: give prompt or qa")
	}
	if s.opts.Threads < 1 {
		return exitcode.Errorf(exitcode.Usage, "threads is %d, want 1 or more", s.opts.Threads)
	}
	if err := s.opts.Sampling.Validate(); err != nil {
		return err
	}
	if s.base != nil && s.tok.VocabSize() > s.base.Config().VocabSize {
		return exitcode.Errorf(exitcode.BadInput, "base model %s knows %d tokens, the tokenizer of %s has %d: they do not compare",
			s.report.Base.Source, s.base.Config().VocabSize, s.opts.Model, s.tok.VocabSize())
	}
	return nil
}

// act asks the models.
func (s *sampling) act(ctx context.Context) error {
	o := s.opts.Sampling
	s.report.SchemaVersion, s.report.Greedy = 1, o.Temperature == 0
	s.report.MaxTokens, s.report.Temperature, s.report.TopK, s.report.TopP, s.report.Seed = o.MaxTokens, o.Temperature, o.TopK, o.TopP, o.Seed
	pool := par.NewPool(s.opts.Threads)
	defer pool.Close()
	tuned := s.generator(s.tuned, pool)
	var base *generate.Generator
	if s.base != nil {
		base = s.generator(s.base, pool)
	}
	score := SampleScore{}
	for i := range s.report.Samples {
		x := &s.report.Samples[i]
		if s.qa && !strings.Contains(x.Prompt, "|") {
			x.Prompt = strings.TrimSpace(x.Prompt) + " |"
		}
		var err error
		if x.Tuned, err = s.ask(ctx, tuned, *x); err != nil {
			return err
		}
		if base != nil {
			a, err := s.ask(ctx, base, *x)
			if err != nil {
				return err
			}
			x.Base = &a
		}
		score.add(*x)
	}
	if score.Of > 0 {
		s.report.Exact = &score
	}
	return nil
}

func (s *sampling) generator(m *gpt.Model, pool *par.Pool) *generate.Generator {
	return generate.New(gpt.NewDecoder(m, pool, s.kernels), s.tok, m.Config().BlockSize)
}

func (s *sampling) ask(ctx context.Context, g *generate.Generator, x Sample) (SampleAnswer, error) {
	var text strings.Builder
	res, err := g.Generate(ctx, s.tok.Encode(x.Prompt), s.opts.Sampling, func(t string) error {
		text.WriteString(t)
		return nil
	})
	a := SampleAnswer{Text: text.String(), Tokens: len(res.Tokens), Reason: res.Reason}
	if x.Expected != "" {
		exact := strings.TrimSpace(a.Text) == x.Expected
		a.Exact = &exact
	}
	return a, err
}

func (s *sampling) write(context.Context) error {
	if s.opts.RunDir == "" {
		return nil // a model on its own: the report goes to the caller alone
	}
	return atomicfile.WriteJSON(filepath.Join(s.opts.RunDir, SamplesFile), s.report)
}
