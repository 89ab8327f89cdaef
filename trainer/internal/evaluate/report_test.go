package evaluate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

// The published pipeline that this report must stand in for writes six keys
// with an indent of two: 143 bytes for these values.
func TestFiguresAreByteExact(t *testing.T) {
	got, err := json.MarshalIndent(Figures{
		ValLoss: 7.2233, TestLoss: 7.1313, Perplexity: 1250.47, ValPerplexity: 1371.01,
		TrainIter: 200, ParamsM: 1.378,
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "val_loss": 7.2233,
  "test_loss": 7.1313,
  "perplexity": 1250.47,
  "val_perplexity": 1371.01,
  "train_iter": 200,
  "params_M": 1.378
}`
	if string(got) != want || len(got) != 143 {
		t.Errorf("%d bytes:\n%s\nwant 143 bytes:\n%s", len(got), got, want)
	}
}

// The figures are rounded from what was measured: perplexity is exp of the test
// loss before rounding, which is why the published pair is 7.1313 and 1250.47,
// not exp(7.1313) = 1250.50.
func TestSetFiguresRounds(t *testing.T) {
	r := Report{Candidate: Identity{Params: 1_378_048}}
	r.Splits.Val.Loss.Value = math.Log(1371.01)
	r.Splits.Test.Loss.Value = math.Log(1250.47)
	r.Splits.Val.Perplexity = Perplexity(r.Splits.Val.Loss)
	r.Splits.Test.Perplexity = Perplexity(r.Splits.Test.Loss)
	r.SetFigures(200)
	if want := (Figures{7.2233, 7.1313, 1250.47, 1371.01, 200, 1.378}); r.Figures != want {
		t.Errorf("got %+v, want %+v", r.Figures, want)
	}
}

// measured makes a report as the stage does, with the bigram model.
func measured(t *testing.T, o Options, base *Subject) *Report {
	t.Helper()
	flat := func(l float32) func(_, _ int32) float32 {
		return func(in, target int32) float32 { return l + float32(in+target)/100 }
	}
	cand := Subject{Scorer: &bigram{loss: flat(2)}, Tokenizer: letters{}, VocabSize: 10, Rows: 2, Block: 4}
	sha := strings.Repeat("ab", 32)
	r := &Report{
		Schema: Schema, Mode: Full, Method: Method, BaselineState: BaselineNone,
		Candidate: Identity{Digest: sha, Tokenizer: sha, VocabSize: 10, BlockSize: 4, Params: 1000},
	}
	if base != nil {
		r.BaselineState = BaselineCompared
		r.Baseline = &Baseline{Identity: Identity{Digest: sha}, SameTokenizer: o.SameTokenizer, Unit: BitsPerByteU}
		if o.SameTokenizer {
			r.Baseline.Unit = NatsPerToken
		}
	}
	val := Slice{1, 2, 3, eot, 4, 5, eot, 6, 7, 8, 1, eot}
	test := Slice{8, 7, eot, 6, 5, 4, eot, 3, eot}
	for _, s := range []struct {
		tokens Slice
		rep    *SplitReport
		vs     func() *BaselineSplit
	}{
		{val, &r.Splits.Val, func() *BaselineSplit { return &r.Baseline.Splits.Val }},
		{test, &r.Splits.Test, func() *BaselineSplit { return &r.Baseline.Splits.Test }},
	} {
		rep, vs, err := Split(context.Background(), "x", s.tokens, documents(s.tokens), cand, base, o)
		if err != nil {
			t.Fatal(err)
		}
		rep.SHA256 = sha
		*s.rep = rep
		if vs != nil {
			*s.vs() = *vs
		}
	}
	r.SetFigures(200)
	return r
}

func roundTrip(t *testing.T, r *Report) (*Report, error) {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return ReadReport(bytes.NewReader(b))
}

func TestReportRoundTrip(t *testing.T) {
	other := &Subject{Scorer: &bigram{loss: func(_, _ int32) float32 { return 3 }}, Tokenizer: pairs{}, VocabSize: 201, Rows: 3, Block: 2}
	same := &Subject{Scorer: &bigram{loss: func(_, _ int32) float32 { return 3 }}, Tokenizer: letters{}, VocabSize: 10, Rows: 3, Block: 2}
	for name, r := range map[string]*Report{
		"no baseline":               measured(t, Options{}, nil),
		"baseline, same tokenizer":  measured(t, Options{SameTokenizer: true}, same),
		"baseline, other tokenizer": measured(t, Options{}, other),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := roundTrip(t, r)
			if err != nil {
				t.Fatal(err)
			}
			a, _ := json.Marshal(r)
			b, _ := json.Marshal(got)
			if !bytes.Equal(a, b) {
				t.Errorf("read back\n%s\nwrote\n%s", b, a)
			}
		})
	}
}

func TestSplitComparesInTheRightUnit(t *testing.T) {
	base := &Subject{Scorer: &bigram{loss: func(_, _ int32) float32 { return 3 }}, Tokenizer: pairs{}, VocabSize: 201, Rows: 3, Block: 2}
	r := measured(t, Options{}, base)
	vs := r.Baseline.Splits.Test
	// The test text is 87 | 654 | 3: 6 bytes. In pairs: 87, 65 4, 3 and three
	// ends are 7 tokens of 3 nats.
	near(t, "baseline's bits per byte", vs.BitsPerByte.Value, 21/math.Ln2/6, 1e-12)
	near(t, "difference", vs.Difference.Value, r.Splits.Test.BitsPerByte.Value-vs.BitsPerByte.Value, 1e-12)
}

func TestOneDocumentFallsBackToWindowsAndSaysSo(t *testing.T) {
	cand := Subject{Scorer: &bigram{}, Tokenizer: letters{}, VocabSize: 10, Rows: 2, Block: 4}
	s := Slice{1, 2, 3, 4, 5, 6, 7, 8, 1, 2, eot}
	rep, _, err := Split(context.Background(), "val", s, documents(s), cand, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if rep.Cluster != ByWindow || rep.DocumentsInSplit != 1 || rep.Clusters != 3 || rep.Loss.StandardError == nil || rep.Tokens != 11 {
		t.Errorf("got %+v", rep)
	}
}

func TestEmptySplitNamesIt(t *testing.T) {
	cand := Subject{Scorer: &bigram{}, Tokenizer: letters{}, VocabSize: 10, Rows: 2, Block: 4}
	_, _, err := Split(context.Background(), "test", Slice{}, nil, cand, nil, Options{})
	if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), "split test") {
		t.Errorf("error %v", err)
	}
}

// Whatever is missing or does not add up must be found when a report is read:
// the gate judges by it.
func TestReadReportRefuses(t *testing.T) {
	base := &Subject{Scorer: &bigram{loss: func(_, _ int32) float32 { return 3 }}, Tokenizer: letters{}, VocabSize: 10, Rows: 3, Block: 2}
	for name, c := range map[string]struct {
		change func(m map[string]any)
		want   string
	}{
		"val_loss missing":         {func(m map[string]any) { delete(m, "val_loss") }, "figures"},
		"test_loss lowered":        {func(m map[string]any) { m["test_loss"] = 1.0 }, "figures"},
		"perplexity missing":       {func(m map[string]any) { delete(m, "perplexity") }, "figures"},
		"no splits":                {func(m map[string]any) { delete(m, "splits") }, "splits.val.sha256"},
		"no loss in a split":       {func(m map[string]any) { delete(at(m, "splits", "test"), "loss") }, "splits.test.loss is 0"},
		"split loss lowered":       {func(m map[string]any) { at(m, "splits", "val", "loss")["value"] = 0.5 }, "outside its interval"},
		"no tokens":                {func(m map[string]any) { at(m, "splits", "val")["tokens"] = 0 }, "counts"},
		"bytes changed":            {func(m map[string]any) { at(m, "splits", "val")["bytes"] = 999 }, "bits_per_byte"},
		"another perplexity":       {func(m map[string]any) { at(m, "splits", "val", "perplexity")["value"] = 9.0 }, "perplexity"},
		"negative standard error":  {func(m map[string]any) { at(m, "splits", "val", "loss")["standard_error"] = -1.0 }, "standard error"},
		"cluster unknown":          {func(m map[string]any) { at(m, "splits", "val")["cluster"] = "batch" }, "cluster"},
		"digest is a tag":          {func(m map[string]any) { at(m, "candidate")["digest"] = "latest" }, "candidate.digest"},
		"no params":                {func(m map[string]any) { at(m, "candidate")["params"] = 0 }, "candidate.params"},
		"schema of another":        {func(m map[string]any) { m["schema"] = "v9" }, "schema"},
		"mode unknown":             {func(m map[string]any) { m["mode"] = "quick" }, "mode"},
		"sampled without a sample": {func(m map[string]any) { m["mode"] = "sampled" }, "mode"},
		"baseline gone":            {func(m map[string]any) { delete(m, "baseline") }, "no baseline"},
		"baseline hidden":          {func(m map[string]any) { m["baseline_state"] = "none" }, "there is a baseline"},
		"baseline state unknown":   {func(m map[string]any) { delete(m, "baseline_state") }, "baseline_state"},
		"baseline digest":          {func(m map[string]any) { at(m, "baseline")["digest"] = "" }, "baseline.digest"},
		"baseline unit":            {func(m map[string]any) { at(m, "baseline")["unit"] = "bits_per_byte" }, "baseline.unit"},
		"baseline loss":            {func(m map[string]any) { delete(at(m, "baseline", "splits", "val"), "loss") }, "baseline.splits.val.loss"},
		"a string for a number":    {func(m map[string]any) { m["val_loss"] = "low" }, "val_loss"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := json.Marshal(measured(t, Options{SameTokenizer: true}, base))
			if err != nil {
				t.Fatal(err)
			}
			var m map[string]any
			if err := json.Unmarshal(b, &m); err != nil {
				t.Fatal(err)
			}
			c.change(m)
			b, err = json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = ReadReport(bytes.NewReader(b)); !errors.Is(err, ErrReport) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want ErrReport with %q", err, c.want)
			}
		})
	}
	for name, s := range map[string]string{
		"empty": "", "not JSON": "val_loss: 1", "NaN": `{"val_loss": NaN}`, "cut": `{"val_loss": 1`, "null": "null",
		"huge": `{"method":"` + strings.Repeat("x", maxReport) + `"}`,
	} {
		if _, err := ReadReport(strings.NewReader(s)); !errors.Is(err, ErrReport) {
			t.Errorf("%s: error %v, want ErrReport", name, err)
		}
	}
}

func at(m map[string]any, path ...string) map[string]any {
	for _, p := range path {
		m = m[p].(map[string]any)
	}
	return m
}

func FuzzReadReport(f *testing.F) {
	f.Add([]byte(`{"schema":"trainyard.eval/v1","mode":"full","splits":{"val":{"loss":{"value":1e999}}}}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ReadReport(bytes.NewReader(b))
		if err == nil && (!(r.ValLoss > 0) || !(r.TestLoss > 0) || r.Candidate.Digest == "") {
			t.Errorf("accepted %s", b)
		}
	})
}
