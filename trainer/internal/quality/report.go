package quality

import (
	"context"
	"errors"
	"io"

	"github.com/trainyard/trainyard/trainer/internal/corpus"
)

// Finding is what one detector found.
type Finding struct {
	Name       string    `json:"name"`
	Flagged    int64     `json:"flagged"`
	Documents  int64     `json:"documents"` // the denominator
	Percent    float64   `json:"percent"`
	MaxPercent float64   `json:"max_percent"`
	Pass       bool      `json:"pass"`
	RawFlagged int64     `json:"raw_flagged"` // before cleaning, of RawDocuments
	RawPercent float64   `json:"raw_percent"`
	Examples   []Example `json:"examples,omitempty"`
}

// Row is one line of a sensitivity table.
type Row struct {
	Separator string             `json:"separator"`
	Documents int64              `json:"documents"`
	Flagged   map[string]int64   `json:"flagged"`
	Percent   map[string]float64 `json:"percent"`
	Pass      bool               `json:"pass"`
}

// Report is data_quality_report.json.
type Report struct {
	Gate         bool      `json:"gate"`   // all detectors pass
	Judged       string    `json:"judged"` // which documents the gate is about
	Separator    string    `json:"separator"`
	Documents    int64     `json:"documents"`
	RawDocuments int64     `json:"raw_documents"`
	Options      Options   `json:"options"`
	Detectors    []Finding `json:"detectors"`

	// Sensitivity applies the same rules to the documents before cleaning, in
	// the first SensitivityBytes of the corpus (0: all), under each separator.
	SensitivityBytes int64 `json:"sensitivity_bytes,omitempty"`
	Sensitivity      []Row `json:"sensitivity,omitempty"`
}

// NewReport judges kept, the documents that go into training, and shows raw, all
// documents as they were read, beside it. The gate of no documents is shut.
func NewReport(sep corpus.Separator, raw, kept *Counter) Report {
	r := Report{
		Gate: kept.documents > 0, Judged: "documents kept after cleaning, filters and duplicates",
		Separator: sep.String(), Documents: kept.documents, RawDocuments: raw.documents, Options: kept.opts,
	}
	for d := range Detectors {
		f := Finding{
			Name: d.String(), Flagged: kept.flagged[d], Documents: kept.documents,
			Percent: Percent(kept.flagged[d], kept.documents), MaxPercent: kept.opts.MaxPercent[d.String()],
			RawFlagged: raw.flagged[d], RawPercent: Percent(raw.flagged[d], raw.documents),
			Examples: kept.examples[d],
		}
		f.Pass = f.Percent <= f.MaxPercent
		r.Gate = r.Gate && f.Pass
		r.Detectors = append(r.Detectors, f)
	}
	return r
}

// row returns the counter as a line of a sensitivity table.
func (c *Counter) row(sep corpus.Separator) Row {
	r := Row{
		Separator: sep.String(), Documents: c.documents,
		Flagged: map[string]int64{}, Percent: map[string]float64{}, Pass: c.documents > 0,
	}
	for d := range Detectors {
		p := Percent(c.flagged[d], c.documents)
		r.Flagged[d.String()], r.Percent[d.String()] = c.flagged[d], p
		r.Pass = r.Pass && p <= c.opts.MaxPercent[d.String()]
	}
	return r
}

// Sensitivity reads the corpus once for each separator and returns what the same
// rules say about its documents as they are read.
func Sensitivity(ctx context.Context, files []corpus.File, ropts corpus.ReaderOptions, seps []corpus.Separator, opts Options, workers int) ([]Row, error) {
	rows := make([]Row, len(seps))
	produce := func(_ context.Context, emit func(corpus.Separator) error) error {
		for _, s := range seps {
			if err := emit(s); err != nil {
				return err
			}
		}
		return nil
	}
	work := func(_ int, s corpus.Separator) (Row, error) {
		o := ropts
		o.Separator = s
		return scan(ctx, files, o, opts)
	}
	n := 0
	err := corpus.Ordered(ctx, workers, produce, work, func(r Row) error {
		rows[n] = r
		n++
		return nil
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

func scan(ctx context.Context, files []corpus.File, ropts corpus.ReaderOptions, opts Options) (Row, error) {
	opts.Examples = 0
	c := NewCounter(opts)
	r := corpus.NewReader(ctx, files, ropts)
	defer r.Close()
	var m corpus.Measurer
	for {
		doc, err := r.Next()
		if errors.Is(err, io.EOF) {
			return c.row(ropts.Separator), nil
		}
		if err != nil {
			return Row{}, err
		}
		c.Add(opts.Detect(doc.Text, m.Measure(doc.Text)), doc)
	}
}
