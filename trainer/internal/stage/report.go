package stage

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/lineage"
	"github.com/trainyard/trainyard/trainer/internal/report"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// ReportFile is what Report writes.
const ReportFile = "report.html"

// ReportOptions say what Report does.
type ReportOptions struct {
	Recording
	Target
	RunDir     string
	Checkpoint string
	Failure    error // that ended the run, nil for none
}

// Report draws what is in a run directory as one page, report.html. What a run
// did not get to is named on the page and is no error.
func Report(ctx context.Context, o ReportOptions) (string, error) {
	if err := validCheckpoint(o.Checkpoint); err != nil {
		return "", coded("report", err)
	}
	if err := checkRun(o.RunDir); err != nil {
		return "", coded("report", err)
	}
	id, err := ClaimRun(o.RunDir, o.RunID)
	if err != nil {
		return "", coded("report", err)
	}
	d := report.Data{RunID: id, Name: or(o.Name, id), Made: o.Now()}
	if o.Failure != nil {
		d.Failure = o.Failure.Error()
	}
	r := reading{dir: o.RunDir, data: &d}
	d.Eval = read(&r, EvalReportFile, readEvalReport)
	d.Gate = read(&r, GateReportFile, readGateReport)
	d.Quality = read(&r, QualityReportFile, readQualityReport)
	d.Losses = read(&r, train.HistoryName, readLosses)
	d.Samples = read(&r, SamplesFile, readSamples)
	d.Stages = read(&r, lineage.Dir, lineage.ReadDir)
	d.Lineage, err = runLineage(ctx, LineageOptions{Target: o.Target, RunDir: o.RunDir, Checkpoint: o.Checkpoint})
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		d.Absent = append(d.Absent, fmt.Sprintf("checked lineage: %v", err))
	}
	path := filepath.Join(o.RunDir, ReportFile)
	if err := atomicfile.WriteFile(path, func(w io.Writer) error { return report.WriteHTML(w, d) }); err != nil {
		return "", exitcode.Errorf(exitcode.IO, "report: %w", err)
	}
	return path, nil
}

// reading gathers the parts of a report.
type reading struct {
	dir  string
	data *report.Data
}

// read reads one part, or says why it is absent.
func read[T any](r *reading, name string, from func(path string) (T, error)) T {
	v, err := from(filepath.Join(r.dir, name))
	if err != nil {
		r.data.Absent = append(r.data.Absent, fmt.Sprintf("%s: %v", name, err))
		var none T
		return none
	}
	return v
}
