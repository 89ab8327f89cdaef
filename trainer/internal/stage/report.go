package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gate"
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
	StoreErr   error // why there is no store to ask: the page is drawn, then this is returned
	RunDir     string
	Checkpoint string
	Failure    error // that ended the run, nil for none

	// Statuses is what became of the tasks of a pipeline, NAME=STATUS each, where
	// the status is Tekton's: Succeeded, Failed, None. What a task that did not run
	// would have written is not taken from an earlier run in the same directory,
	// and a directory that does not exist is no error: nothing came that far.
	Statuses   []string
	Publish    bool   // copy the reports to the store as well, under runs/ID/
	ResultsDir string // results for what comes after, "" for none
	Out        io.Writer
}

// Results of Report: all that a pipeline tells about a run. It is the one task that
// always runs, so they are there on every path.
var reportResults = []string{"verdict", "reasons", "model-digest", "model-uri", "val-loss", "test-loss", "report-uri"}

// NoVerdict is the verdict of a run that did not get to its gate.
const NoVerdict = "none"

// Report draws what is in a run directory as one page, report.html. What a run
// did not get to is named on the page and is no error.
func Report(ctx context.Context, o ReportOptions) (string, error) {
	results, err := NewResults(o.ResultsDir, reportResults...)
	if err != nil {
		return "", err
	}
	r := &reporting{o: o, values: map[string]string{"verdict": NoVerdict}}
	path, err := r.run(ctx)
	if err != nil && len(o.Statuses) > 0 {
		r.reasons = append(r.reasons, fmt.Sprintf("report failed: %v", err))
	}
	if setErr := r.hand(results); err == nil {
		err = setErr
	}
	if writeErr := results.Write(); err == nil {
		err = writeErr
	}
	if len(o.Statuses) > 0 { // the pipeline ends
		if ownErr := Disown(o.RunDir, o.Owner); err == nil {
			err = ownErr
		}
	}
	return path, coded("report", err)
}

// reporting is one run of Report.
type reporting struct {
	o       ReportOptions
	tasks   statuses
	values  map[string]string // of results, but for the reasons
	reasons []string
}

// hand sets the results. The reasons get what room the others leave.
func (r *reporting) hand(results *Results) error {
	if err := results.setAll(r.values); err != nil {
		return err
	}
	return results.Set("reasons", glance(r.reasons, min(maxReasons, MaxResults-results.size())))
}

func (r *reporting) run(ctx context.Context) (string, error) {
	o := &r.o
	var err error
	if r.tasks, err = parseStatuses(o.Statuses); err != nil {
		return "", err
	}
	if err := validCheckpoint(o.Checkpoint); err != nil {
		return "", err
	}
	if len(o.Statuses) > 0 && o.RunDir != "" {
		if _, err := os.Stat(o.RunDir); errors.Is(err, fs.ErrNotExist) {
			return "", r.nothing()
		}
	}
	if err := checkRun(o.RunDir); err != nil {
		return "", err
	}
	other, err := otherOwner(o.RunDir, o.Owner)
	if err != nil {
		return "", err
	}
	if other != "" {
		return "", r.refused(other)
	}
	id, err := ClaimRun(o.RunDir, o.RunID)
	if err != nil {
		return "", err
	}
	path, err := r.draw(ctx, id)
	if err != nil && (len(o.Statuses) == 0 || ctx.Err() != nil) {
		return "", err
	}
	if o.StoreErr != nil {
		return path, cmp.Or(err, o.StoreErr)
	}
	if o.Publish {
		// Also without a page, as on a full volume: logs and progress are there.
		uri, publishErr := publish(ctx, o.Store, o.RunDir, id)
		if err = cmp.Or(err, publishErr); err == nil {
			r.values["report-uri"] = uri
		}
	}
	return path, err
}

// refused says why there is no page: what lies in the directory is another one's, and
// so are its reports in the store.
func (r *reporting) refused(other string) error {
	r.reasons = r.failed(nil)
	if r.o.Out == nil {
		return nil
	}
	_, err := fmt.Fprintf(r.o.Out, "nothing to report: %s is in use by %s; %s\n", r.o.RunDir, other, r.tasks)
	return err
}

// nothing says that no stage came far enough to leave anything.
func (r *reporting) nothing() error {
	r.reasons = r.failed(nil)
	if r.o.Out == nil {
		return nil
	}
	_, err := fmt.Fprintf(r.o.Out, "nothing to report: %s does not exist; %s\n", r.o.RunDir, r.tasks)
	return err
}

// draw writes the page.
func (r *reporting) draw(ctx context.Context, id string) (string, error) {
	o := &r.o
	d := report.Data{RunID: id, Name: or(o.Name, id), Made: o.Now()}
	read := reading{dir: o.RunDir, data: &d, tasks: r.tasks}
	d.Eval = readPart(&read, "evaluate", EvalReportFile, readEvalReport)
	d.Gate = readPart(&read, "gate", GateReportFile, readGateReport)
	d.Quality = readPart(&read, "prepare", QualityReportFile, readQualityReport)
	d.Losses = readPart(&read, "train", train.HistoryName, readLosses)
	d.Samples = readPart(&read, "sample", SamplesFile, readSamples)
	d.Stages = readPart(&read, "", lineage.Dir, lineage.ReadDir)
	d.Failure = r.failure(d.Gate)
	var err error
	d.Lineage, err = runLineage(ctx, LineageOptions{Target: o.Target, RunDir: o.RunDir, Checkpoint: o.Checkpoint})
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		d.Absent = append(d.Absent, fmt.Sprintf("checked lineage: %v", err))
	}
	r.results(&d)
	path := filepath.Join(o.RunDir, ReportFile)
	if err := atomicfile.WriteFile(path, func(w io.Writer) error { return report.WriteHTML(w, d) }); err != nil {
		return "", exitcode.Errorf(exitcode.IO, "%w", err)
	}
	return path, nil
}

// failure says what ended the run. A gate that blocked is a verdict, which the page
// has.
func (r *reporting) failure(g *gate.Report) string {
	if r.o.Failure != nil {
		return r.o.Failure.Error()
	}
	failed := r.failed(g)
	if len(failed) == 0 {
		return ""
	}
	return strings.Join(failed, " and ") + "; " + r.tasks.String()
}

// failed says which tasks failed and why, as far as their logs are on the volume.
func (r *reporting) failed(g *gate.Report) []string {
	var out []string
	for _, name := range r.tasks.with(statusFailed) {
		if name == "gate" && g != nil && g.Verdict == gate.Blocked {
			continue
		}
		what := name + " failed"
		if why := lastError(r.o.RunDir, name, r.o.Owner); why != "" {
			what += ": " + why
		}
		out = append(out, what)
	}
	return out
}

// results takes what the pipeline tells from what the page shows.
func (r *reporting) results(d *report.Data) {
	v := r.values
	if d.Eval != nil {
		v["model-digest"] = withAlgorithm(d.Eval.Candidate.Digest)
		v["val-loss"], v["test-loss"] = fmt.Sprint(d.Eval.ValLoss), fmt.Sprint(d.Eval.TestLoss)
	}
	r.reasons = r.failed(d.Gate)
	if d.Gate == nil {
		return
	}
	v["verdict"], r.reasons = d.Gate.Verdict, append(r.reasons, d.Gate.Reasons...)
	if d.Gate.Verdict != gate.Pass || !r.tasks.mayHave("promote") {
		return
	}
	p, err := readWith(filepath.Join(r.o.RunDir, PromoteReportFile), fromJSON[Promotion])
	if err == nil && p.Version == d.Gate.Candidate {
		v["model-uri"] = p.Location
	}
}

// reading gathers the parts of a report.
type reading struct {
	dir   string
	data  *report.Data
	tasks statuses
}

// readPart reads what a task wrote, or says why it is absent.
func readPart[T any](r *reading, task, name string, from func(path string) (T, error)) T {
	var none T
	if r.tasks.skipped(task) {
		r.data.Absent = append(r.data.Absent, fmt.Sprintf("%s: %s did not run", name, task))
		return none
	}
	v, err := from(filepath.Join(r.dir, name))
	if err != nil {
		r.data.Absent = append(r.data.Absent, fmt.Sprintf("%s: %v", name, err))
		return none
	}
	return v
}
