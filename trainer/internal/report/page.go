package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"regexp"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/evaluate"
	"github.com/trainyard/trainyard/trainer/internal/gate"
	"github.com/trainyard/trainyard/trainer/internal/lineage"
)

//go:embed page.html
var pageText string

// page is what the template shows.
type page struct {
	Data
	Loss      *lineChart
	Detectors []bar
	Timing    []timing
	Figures   []figure
	Rules     []rule
}

type timing struct {
	Stage            string
	Waiting, Working bar
}

type figure struct{ Name, Val, Test string }

type rule struct {
	gate.Result
	Number, Interval, Limit string
}

// WriteHTML writes the page.
func WriteHTML(w io.Writer, d Data) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"short": gate.Short,
		"shown": shown,
		"plus":  func(a, b float64) float64 { return a + b },
		"ok":    func(s lineage.Status) bool { return s == lineage.OK },
		"bad": func(s lineage.Status) bool {
			return s == lineage.Mismatch || s == lineage.Missing || s == lineage.Untraced
		},
	}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("report template: %w", err)
	}
	p := page{Data: d, Loss: lossChart(d.Losses), Timing: timings(d.Stages), Figures: figures(d.Eval)}
	if q := d.Quality; q != nil {
		var names []string
		var values, limits []float64
		for _, f := range q.Detectors {
			names, values, limits = append(names, f.Name), append(values, f.Percent), append(limits, f.MaxPercent)
		}
		p.Detectors = scaleBars(names, values, limits, func(i int) string {
			f := q.Detectors[i]
			return fmt.Sprintf("%.2f %% (%d of %d), at most %.2f %%", f.Percent, f.Flagged, f.Documents, f.MaxPercent)
		})
	}
	if d.Gate != nil {
		for _, r := range d.Gate.Rules {
			p.Rules = append(p.Rules, rule{r, number(r.Value), span(r.Interval), number(r.Threshold)})
		}
	}
	return t.Execute(w, p)
}

func lossChart(ls []Loss) *lineChart {
	train := series{name: "train", class: "train"}
	val := series{name: "validation", class: "val"}
	for _, l := range ls {
		train.points = append(train.points, point{float64(l.Step), l.Train})
		val.points = append(val.points, point{float64(l.Step), l.Val})
	}
	return newLineChart("Loss in nats per token", "step", []series{train, val})
}

func timings(recs []*lineage.Record) []timing {
	var names []string
	var values []float64
	for _, r := range recs {
		names = append(names, r.Stage, r.Stage)
		values = append(values, r.Waiting, r.Working)
	}
	bars := scaleBars(names, values, nil, func(i int) string { return fmt.Sprintf("%.1f s", values[i]) })
	out := make([]timing, len(recs))
	for i := range out {
		out[i] = timing{names[2*i], bars[2*i], bars[2*i+1]}
	}
	return out
}

func figures(r *evaluate.Report) []figure {
	if r == nil {
		return nil
	}
	val, test := r.Splits.Val, r.Splits.Test
	out := []figure{
		{"loss, nats per token", estimate(val.Loss), estimate(test.Loss)},
		{"perplexity", digits(val.Perplexity, 2), digits(test.Perplexity, 2)},
		{"bits per byte", estimate(val.BitsPerByte), estimate(test.BitsPerByte)},
		{"documents", fmt.Sprint(val.DocumentsInSplit), fmt.Sprint(test.DocumentsInSplit)},
		{"tokens", fmt.Sprint(val.Tokens), fmt.Sprint(test.Tokens)},
		{"bytes", fmt.Sprint(val.Bytes), fmt.Sprint(test.Bytes)},
	}
	if b := r.Baseline; b != nil {
		out = append(out,
			figure{"baseline " + gate.Short(b.Digest) + ", nats per token", estimate(b.Splits.Val.Loss), estimate(b.Splits.Test.Loss)},
			figure{"difference to the baseline, " + strings.ReplaceAll(b.Unit, "_", " "), estimate(b.Splits.Val.Difference), estimate(b.Splits.Test.Difference)})
	}
	return out
}

// manyBreaks is a run of line breaks that would look like nothing at all.
var manyBreaks = regexp.MustCompile(`\n{4,}`)

// shown makes of a sample what a reader can see.
func shown(text string) string {
	if text == "" {
		return "(nothing)"
	}
	return manyBreaks.ReplaceAllStringFunc(text, func(run string) string { return fmt.Sprintf("⏎ × %d\n", len(run)) })
}

func estimate(e evaluate.Estimate) string { return digits(e, 4) }

// digits prints an estimate with its interval to n digits behind the point.
func digits(e evaluate.Estimate, n int) string {
	s := fmt.Sprintf("%.*f", n, e.Value)
	if e.Interval != nil {
		s += fmt.Sprintf(" (%.*f to %.*f)", n, e.Interval[0], n, e.Interval[1])
	}
	return s
}

func number(x *float64) string {
	if x == nil || math.IsNaN(*x) {
		return ""
	}
	return fmt.Sprintf("%.4f", *x)
}

func span(i *[2]float64) string {
	if i == nil {
		return ""
	}
	return fmt.Sprintf("%.4f to %.4f", i[0], i[1])
}
