package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// attention64 is causal attention in float64 with its gradients, from the
// formulas; mask holds what dropout multiplies each weight by.
func attention64(a *AttentionRows, hs int, dout []float32, ldOut int, mask func(i, j int) float64) (out, dq, dk, dv []float64) {
	t := a.T
	out, dq, dk, dv = make([]float64, t*hs), make([]float64, t*hs), make([]float64, t*hs), make([]float64, t*hs)
	at := func(x []float32, ld, i, k int) float64 { return float64(x[i*ld+k]) }
	for i := range t {
		p := make([]float64, i+1)
		top, sum := math.Inf(-1), 0.0
		for j := range p {
			for k := range hs {
				p[j] += at(a.Q, a.LD, i, k) * at(a.K, a.LD, j, k) * float64(a.Scale)
			}
			top = math.Max(top, p[j])
		}
		for j := range p {
			p[j] = math.Exp(p[j] - top)
			sum += p[j]
		}
		dp := make([]float64, i+1)
		inner := 0.0
		for j := range p {
			p[j] /= sum
			for k := range hs {
				out[i*hs+k] += p[j] * mask(i, j) * at(a.V, a.LD, j, k)
				dv[j*hs+k] += p[j] * mask(i, j) * at(dout, ldOut, i, k)
				dp[j] += mask(i, j) * at(a.V, a.LD, j, k) * at(dout, ldOut, i, k)
			}
			inner += p[j] * dp[j]
		}
		for j := range p {
			ds := p[j] * (dp[j] - inner) * float64(a.Scale)
			for k := range hs {
				dq[i*hs+k] += ds * at(a.K, a.LD, j, k)
				dk[j*hs+k] += ds * at(a.Q, a.LD, i, k)
			}
		}
	}
	return out, dq, dk, dv
}

func TestAttentionMatchesFloat64(t *testing.T) {
	for _, c := range []struct {
		t, hs   int
		dropout float32
	}{
		{1, 4, 0}, {5, 3, 0}, {12, 32, 0}, {13, 33, 0.2}, {64, 40, 0}, {100, 64, 0.1},
		{queryRows, 16, 0}, {queryRows + 1, 16, 0}, {2*queryRows + 77, 20, 0.1},
	} {
		t.Run(fmt.Sprintf("T=%d,hs=%d,dropout=%v", c.t, c.hs, c.dropout), func(t *testing.T) {
			var first []float32
			for _, isa := range Available() {
				s := newSet(isa)
				r := rand.New(rand.NewPCG(1, uint64(c.t)))
				ld, ldOut := 3*c.hs+2, c.hs+5
				qkv := random(r, c.t*ld)
				a := &AttentionRows{
					Q: qkv, K: qkv[c.hs:], V: qkv[2*c.hs:], LD: ld, T: c.t, Scale: float32(1 / math.Sqrt(float64(c.hs))),
					Stats: make([]float32, 2*c.t), Dropout: c.dropout, Key: 99,
				}
				dout := random(r, c.t*ldOut)
				out, grad := make([]float32, c.t*ldOut), random(r, c.t*ld)
				h := NewHead(s, c.t+3, c.hs, true)
				h.Forward(out, ldOut, a)
				h.Backward(grad, grad[c.hs:], grad[2*c.hs:], ld, dout, ldOut, a)

				masks := make([][]float32, c.t)
				for i := range masks {
					masks[i] = make([]float32, i+1)
					for j := range masks[i] {
						masks[i][j] = 1
					}
					if c.dropout > 0 {
						s.Dropout(masks[i], masks[i], MixKey(a.Key, uint64(i)), c.dropout)
					}
				}
				wantOut, dq, dk, dv := attention64(a, c.hs, dout, ldOut, func(i, j int) float64 { return float64(masks[i][j]) })
				for i := range c.t {
					row := func(x []float64) []float64 { return x[i*c.hs : (i+1)*c.hs] }
					near(t, "output", out[i*ldOut:], row(wantOut), 1e-5)
					near(t, "dQ", grad[i*ld:], row(dq), 2e-5)
					near(t, "dK", grad[i*ld+c.hs:], row(dk), 2e-5)
					near(t, "dV", grad[i*ld+2*c.hs:], row(dv), 2e-5)
				}
				got := append(out, grad...)
				if isa != Portable {
					if first == nil {
						first = got
					} else if !slices.Equal(first, got) {
						t.Errorf("%s gives other bits", isa)
					}
				}
			}
		})
	}
}
