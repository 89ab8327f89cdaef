package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/trainyard/trainyard/trainer/internal/bpe"
	"github.com/trainyard/trainyard/trainer/internal/dataset"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gate"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// RunOptions say what Run does: those of its stages. What the stages share is
// taken from here.
type RunOptions struct {
	Recording
	Target
	RunDir     string
	Checkpoint string
	Prepare    PrepareOptions
	Train      TrainOptions
	Evaluate   EvaluateOptions
	Policy     gate.Policy
	PolicyFile string
	License    string
	Sample     SampleOptions // without prompts, some are taken from the test split
	Announce   Announcer     // may be nil
	Out        io.Writer
}

// RunReport is what Run did.
type RunReport struct {
	RunID     string       `json:"run"`
	Step      int          `json:"step"`
	ValLoss   float64      `json:"val_loss"`
	TestLoss  float64      `json:"test_loss"`
	Gate      *gate.Report `json:"gate"`
	Promotion *Promotion   `json:"promotion"` // nil where nothing was promoted
	Report    string       `json:"report"`    // path of the page
}

// Run takes a model through its whole life: prepare, train, evaluate, gate,
// promote, sample, report. The stages are those that run alone, with the same
// files between them. A blocked candidate is sampled and reported too, promotes
// nothing, and Run ends with the gate's error; so does any other failure, with
// a report of how far it came.
func Run(ctx context.Context, o RunOptions) (*RunReport, error) {
	r := &running{o: o}
	err := r.stages(ctx)
	if r.out.RunID == "" {
		return nil, err
	}
	failure := err
	if errors.Is(err, ErrBlocked) {
		failure = nil // a verdict, which the page has
	}
	page, reportErr := Report(ctx, ReportOptions{Recording: o.Recording, Target: o.Target, RunDir: o.RunDir, Checkpoint: o.Checkpoint, Failure: failure})
	r.out.Report = page
	if page != "" {
		fmt.Fprintf(o.Out, "report             %s\n", page)
	}
	return &r.out, r.first(err, reportErr)
}

type running struct {
	o   RunOptions
	out RunReport
}

func (r *running) stages(ctx context.Context) error {
	o := &r.o
	if err := o.validate(); err != nil {
		return coded("run", err)
	}
	id, err := ClaimRun(o.RunDir, o.RunID)
	if err != nil {
		return coded("run", err)
	}
	o.RunID, r.out.RunID = id, id
	if err := r.prepareAndTrain(ctx); err != nil {
		return err
	}
	eval := o.Evaluate
	eval.Recording, eval.Target, eval.RunDir, eval.Checkpoint = o.Recording, o.Target, o.RunDir, o.Checkpoint
	rep, err := Evaluate(ctx, eval)
	if err != nil {
		return err
	}
	r.out.ValLoss, r.out.TestLoss = rep.ValLoss, rep.TestLoss
	r.out.Gate, err = Gate(ctx, GateOptions{
		Recording: o.Recording, Target: o.Target, RunDir: o.RunDir, Checkpoint: o.Checkpoint, Policy: o.Policy, PolicyFile: o.PolicyFile, Out: o.Out,
	})
	if err != nil && !errors.Is(err, ErrBlocked) {
		return err
	}
	if err == nil {
		r.out.Promotion, err = Promote(ctx, PromoteOptions{
			Recording: o.Recording, Target: o.Target, RunDir: o.RunDir, Checkpoint: o.Checkpoint, License: o.License, Announce: o.Announce, Out: o.Out,
		})
		if err != nil {
			return err
		}
	}
	return r.first(err, r.sample(ctx))
}

// validate refuses before the first stage what a later one would refuse.
func (o *RunOptions) validate() error {
	if err := validCheckpoint(o.Checkpoint); err != nil {
		return err
	}
	if err := o.Target.validate(); err != nil {
		return err
	}
	if err := o.Policy.Validate(); err != nil {
		return exitcode.Errorf(exitcode.Usage, "%w", err)
	}
	prepare := o.Prepare
	prepare.RunDir = o.RunDir
	p, err := prepareInputs(prepare)
	if err != nil {
		return err
	}
	if err := p.validate(); err != nil {
		return err
	}
	if err := o.Train.validate(); err != nil {
		return exitcode.Errorf(exitcode.Usage, "train: %w", err)
	}
	return o.Sample.Sampling.Validate()
}

// first returns the error that ends the run; one that came on top is printed.
func (r *running) first(err, later error) error {
	if err == nil {
		return later
	}
	if later != nil {
		fmt.Fprintf(r.o.Out, "also failed        %v\n", later)
	}
	return err
}

func (r *running) prepareAndTrain(ctx context.Context) error {
	o := &r.o
	prepare := o.Prepare
	prepare.RunDir = o.RunDir
	p, err := RecordedPrepare(ctx, o.Recording, prepare)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "prepared           %d documents of %d, %d tokens to train on\n", p.Data.DocsOut, p.Data.DocsIn, p.Meta.TrainTokens)
	tr := o.Train
	tr.RunDir = o.RunDir
	t, err := RecordedTrain(ctx, o.Recording, tr)
	if err != nil {
		return err
	}
	if !t.Finished {
		return exitcode.Errorf(exitcode.Failed, "train: stopped at step %d of %d (%s): run again to go on", t.Step, t.TotalSteps, t.StopReason)
	}
	r.out.Step = t.Step
	fmt.Fprintf(o.Out, "trained            %d steps, best held-out loss %.4f at step %d\n", t.Step, t.BestLoss, t.BestStep)
	return nil
}

func (r *running) sample(ctx context.Context) error {
	o := r.o.Sample
	o.RunDir = r.o.RunDir
	o.Model = filepath.Join(r.o.RunDir, r.o.Checkpoint)
	_, err := RecordedSample(ctx, r.o.Recording, o)
	return err
}

const (
	promptCount  = 3
	promptTokens = 16
)

// testPrompts takes the beginnings of the first documents of the test split that
// are long enough: text that the model was not trained on. Of a
// question-answer pair it takes the question.
func testPrompts(run string, n int) ([]string, error) {
	meta, err := dataset.ReadMeta(run)
	if err != nil {
		return nil, err
	}
	tok, err := bpe.Load(run)
	if err != nil {
		return nil, err
	}
	f, x, err := meta.OpenSplit(run, testSplit)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var prompts []string
	for i := 0; i < x.Len() && len(prompts) < n; i++ {
		from, to := x.Tokens(i)
		if meta.Format != dataset.FormatQA {
			if to-from < 2*promptTokens {
				continue
			}
			to = from + promptTokens
		}
		ids := make([]int32, to-from)
		if err := f.Read(ids, from); err != nil {
			return nil, err
		}
		if p := prompt(string(tok.Decode(ids)), meta.Format == dataset.FormatQA); p != "" {
			prompts = append(prompts, p)
		}
	}
	if len(prompts) == 0 {
		prompts = []string{"The"}
	}
	return prompts, nil
}

// prompt cuts text where a word, or a question, ends.
func prompt(text string, question bool) string {
	if question {
		q, _, _ := strings.Cut(text, "|")
		return strings.TrimSpace(q)
	}
	if i := strings.LastIndexByte(text, ' '); i > 0 {
		text = text[:i]
	}
	for len(text) > 0 && !utf8.ValidString(text) {
		text = text[:len(text)-1] // the cut went through a character
	}
	return strings.TrimSpace(text)
}

// DefaultCheckpoint is the one that is judged: the best on the validation split.
const DefaultCheckpoint = train.BestDir
