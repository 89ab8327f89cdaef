package evaluate

import (
	"encoding/hex"
	"fmt"
	"math"
)

// Validate reports the first thing that makes a report unfit to judge by.
func (r *Report) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrReport}, args...)...)
	}
	if r.Schema != Schema {
		return bad("schema is %q, want %q", r.Schema, Schema)
	}
	if (r.Mode != Full || r.Sample != nil) && (r.Mode != Sampled || r.Sample == nil) {
		return bad("mode is %q, want %q without or %q with a sample", r.Mode, Full, Sampled)
	}
	if !isSHA256(r.Candidate.Digest) {
		return bad("candidate.digest is %q, want 64 hex digits", r.Candidate.Digest)
	}
	if r.Candidate.Params < 1 {
		return bad("candidate.params is %d, want 1 or more", r.Candidate.Params)
	}
	for _, s := range []struct {
		name string
		SplitReport
	}{{"val", r.Splits.Val}, {"test", r.Splits.Test}} {
		if err := s.validate(); err != nil {
			return bad("splits.%s.%w", s.name, err)
		}
	}
	want := Report{Candidate: r.Candidate, Splits: r.Splits}
	want.SetFigures(r.TrainIter)
	if r.Figures != want.Figures {
		return bad("the figures %+v are not those of the splits %+v", r.Figures, want.Figures)
	}
	switch r.BaselineState {
	case BaselineNone, BaselineUnasked:
		if r.Baseline != nil {
			return bad("baseline_state is %q, yet there is a baseline", r.BaselineState)
		}
	case BaselineCompared:
		if r.Baseline == nil {
			return bad("baseline_state is %q, yet there is no baseline", r.BaselineState)
		}
		return r.Baseline.validate()
	default:
		return bad("baseline_state is %q, want %q, %q or %q", r.BaselineState, BaselineCompared, BaselineNone, BaselineUnasked)
	}
	return nil
}

func (s SplitReport) validate() error {
	switch {
	case !isSHA256(s.SHA256):
		return fmt.Errorf("sha256 is %q, want 64 hex digits", s.SHA256)
	case s.Tokens < 1 || s.Bytes < 1 || s.Clusters < 1 || s.DocumentsInSplit < 1:
		return fmt.Errorf("counts are tokens %d, bytes %d, clusters %d, documents %d, want 1 or more of each", s.Tokens, s.Bytes, s.Clusters, s.DocumentsInSplit)
	case s.Cluster != ByDocument && s.Cluster != ByWindow:
		return fmt.Errorf("cluster is %q, want %q or %q", s.Cluster, ByDocument, ByWindow)
	}
	for _, e := range []struct {
		name string
		Estimate
	}{{"loss", s.Loss}, {"perplexity", s.Perplexity}, {"bits_per_byte", s.BitsPerByte}} {
		if err := e.validate(); err != nil {
			return fmt.Errorf("%s %w", e.name, err)
		}
		if !(e.Value > 0) {
			return fmt.Errorf("%s is %v, want more than 0", e.name, e.Value)
		}
	}
	if want := Perplexity(s.Loss).Value; math.Abs(s.Perplexity.Value-want) > 1e-9*want {
		return fmt.Errorf("perplexity is %v, exp of the loss is %v", s.Perplexity.Value, want)
	}
	if want := s.Loss.Value * float64(s.Tokens) / float64(s.Bytes) / math.Ln2; math.Abs(s.BitsPerByte.Value-want) > 1e-9*want {
		return fmt.Errorf("bits_per_byte is %v, of the loss, tokens and bytes it is %v", s.BitsPerByte.Value, want)
	}
	return nil
}

// validate checks that the numbers are numbers and in order.
func (e Estimate) validate() error {
	if math.IsNaN(e.Value) || math.IsInf(e.Value, 0) {
		return fmt.Errorf("is %v, want a finite number", e.Value)
	}
	if se := e.StandardError; se != nil && !(*se >= 0 && !math.IsInf(*se, 0)) {
		return fmt.Errorf("has standard error %v, want a finite number from 0", *se)
	}
	if i := e.Interval; i != nil && !(i[0] <= e.Value && e.Value <= i[1] && !math.IsInf(i[0], 0) && !math.IsInf(i[1], 0)) {
		return fmt.Errorf("is %v, outside its interval %v", e.Value, *i)
	}
	return nil
}

func (b *Baseline) validate() error {
	if !isSHA256(b.Digest) {
		return fmt.Errorf("%w: baseline.digest is %q, want 64 hex digits", ErrReport, b.Digest)
	}
	if want := map[bool]string{true: NatsPerToken, false: BitsPerByteU}[b.SameTokenizer]; b.Unit != want {
		return fmt.Errorf("%w: baseline.unit is %q, want %q", ErrReport, b.Unit, want)
	}
	for _, s := range []struct {
		name string
		BaselineSplit
	}{{"val", b.Splits.Val}, {"test", b.Splits.Test}} {
		for _, e := range []struct {
			name string
			Estimate
		}{{"loss", s.Loss}, {"bits_per_byte", s.BitsPerByte}, {"difference", s.Difference}} {
			if err := e.validate(); err != nil {
				return fmt.Errorf("%w: baseline.splits.%s.%s %w", ErrReport, s.name, e.name, err)
			}
		}
		if !(s.Loss.Value > 0 && s.BitsPerByte.Value > 0) {
			return fmt.Errorf("%w: baseline.splits.%s.loss is %v, want more than 0", ErrReport, s.name, s.Loss.Value)
		}
	}
	return nil
}

func isSHA256(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32
}
