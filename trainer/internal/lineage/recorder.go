package lineage

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
)

// Dir is the folder of the records in a run directory.
const Dir = "lineage"

// Options say whose record a Recorder writes.
type Options struct {
	Run   string // directory
	RunID string
	Stage string
	Now   func() time.Time
	Code  Code
	Host  Host
}

// Recorder gathers a stage's record while the stage works. It is not safe for
// concurrent use.
type Recorder struct {
	o   Options
	rec Record
	err error // the first; Write returns it
}

// Begin starts the record of a stage: its clock runs from here.
func Begin(o Options) *Recorder {
	r := &Recorder{o: o, rec: Record{
		Stage: o.Stage, RunID: o.RunID, Code: o.Code, Host: o.Host, Started: o.Now(),
		Parameters: map[string]string{}, Seeds: map[string]uint64{},
	}}
	if o.Code.Image != "" {
		if name, digest, ok := strings.Cut(o.Code.Image, "@sha256:"); ok {
			r.Add(Artifact{Name: name, URI: "oci://" + o.Code.Image, Kind: KindImage, SHA256: digest})
		}
	}
	if isHex(o.Code.Commit, 40) || isHex(o.Code.Commit, 64) {
		uri := o.Code.Repository
		if uri == "" {
			uri = BuilderID
		}
		r.Add(Artifact{Name: "source", URI: "git+" + uri, Kind: KindSource, Commit: o.Code.Commit})
	}
	return r
}

// Parameter notes a parameter of the stage, printed like fmt.Sprint.
func (r *Recorder) Parameter(name string, value any) { r.rec.Parameters[name] = fmt.Sprint(value) }

// Seed notes a seed.
func (r *Recorder) Seed(name string, seed uint64) { r.rec.Seeds[name] = seed }

// Add notes an input whose digest is known.
func (r *Recorder) Add(a Artifact) { r.rec.Inputs = append(r.rec.Inputs, a) }

// AddOutput notes an output whose digest is known, such as a model.
func (r *Recorder) AddOutput(a Artifact) { r.rec.Outputs = append(r.rec.Outputs, a) }

// Input hashes a file and notes it as an input. A relative path is one inside
// the run directory.
func (r *Recorder) Input(ctx context.Context, kind, path string) {
	if a, ok := r.file(ctx, kind, path); ok {
		r.Add(a)
	}
}

// Output hashes a file and notes it as an output, like Input.
func (r *Recorder) Output(ctx context.Context, kind, path string) {
	if a, ok := r.file(ctx, kind, path); ok {
		r.AddOutput(a)
	}
}

func (r *Recorder) file(ctx context.Context, kind, path string) (Artifact, bool) {
	a := Artifact{Name: filepath.ToSlash(path), Kind: kind}
	full := path
	if filepath.IsAbs(path) {
		a.Name, a.URI = filepath.Base(path), (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
	} else {
		full = filepath.Join(r.o.Run, path)
	}
	sum, err := HashFile(ctx, full)
	if err != nil {
		r.err = errors.Join(r.err, fmt.Errorf("record %s of %s: %w", path, r.o.Stage, err))
		return a, false
	}
	a.SHA256 = sum
	return a, true
}

// Write ends the record and puts it at RUN/lineage/<stage>.json. It fails when a
// file could not be hashed, or when the stage has no output.
func (r *Recorder) Write(outcome string) error {
	if r.err != nil {
		return r.err
	}
	if len(r.rec.Outputs) == 0 {
		return fmt.Errorf("%w: stage %s has no output", ErrRecord, r.o.Stage)
	}
	r.rec.Outcome, r.rec.Finished = outcome, r.o.Now()
	r.rec.Working = seconds(r.rec.Finished.Sub(r.rec.Started))
	r.rec.Waiting = r.waited()
	byName := func(a, b Artifact) int { return strings.Compare(a.Name, b.Name) }
	slices.SortStableFunc(r.rec.Inputs, byName)
	slices.SortStableFunc(r.rec.Outputs, byName)
	dir := filepath.Join(r.o.Run, Dir)
	if err := atomicfile.MkdirAll(dir); err != nil {
		return err
	}
	return atomicfile.WriteJSON(filepath.Join(dir, r.o.Stage+".json"), r.rec)
}

// waited is the time between the latest end of a stage that made one of the
// inputs and the start of this one: what a queue or a scheduler cost.
func (r *Recorder) waited() float64 {
	recs, err := ReadDir(filepath.Join(r.o.Run, Dir))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0 // the record before this one is damaged: Verify will say so
	}
	var last time.Time
	for _, rec := range recs {
		for _, in := range r.rec.Inputs {
			if rec.Stage != r.o.Stage && rec.produced(in) && rec.Finished.After(last) && !rec.Finished.After(r.rec.Started) {
				last = rec.Finished
			}
		}
	}
	if last.IsZero() {
		return 0
	}
	return seconds(r.rec.Started.Sub(last))
}

func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

func (r *Record) produced(in Artifact) bool {
	return slices.ContainsFunc(r.Outputs, func(out Artifact) bool { return !in.External() && out.ID() == in.ID() })
}

// ReadDir reads all records of a folder, in the order of their end.
func ReadDir(dir string) ([]*Record, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read lineage: %w", err)
	}
	var recs []*Record
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".json" {
			continue
		}
		path := filepath.Join(dir, e.Name())
		rec, err := readFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if rec.Stage+".json" != e.Name() {
			return nil, fmt.Errorf("%s: %w: it is of stage %q", path, ErrRecord, rec.Stage)
		}
		recs = append(recs, rec)
	}
	Sort(recs)
	return recs, nil
}

// Sort orders records by their end, ties by stage.
func Sort(recs []*Record) {
	slices.SortFunc(recs, func(a, b *Record) int {
		if c := a.Finished.Compare(b.Finished); c != 0 {
			return c
		}
		return strings.Compare(a.Stage, b.Stage)
	})
}

func readFile(path string) (*Record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Parse(f)
}
