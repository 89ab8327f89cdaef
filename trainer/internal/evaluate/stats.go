package evaluate

import (
	"errors"
	"fmt"
	"math"
)

// Confidence is the level of every interval in a report.
const Confidence = 0.95

// Sums are what one document (one cluster) adds to a split.
type Sums struct {
	Loss   float64 // nats, summed over the tokens that count
	Tokens int64   // tokens that count
	Bytes  int64   // bytes of text that those tokens stand for
}

// Estimate is a ratio with its uncertainty.
type Estimate struct {
	Value float64 `json:"value"`
	// StandardError is missing when there are fewer than two documents: a
	// spread cannot be had from one.
	StandardError *float64 `json:"standard_error"`
	// Interval is the 95 % confidence interval, missing like StandardError.
	Interval *[2]float64 `json:"interval"`
}

// ErrNotFinite is wrapped by errors about a loss that is NaN or infinite.
var ErrNotFinite = errors.New("loss is not a finite number")

// ErrNothing is wrapped by errors about a split in which nothing counts.
var ErrNothing = errors.New("nothing to measure")

// LossPerToken estimates nats per token over the documents.
func LossPerToken(docs []Sums) (Estimate, error) {
	return ratio(docs, func(d Sums) (float64, float64) { return d.Loss, float64(d.Tokens) })
}

// BitsPerByte estimates bits per byte of text over the documents: comparable
// between models whose tokenizers differ.
func BitsPerByte(docs []Sums) (Estimate, error) {
	return ratio(docs, func(d Sums) (float64, float64) { return d.Loss / math.Ln2, float64(d.Bytes) })
}

// ratio estimates R = sum(y)/sum(x) with documents as the sampled units, since
// the tokens of one document are not independent of each other. Its standard
// error is the linearised (Taylor series) one of the ratio estimator,
//
//	se^2 = n/(n-1) * sum_i (y_i - R*x_i)^2 / (sum_i x_i)^2
//
// (W. G. Cochran, Sampling Techniques, 3rd ed., 1977, section 2.11, with the finite
// population correction left out: the held-out documents stand for more of
// their kind, not for themselves). The interval is R +- t(n-1) * se with
// Student's t.
func ratio[T any](docs []T, xy func(T) (y, x float64)) (Estimate, error) {
	var sumY, sumX float64
	for i, d := range docs {
		y, x := xy(d)
		if math.IsNaN(y) || math.IsInf(y, 0) {
			return Estimate{}, fmt.Errorf("%w: document %d has %v", ErrNotFinite, i, y)
		}
		sumY += y
		sumX += x
	}
	if !(sumX > 0) {
		return Estimate{}, fmt.Errorf("%w: %d documents hold %v units", ErrNothing, len(docs), sumX)
	}
	e := Estimate{Value: sumY / sumX}
	n := float64(len(docs))
	if n < 2 {
		return e, nil
	}
	var ss float64
	for _, d := range docs {
		y, x := xy(d)
		r := y - float64(e.Value*x)
		ss += float64(r * r)
	}
	se := math.Sqrt(n/(n-1)*ss) / sumX
	half := StudentT(Confidence, len(docs)-1) * se
	e.StandardError = &se
	e.Interval = &[2]float64{e.Value - half, e.Value + half}
	return e, nil
}

// Perplexity returns exp of a loss estimate; the interval's ends are the exp of
// the loss's, so it is not symmetric, and there is no standard error.
func Perplexity(loss Estimate) Estimate {
	p := Estimate{Value: math.Exp(loss.Value)}
	if loss.Interval != nil {
		p.Interval = &[2]float64{math.Exp(loss.Interval[0]), math.Exp(loss.Interval[1])}
	}
	return p
}

// Total adds the documents up.
func Total(docs []Sums) Sums {
	var t Sums
	for _, d := range docs {
		t.Loss += d.Loss
		t.Tokens += d.Tokens
		t.Bytes += d.Bytes
	}
	return t
}
