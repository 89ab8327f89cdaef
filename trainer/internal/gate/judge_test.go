package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/evaluate"
	"github.com/trainyard/trainyard/trainer/internal/store"
)

const (
	digestA = "18a094fa2d54000000000000000000000000000000000000000000000000000a"
	digestB = "6957bbaf0491000000000000000000000000000000000000000000000000000b"
	dataVal = "1111111111111111111111111111111111111111111111111111111111111111"
	dataTst = "2222222222222222222222222222222222222222222222222222222222222222"
)

var goodImage = "registry.example:5000/tools/llm-train:v1@sha256:" + digestB

func ptr[T any](x T) *T { return &x }

// around is an estimate with a symmetric interval.
func around(v, half float64) evaluate.Estimate {
	return evaluate.Estimate{Value: v, StandardError: ptr(half / 2), Interval: &[2]float64{v - half, v + half}}
}

// good is evidence that every rule passes.
func good() Evidence {
	split := func(sha string, loss float64) evaluate.SplitReport {
		return evaluate.SplitReport{
			SHA256: sha, Loss: around(loss, 0.1), Perplexity: around(math.Exp(loss), 10), BitsPerByte: around(loss/4, 0.05),
			Tokens: 28057, Bytes: 100000, DocumentsInSplit: 88, Clusters: 88, Cluster: evaluate.ByDocument,
		}
	}
	return Evidence{
		Candidate: Digest{SHA256: digestA}, Val: Digest{SHA256: dataVal}, Test: Digest{SHA256: dataTst},
		Eval: &evaluate.Report{
			Figures: evaluate.Figures{TrainIter: 300}, Schema: evaluate.Schema, Mode: evaluate.Full,
			Candidate:     evaluate.Identity{Digest: digestA},
			Splits:        evaluate.SplitReports{Val: split(dataVal, 5.2), Test: split(dataTst, 5.1)},
			BaselineState: evaluate.BaselineCompared,
			Baseline: &evaluate.Baseline{
				Identity: evaluate.Identity{Digest: digestB}, SameTokenizer: true, Unit: evaluate.NatsPerToken,
				Splits: evaluate.BaselineSplits{Test: evaluate.BaselineSplit{Loss: around(5.3, 0.1), Difference: around(-0.2, 0.02)}},
			},
		},
		Promoted: Digest{SHA256: digestB},
		Quality:  &Quality{Passed: true, Documents: 880},
		Training: &Training{Step: 300, Total: 300},
		Image:    goodImage,
		Files:    map[string]error{"val.bin": nil, "eval_report.json": nil},
	}
}

func strict() Policy {
	p := Default()
	p.MaxValLoss, p.MaxTestLoss, p.MaxPerplexity, p.MaxBitsPerByte = ptr(6.0), ptr(6.0), ptr(400.0), ptr(2.0)
	p.MaxRegression, p.MaxStandardError, p.MinTrainIter = ptr(0.05), ptr(0.1), ptr(300)
	p.RequiredFiles = []string{"val.bin", "eval_report.json"}
	return p
}

func TestGoodEvidencePasses(t *testing.T) {
	r := NewReport("m", "production", strict(), good())
	if r.Verdict != Pass || len(r.Reasons) != 0 {
		t.Errorf("verdict %s: %v", r.Verdict, r.Reasons)
	}
}

// Each case spoils one thing in good evidence and must block for that reason,
// and for no other.
func TestOneFaultBlocksForItsOwnReason(t *testing.T) {
	down := errors.New("dial tcp: i/o timeout")
	for name, c := range map[string]struct {
		spoil func(p *Policy, e *Evidence)
		want  []string // one part of each reason, in order
	}{
		"validation loss too high": {func(_ *Policy, e *Evidence) { e.Eval.Splits.Val.Loss = around(7.2233, 0.1) }, []string{"validation loss 7.2233 (95 % interval 7.1233 to 7.3233) is more than 6.0000"}},
		"test loss too high":       {func(_ *Policy, e *Evidence) { e.Eval.Splits.Test.Loss = around(7, 0.1) }, []string{"test loss 7.0000"}},
		"perplexity too high":      {func(_ *Policy, e *Evidence) { e.Eval.Splits.Test.Perplexity = around(1250.47, 1) }, []string{"test perplexity 1250.47"}},
		"bits per byte too high":   {func(_ *Policy, e *Evidence) { e.Eval.Splits.Test.BitsPerByte = around(3, 0.1) }, []string{"test bits per byte 3.0000"}},
		"within noise, below":      {func(_ *Policy, e *Evidence) { e.Eval.Splits.Val.Loss = around(5.95, 0.1) }, []string{"validation loss 5.9500 (95 % interval 5.8500 to 6.0500) is within noise of 6.0000"}},
		"within noise, above":      {func(_ *Policy, e *Evidence) { e.Eval.Splits.Val.Loss = around(6.05, 0.1) }, []string{"within noise of 6.0000"}},
		"loss is NaN":              {func(_ *Policy, e *Evidence) { e.Eval.Splits.Val.Loss.Value = math.NaN() }, []string{"validation loss is NaN"}},
		"loss is infinite":         {func(_ *Policy, e *Evidence) { e.Eval.Splits.Val.Loss.Value = math.Inf(-1) }, []string{"validation loss is -Inf"}},
		"interval missing":         {func(_ *Policy, e *Evidence) { e.Eval.Splits.Val.Loss.Interval = nil }, []string{"has no interval"}},
		"interval is NaN":          {func(_ *Policy, e *Evidence) { e.Eval.Splits.Val.Loss.Interval[1] = math.NaN() }, []string{"impossible interval"}},
		"interval elsewhere":       {func(_ *Policy, e *Evidence) { e.Eval.Splits.Val.Loss.Interval = &[2]float64{1, 2} }, []string{"impossible interval"}},
		"no evaluation": {func(p *Policy, e *Evidence) { e.Eval, e.EvalErr = nil, errors.New("eval_report.json: no such file") },
			[]string{"no such file", "validation loss was not", "test loss was not", "perplexity was not", "bits per byte was not", "nothing was compared", "step is not known"}},
		"evaluation of another model": {func(_ *Policy, e *Evidence) { e.Candidate.SHA256 = digestB }, []string{"the candidate is 6957bbaf0491, but 18a094fa2d54 was evaluated"}},
		"candidate unreadable":        {func(_ *Policy, e *Evidence) { e.Candidate = Digest{Err: down} }, []string{"the candidate has no digest: dial"}},
		"candidate without a digest":  {func(_ *Policy, e *Evidence) { e.Candidate = Digest{} }, []string{"the candidate has no digest: no reason"}},
		"other validation data":       {func(_ *Policy, e *Evidence) { e.Val.SHA256 = dataTst }, []string{"the validation split is 222222222222"}},
		"other test data":             {func(_ *Policy, e *Evidence) { e.Test.SHA256 = dataVal }, []string{"the test split is 111111111111"}},
		"a sample":                    {func(_ *Policy, e *Evidence) { e.Eval.Mode = evaluate.Sampled }, []string{"the evaluation is sampled"}},
		"mode unknown":                {func(p *Policy, e *Evidence) { e.Eval.Mode = ""; p.AllowSampled = true }, []string{"the evaluation is "}},
		"one document":                {func(_ *Policy, e *Evidence) { e.Eval.Splits.Test.DocumentsInSplit = 1 }, []string{"the test split has 1 documents"}},
		"standard error too large":    {func(_ *Policy, e *Evidence) { e.Eval.Splits.Test.Loss.StandardError = ptr(0.2) }, []string{"standard error 0.2000 of the test loss"}},
		"standard error missing":      {func(_ *Policy, e *Evidence) { e.Eval.Splits.Val.Loss.StandardError = nil }, []string{"val loss has no standard error"}},
		"standard error is NaN":       {func(_ *Policy, e *Evidence) { e.Eval.Splits.Val.Loss.StandardError = ptr(math.NaN()) }, []string{"val loss has no standard error"}},
		"worse than the promoted":     {func(_ *Policy, e *Evidence) { e.Eval.Baseline.Splits.Test.Difference = around(0.2, 0.02) }, []string{"test loss minus that of the promoted 6957bbaf0491, in nats per token, 0.2000"}},
		"perhaps worse":               {func(_ *Policy, e *Evidence) { e.Eval.Baseline.Splits.Test.Difference = around(0.04, 0.02) }, []string{"within noise of 0.0500"}},
		"difference has no interval":  {func(_ *Policy, e *Evidence) { e.Eval.Baseline.Splits.Test.Difference.Interval = nil }, []string{"has no interval"}},
		"store down":                  {func(_ *Policy, e *Evidence) { e.Promoted = Digest{Err: down} }, []string{"promoted model is not known: dial"}},
		"store denies":                {func(_ *Policy, e *Evidence) { e.Promoted = Digest{Err: store.ErrDenied} }, []string{"access denied"}},
		"bucket is missing":           {func(_ *Policy, e *Evidence) { e.Promoted = Digest{Err: store.ErrNoBucket} }, []string{"no such bucket"}},
		"pointer is damaged":          {func(_ *Policy, e *Evidence) { e.Promoted = Digest{Err: store.ErrIntegrity} }, []string{"integrity"}},
		"nobody asked the store":      {func(_ *Policy, e *Evidence) { e.Promoted = Digest{} }, []string{"promoted model is not known"}},
		"promoted since":              {func(_ *Policy, e *Evidence) { e.Promoted.SHA256 = digestA }, []string{"18a094fa2d54 is promoted now, but the evaluation compared with 6957bbaf0491"}},
		"withdrawn since":             {func(_ *Policy, e *Evidence) { e.Promoted = Digest{Err: store.ErrNotFound} }, []string{"nothing is promoted now"}},
		"not compared": {func(_ *Policy, e *Evidence) { e.Eval.BaselineState, e.Eval.Baseline = evaluate.BaselineUnasked, nil },
			[]string{"6957bbaf0491 is promoted, but the evaluation compared with nothing"}},
		"promoted for the first time since": {func(p *Policy, e *Evidence) {
			e.Eval.BaselineState, e.Eval.Baseline, p.MaxRegression = evaluate.BaselineNone, nil, nil
		}, []string{"6957bbaf0491 is promoted, but the evaluation compared with nothing"}},
		"training stopped early":   {func(_ *Policy, e *Evidence) { e.Training = &Training{Step: 200, Total: 300, StopReason: "flat"} }, []string{"stopped at step 200 of 300 (flat)"}},
		"training interrupted":     {func(p *Policy, e *Evidence) { e.Training = &Training{Step: 200, Total: 300}; p.AllowEarlyStop = true }, []string{"ended at step 200 of 300"}},
		"training unknown":         {func(_ *Policy, e *Evidence) { e.Training, e.TrainingErr = nil, down }, []string{"not known whether training reached its end: dial"}},
		"training state is empty":  {func(_ *Policy, e *Evidence) { e.Training = &Training{} }, []string{"step 0 of 0, which cannot be"}},
		"candidate of an old step": {func(_ *Policy, e *Evidence) { e.Eval.TrainIter = 200 }, []string{"the candidate is of step 200, the policy asks for 300"}},
		"data quality not passed": {func(_ *Policy, e *Evidence) {
			e.Quality = &Quality{Documents: 88, Failing: []string{"symbol_spam", "too_short"}}
		}, []string{"not passed over 88 documents: symbol_spam, too_short"}},
		"data quality unknown":      {func(_ *Policy, e *Evidence) { e.Quality, e.QualityErr = nil, down }, []string{"data quality is not known: dial"}},
		"data quality over nothing": {func(_ *Policy, e *Evidence) { e.Quality.Documents = 0 }, []string{"counts 0 documents"}},
		"image by tag":              {func(_ *Policy, e *Evidence) { e.Image = "registry.example/train:latest" }, []string{"image is not a digest reference"}},
		"no image":                  {func(_ *Policy, e *Evidence) { e.Image = "" }, []string{"no code image was given"}},
		"tag where none is asked":   {func(p *Policy, e *Evidence) { e.Image = "train:latest"; p.RequireImage = false }, []string{"not a digest reference"}},
		"a file is missing":         {func(_ *Policy, e *Evidence) { e.Files["val.bin"] = errors.New("no such file") }, []string{"val.bin is missing: no such file"}},
		"nobody looked for a file":  {func(_ *Policy, e *Evidence) { e.Files = nil }, []string{"val.bin is missing", "eval_report.json is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, e := strict(), good()
			c.spoil(&p, &e)
			r := NewReport("m", "production", p, e)
			if r.Verdict != Blocked || len(r.Reasons) != len(c.want) {
				t.Fatalf("verdict %s for %d reasons, want %d:\n%s", r.Verdict, len(r.Reasons), len(c.want), strings.Join(r.Reasons, "\n"))
			}
			for i, want := range c.want {
				if !strings.Contains(r.Reasons[i], want) {
					t.Errorf("reason %d: %s\nwant it to say %q", i, r.Reasons[i], want)
				}
			}
		})
	}
}

// The published run was blocked for two reasons at once; both must be listed.
func TestEveryReasonIsListed(t *testing.T) {
	p, e := strict(), good()
	e.Eval.Splits.Val.Loss = around(7.2233, 0.1)
	e.Quality = &Quality{Documents: 88, Failing: []string{"symbol_spam", "high_repetition", "too_short"}}
	r := NewReport("m", "production", p, e)
	var out strings.Builder
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	const want = `candidate          18a094fa2d54  val_loss 7.2233  test_loss 5.1000
baseline           6957bbaf0491  test_loss 5.3000
code_image         %s
data_quality_gate  false
gate               blocked
  - validation loss 7.2233 (95 %% interval 7.1233 to 7.3233) is more than 6.0000
  - the data quality gate was not passed over 88 documents: symbol_spam, high_repetition, too_short
`
	if got := out.String(); got != fmt.Sprintf(want, goodImage) {
		t.Errorf("got\n%s", got)
	}
}

func TestWhatThePolicyAllows(t *testing.T) {
	for name, change := range map[string]func(p *Policy, e *Evidence){
		"within noise": func(p *Policy, e *Evidence) {
			p.WithinNoise = NoisePasses
			e.Eval.Splits.Val.Loss = around(6.05, 0.1)
		},
		"a sample": func(p *Policy, e *Evidence) { p.AllowSampled, e.Eval.Mode = true, evaluate.Sampled },
		"an early stop": func(p *Policy, e *Evidence) {
			p.AllowEarlyStop = true
			e.Training = &Training{Step: 200, Total: 300, StopReason: "flat"}
		},
		"no image":        func(p *Policy, e *Evidence) { p.RequireImage, e.Image = false, "" },
		"no data quality": func(p *Policy, e *Evidence) { p.RequireDataQuality, e.Quality = false, nil },
		"one document": func(p *Policy, e *Evidence) {
			p.MinDocuments = 1
			e.Eval.Splits.Val.DocumentsInSplit, e.Eval.Splits.Val.Cluster = 1, evaluate.ByWindow
		},
		"the first model": func(_ *Policy, e *Evidence) {
			e.Promoted = Digest{Err: fmt.Errorf("aliases/production.json: %w", store.ErrNotFound)}
			e.Eval.BaselineState, e.Eval.Baseline = evaluate.BaselineNone, nil
		},
		"the promoted model again": func(_ *Policy, e *Evidence) {
			e.Promoted.SHA256, e.Eval.Baseline.Digest = digestA, digestA
			e.Eval.Baseline.Splits.Test.Difference = around(0, 0)
		},
		"no limits at all": func(p *Policy, _ *Evidence) { *p = Default(); p.RequiredFiles = nil },
		"no comparison asked for": func(p *Policy, e *Evidence) {
			p.MaxRegression = nil
			e.Eval.BaselineState, e.Eval.Baseline = evaluate.BaselineUnasked, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, e := strict(), good()
			change(&p, &e)
			if r := NewReport("m", "production", p, e); r.Verdict != Pass {
				t.Errorf("blocked: %v", r.Reasons)
			}
		})
	}
}

func TestNoEvidenceAtAllBlocks(t *testing.T) {
	r := NewReport("m", "production", Default(), Evidence{})
	if r.Verdict != Blocked || len(r.Reasons) < 5 {
		t.Errorf("verdict %s, reasons %q", r.Verdict, r.Reasons)
	}
}

func TestReadReport(t *testing.T) {
	pass := NewReport("m", "production", strict(), good())
	e := good()
	e.Quality = nil
	fail := NewReport("m", "production", strict(), e)
	for name, r := range map[string]*Report{"pass": pass, "blocked": fail} {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadReport(bytes.NewReader(b))
		if err != nil || got.Verdict != r.Verdict || got.Promoted != digestB || len(got.Rules) != len(r.Rules) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	forged := *fail
	forged.Verdict = Pass
	quiet := forged
	quiet.Reasons = nil
	none := *pass
	none.Rules = nil
	old := *pass
	old.Schema = ""
	for name, r := range map[string]*Report{"verdict changed": &forged, "reasons removed": &quiet, "no rules": &none, "no schema": &old} {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadReport(bytes.NewReader(b)); !errors.Is(err, ErrReport) {
			t.Errorf("%s: error %v, want ErrReport", name, err)
		}
	}
	for name, text := range map[string]string{"empty": "", "cut": "{", "huge": strings.Repeat(" ", maxReport+1)} {
		if _, err := ReadReport(strings.NewReader(text)); !errors.Is(err, ErrReport) {
			t.Errorf("%s: error %v, want ErrReport", name, err)
		}
	}
}

func FuzzReadReport(f *testing.F) {
	for _, e := range []Evidence{good(), {}} {
		b, err := json.Marshal(NewReport("m", "production", Default(), e))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ReadReport(bytes.NewReader(b))
		if err != nil {
			if !errors.Is(err, ErrReport) {
				t.Errorf("error %v is not an ErrReport", err)
			}
			return
		}
		for _, rule := range r.Rules {
			if r.Verdict == Pass && (rule.Blocks || rule.Verdict == Blocked) {
				t.Errorf("a pass with %+v", rule)
			}
		}
	})
}
