package generate

import (
	"math"
	"slices"

	"github.com/trainyard/trainyard/trainer/internal/rng"
)

// sampler picks one token from logits. Temperature, then top-k (Fan et al.,
// arXiv:1805.04833), then top-p (Holtzman et al., arXiv:1904.09751), in the
// order that Hugging Face applies them.
type sampler struct {
	opts   Options
	stream *rng.Stream
	cand   []candidate // scratch, kept from token to token
}

type candidate struct {
	id int32
	p  float64
}

func newSampler(o Options) *sampler {
	return &sampler{opts: o, stream: rng.New(o.Seed, rng.Sample)}
}

func (s *sampler) pick(logits []float32) int32 {
	if s.opts.Temperature == 0 {
		return argmax(logits)
	}
	s.weigh(logits)
	if s.truncates() {
		// Ties break by id, so that the cut does not depend on the sort.
		slices.SortFunc(s.cand, func(a, b candidate) int {
			switch {
			case a.p > b.p:
				return -1
			case a.p < b.p:
				return 1
			}
			return int(a.id) - int(b.id)
		})
	}
	if k := s.opts.TopK; k > 0 && k < len(s.cand) {
		s.cand = s.cand[:k]
	}
	total := sum(s.cand)
	if p := s.opts.TopP; p > 0 && p < 1 {
		reached := 0.0
		for i, c := range s.cand {
			reached += c.p
			if reached >= p*total { // the token that crosses the line stays
				s.cand = s.cand[:i+1]
				break
			}
		}
		total = sum(s.cand)
	}
	r := s.stream.Float64() * total
	for _, c := range s.cand {
		r -= c.p
		if r < 0 {
			return c.id
		}
	}
	return s.cand[len(s.cand)-1].id // rounding left a crumb of r
}

func (s *sampler) truncates() bool {
	return s.opts.TopK > 0 || (s.opts.TopP > 0 && s.opts.TopP < 1)
}

// weigh fills cand with unnormalised probabilities; the largest is 1, so that
// no temperature overflows.
func (s *sampler) weigh(logits []float32) {
	top := float64(logits[argmax(logits)])
	s.cand = s.cand[:0]
	for id, l := range logits {
		p := math.Exp((float64(l) - top) / s.opts.Temperature)
		if p > 0 {
			s.cand = append(s.cand, candidate{int32(id), p})
		}
	}
}

// argmax returns the first of the largest logits.
func argmax(logits []float32) int32 {
	best := 0
	for i, l := range logits {
		if l > logits[best] {
			best = i
		}
	}
	return int32(best)
}

func sum(cand []candidate) float64 {
	t := 0.0
	for _, c := range cand {
		t += c.p
	}
	return t
}
