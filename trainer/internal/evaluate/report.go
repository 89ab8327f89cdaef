package evaluate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// Schema names the form of a Report.
const Schema = "trainyard.eval/v1"

// Modes of a measurement.
const (
	Full    = "full"
	Sampled = "sampled"
)

// What a report says of the baseline.
const (
	BaselineCompared = "compared"
	BaselineNone     = "none"         // the store answered that nothing is promoted
	BaselineUnasked  = "not_measured" // evaluation was told not to compare
)

// Figures are the six keys that dashboards read. Losses are in nats per token,
// rounded to 4 digits; perplexity is exp of the test loss.
type Figures struct {
	ValLoss       float64 `json:"val_loss"`
	TestLoss      float64 `json:"test_loss"`
	Perplexity    float64 `json:"perplexity"`
	ValPerplexity float64 `json:"val_perplexity"`
	TrainIter     int     `json:"train_iter"`
	ParamsM       float64 `json:"params_M"`
}

// Report is eval_report.json. It holds nothing of time or machine, so equal
// models and data give equal bytes; those are in the lineage record.
type Report struct {
	Figures
	Schema    string       `json:"schema"`
	Mode      string       `json:"mode"`
	Sample    *SampleNote  `json:"sample,omitempty"`
	Candidate Identity     `json:"candidate"`
	Splits    SplitReports `json:"splits"`
	// BaselineState is one of the Baseline constants.
	BaselineState string    `json:"baseline_state"`
	Baseline      *Baseline `json:"baseline,omitempty"`
	Method        string    `json:"method"`
}

// Method says in one sentence how the intervals came about.
const Method = "each token of the split predicted once in rows of block size; standard errors over clusters by the linearised ratio estimator (Cochran 1977, section 2.11), differences paired by cluster, 95 % intervals by Student's t"

// SampleNote says that a report is of a sample.
type SampleNote struct {
	Documents int    `json:"documents"` // asked for, per split
	Seed      uint64 `json:"seed"`
	Note      string `json:"note"`
}

// Identity names a measured model.
type Identity struct {
	Digest    string `json:"digest"`           // SHA-256 of the model, hex
	Tokenizer string `json:"tokenizer_sha256"` // of tokenizer.json
	VocabSize int    `json:"vocab_size"`
	BlockSize int    `json:"block_size"`
	Params    int64  `json:"params"`
}

// SplitReports holds one report per held-out split.
type SplitReports struct {
	Val  SplitReport `json:"val"`
	Test SplitReport `json:"test"`
}

// SplitReport is what was measured on one split.
type SplitReport struct {
	File             string   `json:"file"`
	SHA256           string   `json:"sha256"`
	Loss             Estimate `json:"loss"`          // nats per token
	Perplexity       Estimate `json:"perplexity"`    // exp of loss
	BitsPerByte      Estimate `json:"bits_per_byte"` // of the text that the tokens stand for
	Tokens           int64    `json:"tokens"`        // that counted
	Bytes            int64    `json:"bytes"`
	DocumentsInSplit int      `json:"documents"`
	Cluster          string   `json:"cluster"`  // ByDocument or ByWindow
	Clusters         int      `json:"clusters"` // measured
}

// Baseline is the promoted model on the same documents.
type Baseline struct {
	Identity
	Name          string         `json:"name"`
	Alias         string         `json:"alias"`
	SameTokenizer bool           `json:"same_tokenizer"`
	Unit          string         `json:"unit"` // of the differences
	Splits        BaselineSplits `json:"splits"`
}

// BaselineSplits holds one comparison per held-out split.
type BaselineSplits struct {
	Val  BaselineSplit `json:"val"`
	Test BaselineSplit `json:"test"`
}

// BaselineSplit is the baseline on one split. Difference is candidate minus
// baseline, below zero where the candidate is better.
type BaselineSplit struct {
	Loss        Estimate `json:"loss"`
	BitsPerByte Estimate `json:"bits_per_byte"`
	Difference  Estimate `json:"difference"`
}

func (r *SplitReport) fill(sums []Sums) (err error) {
	if r.Loss, err = LossPerToken(sums); err != nil {
		return err
	}
	r.Perplexity = Perplexity(r.Loss)
	if math.IsInf(r.Perplexity.Value, 0) {
		return fmt.Errorf("%w: perplexity of a loss of %v nats", ErrNotFinite, r.Loss.Value)
	}
	if p := r.Perplexity.Interval; p != nil && math.IsInf(p[1], 0) {
		r.Perplexity.Interval = nil
	}
	if r.BitsPerByte, err = BitsPerByte(sums); err != nil {
		return fmt.Errorf("bits per byte: %w", err)
	}
	t := Total(sums)
	r.Tokens, r.Bytes = t.Tokens, t.Bytes
	return nil
}

// SetFigures fills the six keys from the splits.
func (r *Report) SetFigures(trainIter int) {
	r.Figures = Figures{
		ValLoss:       round(r.Splits.Val.Loss.Value, 4),
		TestLoss:      round(r.Splits.Test.Loss.Value, 4),
		Perplexity:    round(r.Splits.Test.Perplexity.Value, 2),
		ValPerplexity: round(r.Splits.Val.Perplexity.Value, 2),
		TrainIter:     trainIter,
		ParamsM:       round(float64(r.Candidate.Params)/1e6, 3),
	}
}

func round(x float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(x*p) / p
}

// ErrReport is wrapped by every error about a report that cannot be trusted.
var ErrReport = errors.New("invalid evaluation report")

// maxReport bounds what is read, in bytes.
const maxReport = 1 << 20

// ReadReport reads a report and checks it: a key that is missing, a number that
// is not one and figures that contradict each other are errors.
func ReadReport(r io.Reader) (*Report, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxReport+1))
	if err != nil {
		return nil, fmt.Errorf("read evaluation report: %w", err)
	}
	if len(b) > maxReport {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrReport, maxReport)
	}
	var rep Report
	if err := json.Unmarshal(b, &rep); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReport, err)
	}
	if err := rep.Validate(); err != nil {
		return nil, err
	}
	return &rep, nil
}
