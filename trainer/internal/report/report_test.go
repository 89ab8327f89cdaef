package report

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/trainyard/trainyard/trainer/internal/evaluate"
	"github.com/trainyard/trainyard/trainer/internal/gate"
	"github.com/trainyard/trainyard/trainer/internal/lineage"
	"github.com/trainyard/trainyard/trainer/internal/quality"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func ptr[T any](x T) *T { return &x }

func sha(c string) string { return strings.Repeat(c, 64) }

// sample is a run that was blocked, with every part of a report.
func sample() Data {
	around := func(v float64) evaluate.Estimate {
		return evaluate.Estimate{Value: v, StandardError: ptr(0.05), Interval: &[2]float64{v - 0.1, v + 0.1}}
	}
	split := func(loss float64) evaluate.SplitReport {
		return evaluate.SplitReport{
			File: "val.bin", SHA256: sha("1"), Loss: around(loss), Perplexity: evaluate.Perplexity(around(loss)), BitsPerByte: around(loss / 4),
			Tokens: 28057, Bytes: 100000, DocumentsInSplit: 88, Clusters: 88, Cluster: evaluate.ByDocument,
		}
	}
	rec := func(stage string, waiting, working float64) *lineage.Record {
		return &lineage.Record{
			Stage: stage, RunID: "run1", Outcome: lineage.Succeeded, Waiting: waiting, Working: working,
			Parameters: map[string]string{"max-iters": "300"}, Seeds: map[string]uint64{"seed": 1337},
			Inputs:  []lineage.Artifact{{Name: "train.bin", Kind: lineage.KindData, SHA256: sha("2")}},
			Outputs: []lineage.Artifact{{Name: "best", Kind: lineage.KindModel, SHA256: sha("a")}},
			Started: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
			Host:    lineage.Host{OS: "linux", Arch: "amd64", CPU: "Test CPU", Go: "go1.25.0"},
		}
	}
	stages := []*lineage.Record{rec("prepare", 0, 3.2), rec("train", 90.5, 41), rec("evaluate", 0.5, 2)}
	var losses []Loss
	for i := range 300 {
		l := Loss{Step: i + 1, Train: 8.4*math.Exp(-float64(i)/150) + 2, Val: math.NaN()}
		if (i+1)%100 == 0 {
			l.Val = l.Train + 0.2
		}
		losses = append(losses, l)
	}
	tree := lineage.Tree(stages[1:], sha("a"), func(a lineage.Artifact) lineage.Status { return lineage.OK })
	return Data{
		RunID: "run1", Name: "llm", Made: time.Date(2026, 11, 30, 13, 0, 0, 0, time.UTC),
		Eval: &evaluate.Report{
			Figures: evaluate.Figures{ValLoss: 7.2233, TestLoss: 7.1313, Perplexity: 1250.47, ValPerplexity: 1371.01, TrainIter: 300, ParamsM: 1.378},
			Mode:    evaluate.Sampled, Sample: &evaluate.SampleNote{Documents: 20, Seed: 7}, Candidate: evaluate.Identity{Digest: sha("a")},
			Splits:   evaluate.SplitReports{Val: split(7.2233), Test: split(7.1313)},
			Baseline: &evaluate.Baseline{Identity: evaluate.Identity{Digest: sha("b")}, Name: "llm", Alias: "production", Unit: evaluate.NatsPerToken},
		},
		Gate: &gate.Report{
			Verdict: gate.Blocked, Reasons: []string{"validation loss 7.2233 is more than 6.0000"},
			Rules: []gate.Result{
				{Rule: "max_val_loss", Value: ptr(7.2233), Interval: &[2]float64{7.1, 7.3}, Threshold: ptr(6.0), Verdict: gate.Blocked, Blocks: true, Sentence: "validation loss 7.2233 is more than 6.0000"},
				{Rule: "max_test_loss", Value: ptr(7.13), Threshold: ptr(7.1), Verdict: gate.Noise, Sentence: "within noise"},
				{Rule: "code_image", Verdict: gate.Pass, Sentence: "pinned by digest"},
			},
		},
		Quality: &quality.Report{
			Documents: 88, Separator: "three newlines",
			Detectors: []quality.Finding{
				{Name: "symbol_spam", Flagged: 21, Documents: 88, Percent: 23.86, MaxPercent: 1},
				{Name: "url", Documents: 88, MaxPercent: 5, Pass: true},
			},
			Sensitivity: []quality.Row{{Separator: "file", Documents: 1, Percent: map[string]float64{"symbol_spam": 0}, Pass: true}},
		},
		Losses: losses, Stages: stages,
		Samples: []Sample{{Prompt: "How far is the sun? |", Before: "sun sun sun", After: "150 million kilometers away."}},
		Lineage: &lineage.Report{Tree: tree, Checked: 5, Problems: []lineage.Problem{{Status: lineage.Mismatch, Sentence: "train.bin is another one"}}},
		Absent:  []string{"samples_more.json: no such file"},
	}
}

func html(t *testing.T, d Data) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteHTML(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs from what was written: look at the difference, then run with -update\n%s", path, got)
	}
}

func TestPageGolden(t *testing.T) { golden(t, "report.html", html(t, sample())) }

func TestCardGolden(t *testing.T) {
	d := sample()
	var b bytes.Buffer
	if err := WriteCard(&b, Card{Name: "llm", Digest: sha("a"), RunID: "run1", License: "apache-2.0", Eval: d.Eval, Reasons: d.Gate.Reasons, Stages: d.Stages}); err != nil {
		t.Fatal(err)
	}
	golden(t, "card.md", b.String())
}

// A page that was saved and opened elsewhere must be all there is: nothing to
// fetch, nothing to run.
func TestPageIsSelfContained(t *testing.T) {
	page := html(t, sample())
	for _, bad := range []string{"<script", "<link", "<img", "<iframe", "src=", "href=", "@import", "url(", "http://", "https://", "ZgotmplZ", "NaN", "Inf"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for _, want := range []string{"prefers-color-scheme: dark", "max-width: 40rem", `name="viewport"`, "<svg", "Gate: blocked"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
	balanced(t, page)
}

// balanced checks that every element that is opened is closed, in order.
func balanced(t *testing.T, page string) {
	t.Helper()
	void := map[string]bool{"meta": true, "line": true}
	var open []string
	for _, m := range regexp.MustCompile(`<(/?)([a-zA-Z0-9]+)`).FindAllStringSubmatch(page, -1) {
		switch {
		case void[m[2]]:
		case m[1] == "":
			if m[2] != "polyline" {
				open = append(open, m[2])
			}
		case len(open) == 0 || open[len(open)-1] != m[2]:
			t.Fatalf("</%s> closes %v", m[2], open)
		default:
			open = open[:len(open)-1]
		}
	}
	if len(open) != 0 {
		t.Errorf("not closed: %v", open)
	}
}

func TestEmptyReportSaysSo(t *testing.T) {
	page := html(t, Data{RunID: "run1", Name: "llm", Absent: []string{"eval_report.json: no such file"}})
	if !strings.Contains(page, "Gate: no verdict") || !strings.Contains(page, "eval_report.json: no such file") {
		t.Errorf("got\n%s", page)
	}
	balanced(t, page)
}

const hostile = "\"><script>alert(1)</script><img src=x onerror=alert(2)>'`{{.}}</style></svg>\n| # [x](javascript:alert(3)) ---\x00"

// fill puts the hostile text into every string of a value, however deep.
func fill(v reflect.Value, skip map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem(), skip)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeOf(time.Time{}) {
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() && !skip[v.Type().Field(i).Name] {
				fill(v.Field(i), skip)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i), skip)
		}
	case reflect.Map:
		if v.Type().Key().Kind() == reflect.String && v.Len() > 0 {
			v.SetMapIndex(reflect.ValueOf(hostile), v.MapIndex(v.MapKeys()[0]))
			if v.Type().Elem().Kind() == reflect.String {
				v.SetMapIndex(reflect.ValueOf("k"), reflect.ValueOf(hostile))
			}
		}
	case reflect.String:
		v.SetString(hostile)
	}
}

func TestHostileTextInEveryField(t *testing.T) {
	d := sample()
	fill(reflect.ValueOf(&d), map[string]bool{"Mode": true})
	page := html(t, d)
	if n := strings.Count(page, "alert(1)"); n < 40 {
		t.Errorf("the text shows %d times: the test reaches too few fields", n)
	}
	for _, bad := range []string{"<script", "<img", "</style></svg>"} {
		if i := strings.Index(page, bad); i >= 0 {
			t.Errorf("the page holds %q: %s", bad, page[max(0, i-80):i+40])
		}
	}
	balanced(t, page)
}

func TestHostileTextInTheCard(t *testing.T) {
	d := sample()
	c := Card{Eval: d.Eval, Reasons: d.Gate.Reasons, Stages: d.Stages}
	fill(reflect.ValueOf(&c), map[string]bool{"Mode": true})
	var b bytes.Buffer
	if err := WriteCard(&b, c); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(b.String(), "---\n")
	front, body, found := strings.Cut(rest, "\n---\n")
	if !found {
		t.Fatal("no end of the YAML")
	}
	var m map[string]any
	if err := yaml.Unmarshal([]byte(front), &m); err != nil {
		t.Fatalf("YAML: %v\n%s", err, front)
	}
	if len(m) != 5 || m["license"] != hostile {
		t.Errorf("YAML holds %v", m)
	}
	// Outside of code spans nothing is markup; inside nothing ends the span.
	outside := regexp.MustCompile("`[^`\n]*`").ReplaceAllString(strings.ReplaceAll(body, "\\`", ""), "")
	for _, bad := range []string{"<script", "<img", "\n| #", "[x](", "\x00"} {
		if strings.Contains(outside, bad) {
			t.Errorf("the card holds %q:\n%s", bad, outside)
		}
	}
}

func TestReadLosses(t *testing.T) {
	got, err := ReadLosses(strings.NewReader("step,train_loss,val_loss,learning_rate\n1,8.4,,0.001\n2,,8.3,0.001\n"))
	if err != nil || len(got) != 2 || got[0].Train != 8.4 || !math.IsNaN(got[0].Val) || got[1].Val != 8.3 || got[1].Step != 2 {
		t.Errorf("got %v, %v", got, err)
	}
	for name, text := range map[string]string{
		"empty": "", "no column": "step,loss\n1,2\n", "not a number": "step,train_loss,val_loss\n1,x,\n",
		"not a step": "step,train_loss,val_loss\n1.5,2,\n", "a short row": "step,train_loss,val_loss\n1,2\n",
	} {
		if _, err := ReadLosses(strings.NewReader(text)); !errors.Is(err, ErrHistory) {
			t.Errorf("%s: error %v, want ErrHistory", name, err)
		}
	}
}

func FuzzReadLosses(f *testing.F) {
	f.Add("step,train_loss,val_loss\n1,8.4,\n2,,inf\n")
	f.Fuzz(func(t *testing.T, text string) {
		ls, err := ReadLosses(strings.NewReader(text))
		if err != nil && !errors.Is(err, ErrHistory) {
			t.Errorf("error %v is not an ErrHistory", err)
		}
		var b bytes.Buffer
		if err := WriteHTML(&b, Data{Losses: ls}); err != nil {
			t.Error(err)
		}
		if strings.Contains(b.String(), "NaN") {
			t.Errorf("NaN in the page of %q", text)
		}
	})
}

// The chart must put known values where they belong.
func TestLineChartScales(t *testing.T) {
	c := newLineChart("t", "x", []series{{"a", "a", []point{{0, 0}, {5, 10}, {10, 5}, {11, math.NaN()}, {12, math.Inf(1)}}}, {"none", "n", nil}})
	want := fmt.Sprintf("%.1f,%.1f %.1f,%.1f %.1f,%.1f", c.Left, c.Bottom, (c.Left+c.Right)/2, c.Top, c.Right, (c.Top+c.Bottom)/2)
	if len(c.Lines) != 1 || c.Lines[0].Points != want {
		t.Errorf("got %+v, want %s", c.Lines, want)
	}
	if newLineChart("t", "x", []series{{"a", "a", nil}}) != nil {
		t.Error("a chart of nothing")
	}
	if c := newLineChart("t", "x", []series{{"a", "a", []point{{3, 7}}}}); strings.Contains(c.Lines[0].Points, "NaN") || len(c.YTicks) == 0 {
		t.Errorf("one point: %+v", c)
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		n      int
		want   string
	}{
		{0, 300, 6, "[0 50 100 150 200 250 300]"}, {2.1, 9.8, 5, "[4 6 8]"}, {0, 1, 5, "[0 0.2 0.4 0.6000000000000001 0.8 1]"},
	} {
		if got := fmt.Sprint(ticks(c.lo, c.hi, c.n)); got != c.want {
			t.Errorf("%v to %v: %s, want %s", c.lo, c.hi, got, c.want)
		}
	}
}

func TestThinKeepsBothEnds(t *testing.T) {
	ps := make([]point, 12345)
	for i := range ps {
		ps[i].x = float64(i)
	}
	got := thin(ps)
	if len(got) != maxPoints || got[0].x != 0 || got[maxPoints-1].x != 12344 {
		t.Errorf("%d points from %v to %v", len(got), got[0], got[len(got)-1])
	}
}

func TestBarsMarkTheLimit(t *testing.T) {
	got := scaleBars([]string{"a", "b"}, []float64{20, 1}, []float64{1, 5}, func(int) string { return "" })
	if got[0].Percent != 100 || got[0].Limit != 5 || !got[0].Bad || got[1].Percent != 5 || got[1].Limit != 25 || got[1].Bad {
		t.Errorf("got %+v", got)
	}
	if z := scaleBars([]string{"a"}, []float64{0}, nil, func(int) string { return "" }); z[0].Percent != 0 || z[0].Limit != -1 {
		t.Errorf("all zero: %+v", z)
	}
}

// A young model often answers with line breaks alone, or with nothing.
func TestSamplesCanBeSeen(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "(nothing)",
		"a\n\nb\n\n\nc":                      "a\n\nb\n\n\nc",
		"a" + strings.Repeat("\n", 64) + "b": "a⏎ × 64\nb",
	} {
		if got := shown(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
