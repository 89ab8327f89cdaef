package stage

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/evaluate"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gate"
	"github.com/trainyard/trainyard/trainer/internal/hf"
	"github.com/trainyard/trainyard/trainer/internal/lineage"
	"github.com/trainyard/trainyard/trainer/internal/registry"
)

// Files that Promote writes into the run directory.
const (
	PromoteReportFile = "promote_report.json"
	CardFile          = "model_card.md" // README.md in the registry
)

// cardName is the name that model hubs show.
const cardName = "README.md"

// dataDir is the folder of a store for prepared data and reports, by digest.
const dataDir = "data/sha256/"

// Announcer tells a model server what is promoted now.
type Announcer interface {
	Announce(ctx context.Context, p Promotion) error
}

// Promotion is what became of a promotion: promote_report.json.
type Promotion struct {
	Name      string `json:"name"`
	Alias     string `json:"alias"`
	Version   string `json:"version"`  // SHA-256 of the weights
	Location  string `json:"location"` // URL of the version's folder
	From      string `json:"from"`     // version before, "" for none
	Changed   bool   `json:"changed"`  // false: it was promoted already
	Added     bool   `json:"added"`    // false: the registry had the version already
	Seq       int64  `json:"seq"`      // of the event in the history
	RunID     string `json:"run"`
	CodeImage string `json:"code_image"`
}

// PromoteOptions say what Promote does.
type PromoteOptions struct {
	Recording
	Target
	RunDir     string
	Checkpoint string
	License    string // SPDX identifier for the card, "" where nobody said
	ResultsDir string
	Announce   Announcer // may be nil
	Out        io.Writer
}

// Results of Promote for later steps. The last is an object result with the
// keys that Tekton Chains looks for.
var promoteResults = []string{"model-uri", "model-digest", "changed", artifactOutputs}

// Promote puts the candidate that the gate passed into the registry and moves
// the alias to it. It asks the gate's report, not the exit code of a step, and
// moves only if the alias still points to what the candidate was compared with.
// Promoting what is promoted changes nothing.
func Promote(ctx context.Context, opts PromoteOptions) (*Promotion, error) {
	results, err := declare(opts.ResultsDir, promoteResults)
	if err != nil {
		return nil, err
	}
	p := &promoting{opts: opts}
	err = p.run(ctx, results)
	if writeErr := results.Write(); err == nil {
		err = writeErr
	}
	if err != nil {
		return nil, coded("promote", err)
	}
	return &p.out, nil
}

// promoting is one run of Promote.
type promoting struct {
	opts     PromoteOptions
	id       string
	rec      *lineage.Recorder
	verdict  *gate.Report
	eval     *evaluate.Report
	stages   []*lineage.Record
	registry *registry.Registry
	files    []registry.File
	out      Promotion
}

func (p *promoting) run(ctx context.Context, results *Results) error {
	if err := p.inputs(); err != nil {
		return err
	}
	if err := p.validate(ctx); err != nil {
		return err
	}
	if err := p.act(ctx); err != nil {
		return err
	}
	return p.write(ctx, results)
}

// inputs reads verdict, evaluation and records.
func (p *promoting) inputs() error {
	o := &p.opts
	if err := validCheckpoint(o.Checkpoint); err != nil {
		return err
	}
	var err error
	if p.rec, p.id, err = o.begin(o.RunDir, "promote"); err != nil {
		return err
	}
	if o.Store == nil {
		return exitcode.Errorf(exitcode.Usage, "no store to promote to: set --store")
	}
	if err := o.Target.validate(); err != nil {
		return err
	}
	p.registry = registry.New(o.Store, registry.Options{Now: o.Now})
	if p.verdict, err = readGateReport(filepath.Join(o.RunDir, GateReportFile)); err != nil {
		return fmt.Errorf("%w: pass the gate first", err)
	}
	if p.eval, err = readEvalReport(filepath.Join(o.RunDir, EvalReportFile)); err != nil {
		return err
	}
	all, err := lineage.ReadDir(filepath.Join(o.RunDir, lineage.Dir))
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.Stage != "promote" && r.Stage != "sample" { // they come after the model
			p.stages = append(p.stages, r)
		}
	}
	names, err := modelFiles(filepath.Join(o.RunDir, o.Checkpoint))
	if err != nil {
		return err
	}
	for _, n := range names {
		p.files = append(p.files, registry.File{Name: n, Path: filepath.Join(o.RunDir, o.Checkpoint, n)})
	}
	return nil
}

// validate asks that the verdict is a pass of exactly this candidate.
func (p *promoting) validate(ctx context.Context) error {
	o, v := &p.opts, p.verdict
	sum, err := lineage.HashFile(ctx, filepath.Join(o.RunDir, o.Checkpoint, hf.WeightsFile))
	if err != nil {
		return err
	}
	switch {
	case v.Verdict != gate.Pass:
		return exitcode.Errorf(exitcode.Failed, "the gate's verdict on %s is %q, for %s: see %s", gate.Short(v.Candidate), v.Verdict, counted(len(v.Reasons), "reason"), GateReportFile)
	case v.Name != o.Name || v.Alias != o.Alias:
		return exitcode.Errorf(exitcode.BadInput, "the gate judged for %s of %s, not %s of %s: run the gate again", v.Alias, v.Name, o.Alias, o.Name)
	case v.Candidate != sum:
		return exitcode.Errorf(exitcode.Integrity, "the gate passed %s, %s is %s: evaluate it and run the gate again", gate.Short(v.Candidate), o.Checkpoint, gate.Short(sum))
	case p.eval.Candidate.Digest != sum:
		return exitcode.Errorf(exitcode.Integrity, "%s is about %s, %s is %s", EvalReportFile, gate.Short(p.eval.Candidate.Digest), o.Checkpoint, gate.Short(sum))
	}
	return nil
}

// act uploads data and model and moves the alias, in this order: what an alias
// points to must be there.
func (p *promoting) act(ctx context.Context) error {
	o := &p.opts
	if err := p.card(); err != nil {
		return err
	}
	for _, r := range p.stages {
		if err := p.keep(ctx, r); err != nil {
			return fromStore("keep data", err)
		}
	}
	_, added, err := p.registry.Add(ctx, registry.Addition{Model: o.Name, Files: p.files, Extra: p.extra(), Run: p.id})
	if err != nil {
		return fromStore("add model", err)
	}
	expect := p.verdict.Promoted
	if expect == "" {
		expect = registry.ExpectNone
	}
	moved, err := p.registry.Promote(ctx, registry.Move{Model: o.Name, Alias: o.Alias, Version: p.verdict.Candidate, Expect: expect, Run: p.id})
	if err != nil {
		return fromStore("move alias", err)
	}
	p.out = Promotion{
		Name: o.Name, Alias: o.Alias, Version: p.verdict.Candidate, Location: p.registry.Location(o.Name, p.verdict.Candidate),
		From: moved.From, Changed: moved.Changed, Added: added, Seq: moved.Pointer.Seq, RunID: p.id, CodeImage: p.verdict.CodeImage,
	}
	if o.Announce != nil {
		if err := o.Announce.Announce(ctx, p.out); err != nil {
			return exitcode.Errorf(exitcode.IO, "%s of %s is promoted, but the model server was not told: promote again: %w", gate.Short(p.out.Version), o.Name, err)
		}
	}
	return nil
}

// write leaves the report, the results and the record.
func (p *promoting) write(ctx context.Context, results *Results) error {
	o := &p.opts
	if err := atomicfile.WriteJSON(filepath.Join(o.RunDir, PromoteReportFile), p.out); err != nil {
		return exitcode.Errorf(exitcode.IO, "%w", err)
	}
	if err := results.setAll(map[string]string{
		"model-uri": p.out.Location, "model-digest": "sha256:" + p.out.Version, "changed": fmt.Sprint(p.out.Changed),
		artifactOutputs: artifact(p.out.Location, "sha256:"+p.out.Version),
	}); err != nil {
		return err
	}
	p.rec.Add(lineage.Artifact{Name: o.Checkpoint, Kind: lineage.KindModel, SHA256: p.out.Version})
	p.rec.Input(ctx, lineage.KindFile, GateReportFile)
	parameters(p.rec, map[string]any{"name": o.Name, "alias": o.Alias, "location": p.out.Location, "from": p.out.From, "seq": p.out.Seq})
	p.rec.Output(ctx, lineage.KindFile, PromoteReportFile)
	p.rec.Output(ctx, lineage.KindFile, CardFile)
	if err := writeRecord(p.rec, lineage.Succeeded); err != nil {
		return err
	}
	what := "promoted, before " + orNothing(gate.Short(p.out.From))
	if !p.out.Changed {
		what = "was promoted already"
	}
	_, err := fmt.Fprintf(o.Out, "%s of %s: %s %s\n%s\n", o.Alias, o.Name, gate.Short(p.out.Version), what, p.out.Location)
	return err
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
