package evaluate

import (
	"errors"
	"fmt"
	"math"
)

// Units of a comparison.
const (
	NatsPerToken = "nats_per_token"
	BitsPerByteU = "bits_per_byte"
)

// ErrNotPaired is wrapped by errors about two lists of documents that are not
// of the same text.
var ErrNotPaired = errors.New("documents do not pair")

// Compare estimates candidate minus baseline over documents that both models
// scored: below zero the candidate is better. The difference of each document
// is taken first and the ratio estimator applied to the differences, so what
// makes a document hard for both models falls out of the interval.
//
// With unit NatsPerToken both models must have counted the same tokens of each
// document. With BitsPerByteU only the bytes must agree, which is how models
// with different tokenizers are compared.
func Compare(candidate, baseline []Sums, unit string) (Estimate, error) {
	if len(candidate) != len(baseline) {
		return Estimate{}, fmt.Errorf("%w: %d documents for the candidate, %d for the baseline", ErrNotPaired, len(candidate), len(baseline))
	}
	type pair struct{ diff, size float64 }
	pairs := make([]pair, len(candidate))
	for i, c := range candidate {
		b := baseline[i]
		switch unit {
		case NatsPerToken:
			if c.Tokens != b.Tokens {
				return Estimate{}, fmt.Errorf("%w: document %d has %d tokens for the candidate, %d for the baseline", ErrNotPaired, i, c.Tokens, b.Tokens)
			}
			pairs[i] = pair{c.Loss - b.Loss, float64(c.Tokens)}
		case BitsPerByteU:
			if c.Bytes != b.Bytes {
				return Estimate{}, fmt.Errorf("%w: document %d has %d bytes for the candidate, %d for the baseline", ErrNotPaired, i, c.Bytes, b.Bytes)
			}
			pairs[i] = pair{(c.Loss - b.Loss) / math.Ln2, float64(c.Bytes)}
		default:
			return Estimate{}, fmt.Errorf("unknown unit %q: use %s or %s", unit, NatsPerToken, BitsPerByteU)
		}
	}
	return ratio(pairs, func(p pair) (float64, float64) { return p.diff, p.size })
}
