package stage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/dataset"
	"github.com/trainyard/trainyard/trainer/internal/evaluate"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/lineage"
	"github.com/trainyard/trainyard/trainer/internal/par"
	"github.com/trainyard/trainyard/trainer/internal/registry"
	"github.com/trainyard/trainyard/trainer/internal/store"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// EvalReportFile is what Evaluate writes.
const EvalReportFile = "eval_report.json"

const testSplit = "test"

// Target names a model's place in the registry.
type Target struct {
	Store store.Store // nil where there is none
	Name  string      // of the model
	Alias string      // such as production
}

// validate refuses names that no registry takes. Without a store nobody is asked.
func (t Target) validate() error {
	if t.Store == nil {
		return nil
	}
	if err := registry.CheckNames(t.Name, t.Alias); err != nil {
		return exitcode.Errorf(exitcode.Usage, "%w", err)
	}
	return nil
}

// location is where a model with this digest is in the registry; without a store or a
// digest it has no place.
func (t Target) location(digest string) string {
	if t.Store == nil || digest == "" {
		return ""
	}
	return registry.New(t.Store, registry.Options{}).Location(t.Name, hexDigest(digest))
}

// DefaultAlias is the alias of what is in use.
const DefaultAlias = "production"

// EvaluateOptions say what Evaluate does.
type EvaluateOptions struct {
	Recording
	Target     // whose alias names the baseline; without a store there is none
	RunDir     string
	Checkpoint string // train.BestDir or train.LastDir
	NoBaseline bool
	Sample     int // documents of each split; 0 measures the whole splits
	Seed       uint64
	Threads    int
	ISA        string // of the kernels; "" chooses the best
	ResultsDir string
}

// Results of Evaluate for later steps.
var evaluateResults = []string{"val-loss", "test-loss", "perplexity", "bits-per-byte", "model-digest"}

// Evaluate measures the candidate of a run on its held-out splits, and the
// promoted model on the same documents, and writes eval_report.json. A store
// that does not answer fails the evaluation; only its own "not found" means
// that there is no baseline.
func Evaluate(ctx context.Context, opts EvaluateOptions) (*evaluate.Report, error) {
	results, err := NewResults(opts.ResultsDir, evaluateResults...)
	if err != nil {
		return nil, err
	}
	e := &evaluating{opts: opts}
	defer e.close()
	err = e.run(ctx, results)
	if writeErr := results.Write(); err == nil {
		err = writeErr
	}
	if err != nil {
		return nil, coded("evaluate", err)
	}
	return &e.report, nil
}

// evaluating is one run of Evaluate.
type evaluating struct {
	opts      EvaluateOptions
	rec       *lineage.Recorder
	kernels   *kernel.Set
	meta      dataset.Meta
	training  train.Record
	candidate *subject
	baseline  *subject
	tmp       *scratch // holds the baseline's files
	report    evaluate.Report
}

func (e *evaluating) run(ctx context.Context, results *Results) error {
	if err := e.inputs(ctx); err != nil {
		return err
	}
	if err := e.validate(); err != nil {
		return err
	}
	if err := e.act(ctx); err != nil {
		return err
	}
	return e.write(ctx, results)
}

// inputs reads what is to be measured, and what it is compared with.
func (e *evaluating) inputs(ctx context.Context) error {
	o := &e.opts
	if err := o.validate(); err != nil {
		return err
	}
	var err error
	if e.rec, _, err = o.begin(o.RunDir, "evaluate"); err != nil {
		return err
	}
	if e.kernels, err = kernel.Choose(o.ISA); err != nil {
		return exitcode.Errorf(exitcode.Usage, "%w", err)
	}
	if e.meta, err = dataset.ReadMeta(o.RunDir); err != nil {
		return err
	}
	if e.training, err = train.ReadRecord(filepath.Join(o.RunDir, train.LastDir)); err != nil {
		return fmt.Errorf("%w: train first", err)
	}
	pool := par.NewPool(threadsOf(o.Threads))
	if e.candidate, err = loadSubject(ctx, filepath.Join(o.RunDir, o.Checkpoint), pool, e.kernels); err != nil {
		pool.Close()
		return err
	}
	return e.findBaseline(ctx, pool)
}

// threadsOf gives 0 its meaning: all that this process may use.
func threadsOf(n int) int {
	if n == 0 {
		return runtime.GOMAXPROCS(0)
	}
	return n
}

// findBaseline downloads the promoted model.
func (e *evaluating) findBaseline(ctx context.Context, pool *par.Pool) error {
	o := &e.opts
	e.report.BaselineState = evaluate.BaselineUnasked
	if o.Store == nil || o.NoBaseline {
		return nil
	}
	reg := registry.New(o.Store, registry.Options{Now: o.Now})
	p, err := reg.Get(ctx, o.Name, o.Alias)
	if errors.Is(err, store.ErrNotFound) {
		e.report.BaselineState = evaluate.BaselineNone
		return nil
	}
	if err != nil {
		return fromStore("baseline", err)
	}
	if e.tmp, err = newScratch(o.RunDir, baselineTemp); err != nil {
		return exitcode.Errorf(exitcode.IO, "baseline: %w", err)
	}
	if _, err = reg.Fetch(ctx, o.Name, p.Version, e.tmp.dir); err != nil {
		return fromStore("baseline", err)
	}
	if e.baseline, err = loadSubject(ctx, e.tmp.dir, pool, e.kernels); err != nil {
		return fmt.Errorf("baseline %s: %w", p.Version, err)
	}
	e.report.BaselineState = evaluate.BaselineCompared
	e.report.Baseline = &evaluate.Baseline{
		Identity: e.baseline.identity, Name: o.Name, Alias: o.Alias,
		SameTokenizer: e.baseline.identity.Tokenizer == e.candidate.identity.Tokenizer, Unit: evaluate.BitsPerByteU,
	}
	if e.report.Baseline.SameTokenizer {
		e.report.Baseline.Unit = evaluate.NatsPerToken
	}
	return nil
}

// validate refuses what no run can have.
func (o EvaluateOptions) validate() error {
	switch {
	case o.Threads < 0:
		return exitcode.Errorf(exitcode.Usage, "threads is %d: want 1 or more, or 0 for all", o.Threads)
	case o.Sample < 0:
		return exitcode.Errorf(exitcode.Usage, "sample is %d: want 0 for the whole splits, or a number of documents", o.Sample)
	}
	if err := o.Target.validate(); err != nil {
		return err
	}
	return validCheckpoint(o.Checkpoint)
}

// validCheckpoint keeps the name of a checkpoint from being a path.
func validCheckpoint(name string) error {
	if name != train.BestDir && name != train.LastDir {
		return exitcode.Errorf(exitcode.Usage, "checkpoint is %q: use %s or %s", name, train.BestDir, train.LastDir)
	}
	return nil
}

// validate checks that data, tokenizer and model belong together.
func (e *evaluating) validate() error {
	o := &e.opts
	switch {
	case e.candidate.identity.Tokenizer != e.meta.TokenizerSHA256:
		return exitcode.Errorf(exitcode.BadInput, "%s has another tokenizer than the data of %s: train on these data", e.candidate.dir, o.RunDir)
	case e.candidate.identity.VocabSize < e.meta.VocabSize:
		return exitcode.Errorf(exitcode.BadInput, "%s knows %d tokens, %s has %d: it is a checkpoint of another vocabulary",
			e.candidate.dir, e.candidate.identity.VocabSize, filepath.Join(o.RunDir, dataset.MetaFile), e.meta.VocabSize)
	}
	return nil
}

// act measures both splits.
func (e *evaluating) act(ctx context.Context) error {
	o := &e.opts
	r := &e.report
	r.Schema, r.Mode, r.Method, r.Candidate = evaluate.Schema, evaluate.Full, evaluate.Method, e.candidate.identity
	eo := evaluate.Options{Sample: o.Sample, Seed: o.Seed, SameTokenizer: r.Baseline != nil && r.Baseline.SameTokenizer}
	if o.Sample > 0 {
		r.Mode = evaluate.Sampled
		r.Sample = &evaluate.SampleNote{Documents: o.Sample, Seed: o.Seed, Note: "a sample of the documents, not the whole splits: for a quick look, not for a gate"}
	}
	if e.meta.Format == dataset.FormatQA {
		eo.IsSeparator = isSeparator(e.candidate.tok)
	}
	for _, s := range []struct {
		name string
		to   *evaluate.SplitReport
		vs   func(b *evaluate.Baseline) *evaluate.BaselineSplit
	}{
		{valSplit, &r.Splits.Val, func(b *evaluate.Baseline) *evaluate.BaselineSplit { return &b.Splits.Val }},
		{testSplit, &r.Splits.Test, func(b *evaluate.Baseline) *evaluate.BaselineSplit { return &b.Splits.Test }},
	} {
		rep, vs, err := e.split(ctx, s.name, eo)
		if err != nil {
			return err
		}
		*s.to = rep
		if vs != nil {
			*s.vs(r.Baseline) = *vs
		}
	}
	iter := e.training.Step
	if o.Checkpoint == train.BestDir {
		iter = e.training.BestStep
	}
	r.SetFigures(iter)
	return r.Validate()
}

func (e *evaluating) split(ctx context.Context, name string, o evaluate.Options) (evaluate.SplitReport, *evaluate.BaselineSplit, error) {
	f, x, err := e.meta.OpenSplit(e.opts.RunDir, name)
	if err != nil {
		return evaluate.SplitReport{}, nil, err
	}
	defer f.Close()
	sum, err := lineage.HashFile(ctx, filepath.Join(e.opts.RunDir, dataset.Bin(name)))
	if err != nil {
		return evaluate.SplitReport{}, nil, err
	}
	if want := e.meta.Splits[name].SHA256; sum != want {
		return evaluate.SplitReport{}, nil, exitcode.Errorf(exitcode.Integrity, "%s is %s, %s says %s: prepare the data again", dataset.Bin(name), sum, dataset.MetaFile, want)
	}
	var base *evaluate.Subject
	if e.baseline != nil {
		base = &e.baseline.Subject
	}
	rep, vs, err := evaluate.Split(ctx, name, f, evaluate.Documents(x), e.candidate.Subject, base, o)
	rep.File, rep.SHA256 = dataset.Bin(name), sum
	return rep, vs, err
}

// write leaves the report, its results and its record.
func (e *evaluating) write(ctx context.Context, results *Results) error {
	o, r := &e.opts, &e.report
	if err := atomicfile.WriteJSON(filepath.Join(o.RunDir, EvalReportFile), r); err != nil {
		return exitcode.Errorf(exitcode.IO, "%w", err)
	}
	if err := results.setAll(map[string]string{
		"val-loss": fmt.Sprint(r.ValLoss), "test-loss": fmt.Sprint(r.TestLoss), "perplexity": fmt.Sprint(r.Perplexity),
		"bits-per-byte": fmt.Sprintf("%.4f", r.Splits.Test.BitsPerByte.Value), "model-digest": "sha256:" + r.Candidate.Digest,
	}); err != nil {
		return err
	}
	parameters(e.rec, map[string]any{"checkpoint": o.Checkpoint, "mode": r.Mode, "sample": o.Sample, "name": o.Name, "alias": o.Alias})
	if o.Sample > 0 {
		e.rec.Seed("seed", o.Seed)
	}
	e.rec.Add(lineage.Artifact{Name: o.Checkpoint, Kind: lineage.KindModel, SHA256: r.Candidate.Digest})
	if r.Baseline != nil {
		e.rec.Add(lineage.Artifact{Name: o.Name, URI: registry.New(o.Store, registry.Options{}).Location(o.Name, r.Baseline.Digest), Kind: lineage.KindModel, SHA256: r.Baseline.Digest})
	}
	for _, f := range []string{dataset.Bin(valSplit), dataset.Bin(testSplit), tokenizerFile, dataset.MetaFile} {
		e.rec.Input(ctx, lineage.KindData, f)
	}
	e.rec.Output(ctx, lineage.KindFile, EvalReportFile)
	return writeRecord(e.rec, lineage.Succeeded)
}

func (e *evaluating) close() {
	if e.candidate != nil {
		e.candidate.pool.Close()
	}
	e.tmp.remove()
}
