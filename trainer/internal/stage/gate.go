package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/dataset"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gate"
	"github.com/trainyard/trainyard/trainer/internal/hf"
	"github.com/trainyard/trainyard/trainer/internal/lineage"
	"github.com/trainyard/trainyard/trainer/internal/registry"
	"github.com/trainyard/trainyard/trainer/internal/store"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// GateReportFile is what Gate writes.
const GateReportFile = "gate_report.json"

// ErrBlocked is what Gate returns for a candidate that may not be promoted.
var ErrBlocked = errors.New("candidate is blocked")

// GateOptions say what Gate does.
type GateOptions struct {
	Recording
	Target
	StoreErr   error // why there is no store to ask, for the verdict
	RunDir     string
	Checkpoint string // train.BestDir or train.LastDir
	Policy     gate.Policy
	PolicyFile string // where it came from, "" for flags alone
	PolicyErr  error  // why there is no policy; fails the stage
	ResultsDir string
	Out        io.Writer // for people
}

// Results of Gate for later steps.
var gateResults = []string{"verdict", "reasons", "model-digest", "val-loss", "test-loss"}

// Gate judges the candidate of a run. The verdict is written to
// gate_report.json, printed, and handed to later steps before a blocked
// candidate ends in an error that wraps ErrBlocked. Evidence that cannot be had
// is a reason to block, not an error. A blocked candidate goes into the model's
// history as well; when the store does not take it, Out says so.
func Gate(ctx context.Context, opts GateOptions) (*gate.Report, error) {
	results, err := NewResults(opts.ResultsDir, gateResults...)
	if err != nil {
		return nil, err
	}
	g := &gating{opts: opts}
	err = g.run(ctx, results)
	if err == nil || errors.Is(err, ErrBlocked) {
		return g.report, err
	}
	// No verdict could be written. What comes next must not find an empty one.
	_ = results.Set("verdict", gate.Blocked)
	if writeErr := results.Write(); writeErr != nil {
		err = fmt.Errorf("%w; and no results: %w", err, writeErr)
	}
	return nil, coded("gate", err)
}

// gating is one run of Gate.
type gating struct {
	opts     GateOptions
	id       string
	rec      *lineage.Recorder
	evidence gate.Evidence
	report   *gate.Report
}

func (g *gating) run(ctx context.Context, results *Results) error {
	var err error
	if g.rec, g.id, err = g.opts.begin(g.opts.RunDir, "gate"); err != nil {
		return err
	}
	// A verdict is about now: when this one cannot be written, an earlier one
	// must not be found in its place.
	if err := os.Remove(filepath.Join(g.opts.RunDir, GateReportFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return exitcode.Errorf(exitcode.IO, "%w", err)
	}
	if err := g.validate(); err != nil {
		return err
	}
	g.inputs(ctx)
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx) // an interrupted look is no verdict
	}
	g.report = gate.NewReport(g.opts.Name, g.opts.Alias, g.opts.Policy, g.evidence)
	if err := g.write(ctx, results); err != nil {
		return err
	}
	if g.report.Verdict == gate.Pass {
		return nil
	}
	g.remember(ctx)
	return exitcode.Errorf(exitcode.Failed, "gate: %w for %s, see %s", ErrBlocked, counted(len(g.report.Reasons), "reason"), filepath.Join(g.opts.RunDir, GateReportFile))
}

func (g *gating) validate() error {
	o := &g.opts
	if o.PolicyErr != nil {
		return o.PolicyErr
	}
	if err := validCheckpoint(o.Checkpoint); err != nil {
		return err
	}
	if err := o.Target.validate(); err != nil {
		return err
	}
	if err := o.Policy.Validate(); err != nil {
		return exitcode.Errorf(exitcode.Usage, "%w", err)
	}
	return nil
}

// inputs gathers the evidence. Nothing in it is an error of the stage.
func (g *gating) inputs(ctx context.Context) {
	o, e := &g.opts, &g.evidence
	digest := func(name string) gate.Digest {
		sum, err := lineage.HashFile(ctx, filepath.Join(o.RunDir, name))
		return gate.Digest{SHA256: sum, Err: err}
	}
	e.Candidate = digest(filepath.Join(o.Checkpoint, hf.WeightsFile))
	e.Val, e.Test = digest(dataset.Bin(valSplit)), digest(dataset.Bin(testSplit))
	e.Eval, e.EvalErr = readEvalReport(filepath.Join(o.RunDir, EvalReportFile))
	e.Quality, e.QualityErr = readQuality(filepath.Join(o.RunDir, QualityReportFile))
	e.Training, e.TrainingErr = readTraining(filepath.Join(o.RunDir, train.LastDir))
	e.Image = o.Code.Image
	e.Promoted = g.promoted(ctx)
	e.Files = map[string]error{}
	for _, f := range o.Policy.RequiredFiles {
		e.Files[f] = present(filepath.Join(o.RunDir, filepath.FromSlash(f)))
	}
}

// promoted asks the store what the alias points to now.
func (g *gating) promoted(ctx context.Context) gate.Digest {
	switch {
	case g.opts.StoreErr != nil:
		return gate.Digest{Err: errors.New("cannot ask: " + g.opts.StoreErr.Error())} // not wrapped: nobody answered "not found"
	case g.opts.Store == nil:
		return gate.Digest{Err: errors.New("no store was given to ask: set --store")}
	}
	p, err := registry.New(g.opts.Store, registry.Options{}).Get(ctx, g.opts.Name, g.opts.Alias)
	return gate.Digest{SHA256: p.Version, Err: err}
}

// write leaves verdict, record and results, and prints.
func (g *gating) write(ctx context.Context, results *Results) error {
	o, r := &g.opts, g.report
	if err := atomicfile.WriteJSON(filepath.Join(o.RunDir, GateReportFile), r); err != nil {
		return exitcode.Errorf(exitcode.IO, "%w", err)
	}
	if err := r.Print(o.Out); err != nil {
		return exitcode.Errorf(exitcode.IO, "print verdict: %w", err)
	}
	if err := results.setAll(map[string]string{
		"verdict": r.Verdict, "reasons": glance(r.Reasons, maxReasons), "model-digest": withAlgorithm(r.Candidate),
		"val-loss": optional(r.ValLoss), "test-loss": optional(r.TestLoss),
	}); err != nil {
		return err
	}
	if err := results.Write(); err != nil {
		return exitcode.Errorf(exitcode.IO, "%w", err)
	}
	return g.record(ctx)
}

func (g *gating) record(ctx context.Context) error {
	o, rec := &g.opts, g.rec
	if g.evidence.Candidate.SHA256 != "" {
		rec.Add(lineage.Artifact{Name: o.Checkpoint, Kind: lineage.KindModel, SHA256: g.evidence.Candidate.SHA256})
	}
	for _, f := range []string{EvalReportFile, QualityReportFile} {
		if present(filepath.Join(o.RunDir, f)) == nil {
			rec.Input(ctx, lineage.KindFile, f)
		}
	}
	if o.PolicyFile != "" {
		if abs, err := filepath.Abs(o.PolicyFile); err == nil {
			rec.Input(ctx, lineage.KindConfig, abs)
		}
	}
	policy, err := json.Marshal(o.Policy)
	if err != nil {
		return exitcode.Errorf(exitcode.IO, "record policy: %w", err)
	}
	parameters(rec, map[string]any{"name": o.Name, "alias": o.Alias, "policy": string(policy), "verdict": g.report.Verdict, "promoted": g.report.Promoted})
	rec.Output(ctx, lineage.KindFile, GateReportFile)
	outcome := lineage.Succeeded
	if g.report.Verdict != gate.Pass {
		outcome = lineage.BlockedBy
	}
	return writeRecord(rec, outcome)
}

// remember writes a blocked candidate into the model's history. The verdict
// stands whether or not the store takes it.
func (g *gating) remember(ctx context.Context) {
	if g.opts.Store == nil || g.report.Candidate == "" {
		return
	}
	if err := g.evidence.Promoted.Err; err != nil && !errors.Is(err, store.ErrNotFound) {
		// It was asked a moment ago and gave no answer: do not wait once more.
		fmt.Fprintf(g.opts.Out, "not in the history of %s: the store did not answer\n", g.opts.Name)
		return
	}
	_, _, err := registry.New(g.opts.Store, registry.Options{Now: g.opts.Now}).RecordBlocked(ctx, registry.Blocked{
		Model: g.opts.Name, Alias: g.opts.Alias, Version: g.report.Candidate, Run: g.id, Reasons: g.report.Reasons,
	})
	if err != nil {
		fmt.Fprintf(g.opts.Out, "not in the history of %s: %v\n", g.opts.Name, err)
	}
}

// readQuality reads the verdict of a data quality report. What is not in it
// counts as not passed.
func readQuality(path string) (*gate.Quality, error) {
	r, err := readQualityReport(path)
	if err != nil {
		return nil, err
	}
	q := &gate.Quality{Passed: r.Gate && len(r.Detectors) > 0, Documents: int(r.Documents)}
	for _, f := range r.Detectors {
		if !f.Pass {
			q.Passed = false
			q.Failing = append(q.Failing, f.Name)
		}
	}
	return q, nil
}

func readTraining(dir string) (*gate.Training, error) {
	r, err := train.ReadRecord(dir)
	if err != nil {
		return nil, err
	}
	t := &gate.Training{Step: r.Step, Total: r.TotalSteps}
	if r.Finished {
		t.StopReason = r.StopReason
	}
	return t, nil
}

// present says why a required file cannot be used.
func present(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", path)
	case info.Size() == 0:
		return fmt.Errorf("%s is empty", path)
	}
	return nil
}

func optional(x *float64) string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf("%.4f", *x)
}
