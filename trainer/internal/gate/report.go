package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/evaluate"
)

// Schema names the form of a Report.
const Schema = "trainyard.gate/v1"

// Report is gate_report.json.
type Report struct {
	Schema    string   `json:"schema"`
	Verdict   string   `json:"verdict"` // Pass or Blocked
	Name      string   `json:"name"`
	Alias     string   `json:"alias"`
	Candidate string   `json:"candidate"` // SHA-256, "" where it could not be had
	ValLoss   *float64 `json:"val_loss"`
	TestLoss  *float64 `json:"test_loss"`
	// Promoted is what the alias pointed to when the gate judged, "" for nothing;
	// a promotion that finds something else there must not go on. It means
	// something only in a report that passed.
	Promoted string `json:"promoted"`
	// Baseline is the promoted model that the candidate was compared with.
	Baseline         string   `json:"baseline,omitempty"`
	BaselineTestLoss *float64 `json:"baseline_test_loss,omitempty"`
	CodeImage        string   `json:"code_image"`
	DataQualityGate  bool     `json:"data_quality_gate"`
	Reasons          []string `json:"reasons"` // every one that blocks
	Rules            []Result `json:"rules"`
	Policy           Policy   `json:"policy"`
}

// NewReport draws the verdict. Without a single rule judged it is Blocked.
func NewReport(name, alias string, p Policy, e Evidence) *Report {
	r := &Report{
		Schema: Schema, Verdict: Blocked, Name: name, Alias: alias, Policy: p,
		Candidate: e.Candidate.SHA256, CodeImage: e.Image,
		DataQualityGate: e.QualityErr == nil && e.Quality != nil && e.Quality.Passed,
		Promoted:        e.Promoted.SHA256,
		Reasons:         []string{}, Rules: Judge(p, e),
	}
	if e.Eval != nil && e.EvalErr == nil {
		r.ValLoss, r.TestLoss = ifFinite(e.Eval.Splits.Val.Loss.Value), ifFinite(e.Eval.Splits.Test.Loss.Value)
		if b := e.Eval.Baseline; e.Eval.BaselineState == evaluate.BaselineCompared && b != nil {
			r.Baseline, r.BaselineTestLoss = b.Digest, ifFinite(b.Splits.Test.Loss.Value)
		}
	}
	for _, rule := range r.Rules {
		if rule.Blocks {
			r.Reasons = append(r.Reasons, rule.Sentence)
		}
	}
	if len(r.Rules) > 0 && len(r.Reasons) == 0 {
		r.Verdict = Pass
	}
	return r
}

// ifFinite keeps what JSON cannot hold out of the report.
func ifFinite(x float64) *float64 {
	if !finite(x) {
		return nil
	}
	return &x
}

// Print writes the verdict for people: who, how good, against what, by which
// code, and every reason.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "candidate          %s  val_loss %s  test_loss %s\n", orNone(Short(r.Candidate)), figure(r.ValLoss), figure(r.TestLoss))
	fmt.Fprintf(&b, "baseline           %s  test_loss %s\n", orNone(Short(r.Baseline)), figure(r.BaselineTestLoss))
	fmt.Fprintf(&b, "code_image         %s\n", orNone(r.CodeImage))
	fmt.Fprintf(&b, "data_quality_gate  %t\n", r.DataQualityGate)
	fmt.Fprintf(&b, "gate               %s\n", r.Verdict)
	for _, reason := range r.Reasons {
		fmt.Fprintf(&b, "  - %s\n", reason)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func figure(x *float64) string {
	if x == nil {
		return "none"
	}
	return num(*x)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// ErrReport is wrapped by every error about a report that cannot be trusted.
var ErrReport = errors.New("invalid gate report")

// maxReport bounds what is read, in bytes.
const maxReport = 1 << 20

// ReadReport reads a report and checks that its verdict follows from its rules.
func ReadReport(r io.Reader) (*Report, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxReport+1))
	if err != nil {
		return nil, fmt.Errorf("read gate report: %w", err)
	}
	if len(b) > maxReport {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrReport, maxReport)
	}
	var rep Report
	if err := json.Unmarshal(b, &rep); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReport, err)
	}
	if rep.Schema != Schema {
		return nil, fmt.Errorf("%w: schema is %q, want %q", ErrReport, rep.Schema, Schema)
	}
	blocks := len(rep.Reasons) > 0 || len(rep.Rules) == 0
	for _, rule := range rep.Rules {
		blocks = blocks || rule.Blocks || (rule.Verdict != Pass && rule.Verdict != Noise)
	}
	if want := map[bool]string{true: Blocked, false: Pass}[blocks]; rep.Verdict != want {
		return nil, fmt.Errorf("%w: the verdict is %q, its rules say %q", ErrReport, rep.Verdict, want)
	}
	return &rep, nil
}
