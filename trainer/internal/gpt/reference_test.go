package gpt_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/rng"
)

// reference is GPT-2's forward pass in float64, straight from its definition,
// sharing nothing with the code under test: what finite differences are taken of.
type reference struct {
	cfg gpt.Config
	w   map[string][]float64
}

func newReference(m *gpt.Model) *reference {
	r := &reference{cfg: m.Config(), w: map[string][]float64{}}
	for _, p := range m.Params() {
		data := make([]float64, len(p.Data))
		for i, v := range p.Data {
			data[i] = float64(v)
		}
		r.w[p.Name] = data
	}
	return r
}

func (r *reference) linear(x []float64, name string, out int) []float64 {
	w, b := r.w[name+".weight"], r.w[name+".bias"]
	y := make([]float64, out)
	for j := range y {
		y[j] = b[j]
		for i, v := range x {
			y[j] += v * w[i*out+j]
		}
	}
	return y
}

func (r *reference) norm(x []float64, name string) []float64 {
	var mean, variance float64
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v-mean)/math.Sqrt(variance+float64(r.cfg.Epsilon))*r.w[name+".weight"][i] + r.w[name+".bias"][i]
	}
	return y
}

func (r *reference) gelu(x float64) float64 {
	if r.cfg.Activation == gpt.GELUErf {
		return x * (1 + math.Erf(x/math.Sqrt2)) / 2
	}
	return x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*math.Pow(x, 3)))) / 2
}

// loss returns the mean loss over targets that count.
func (r *reference) loss(b gpt.Batch) float64 {
	c, hs := r.cfg.Channels, r.cfg.HeadSize()
	var sum float64
	n := 0
	for s := range b.B {
		x := make([][]float64, b.T)
		for t := range x {
			x[t] = make([]float64, c)
			id := int(b.Inputs[s*b.T+t])
			for i := range x[t] {
				x[t][i] = r.w["transformer.wte.weight"][id*c+i] + r.w["transformer.wpe.weight"][t*c+i]
			}
		}
		for l := range r.cfg.Layers {
			h := fmt.Sprintf("transformer.h.%d.", l)
			qkv := make([][]float64, b.T)
			for t := range x {
				qkv[t] = r.linear(r.norm(x[t], h+"ln_1"), h+"attn.c_attn", 3*c)
			}
			for t := range x {
				out := make([]float64, c)
				for head := range r.cfg.Heads {
					p := make([]float64, t+1)
					var total float64
					for j := range p {
						for k := range hs {
							p[j] += qkv[t][head*hs+k] * qkv[j][c+head*hs+k]
						}
						p[j] = math.Exp(p[j] / math.Sqrt(float64(hs)))
						total += p[j]
					}
					for j := range p {
						for k := range hs {
							out[head*hs+k] += p[j] / total * qkv[j][2*c+head*hs+k]
						}
					}
				}
				for i, v := range r.linear(out, h+"attn.c_proj", c) {
					x[t][i] += v
				}
			}
			for t := range x {
				inner := r.linear(r.norm(x[t], h+"ln_2"), h+"mlp.c_fc", r.cfg.Inner)
				for i := range inner {
					inner[i] = r.gelu(inner[i])
				}
				for i, v := range r.linear(inner, h+"mlp.c_proj", c) {
					x[t][i] += v
				}
			}
		}
		for t := range x {
			target := b.Targets[s*b.T+t]
			if target == gpt.Ignore {
				continue
			}
			f := r.norm(x[t], "transformer.ln_f")
			var total, logit float64
			for v := range r.cfg.VocabSize {
				var z float64
				for i, u := range f {
					z += u * r.w["transformer.wte.weight"][v*c+i]
				}
				total += math.Exp(z)
				if v == int(target) {
					logit = z
				}
			}
			sum += math.Log(total) - logit
			n++
		}
	}
	return sum / float64(n)
}

func smallModel(t *testing.T, activation gpt.Activation) *gpt.Model {
	t.Helper()
	m, err := gpt.New(gpt.Config{
		VocabSize: 19, BlockSize: 9, Layers: 2, Heads: 3, Channels: 12, Inner: 20, Activation: activation, Epsilon: 1e-5,
	})
	if err != nil {
		t.Fatal(err)
	}
	// Large weights everywhere, so that no gradient is small for being unused.
	s := rng.New(5, rng.Init)
	for _, p := range m.Params() {
		for i := range p.Data {
			p.Data[i] = float32(0.4 * s.NormFloat64())
		}
	}
	return m
}

func randomBatch(cfg gpt.Config, b, t int) gpt.Batch {
	s := rng.New(6, rng.Data)
	batch := gpt.Batch{B: b, T: t, Inputs: make([]int32, b*t), Targets: make([]int32, b*t)}
	for i := range batch.Inputs {
		batch.Inputs[i] = int32(s.Intn(cfg.VocabSize))
		batch.Targets[i] = int32(s.Intn(cfg.VocabSize+3)) - 3
		if batch.Targets[i] < 0 {
			batch.Targets[i] = gpt.Ignore
		}
	}
	return batch
}

func TestGradientOfEveryTensorEqualsFiniteDifferences(t *testing.T) {
	for _, activation := range []gpt.Activation{gpt.GELUTanh, gpt.GELUErf} {
		m := smallModel(t, activation)
		b := randomBatch(m.Config(), 2, 7)
		ref := newReference(m)
		for _, isa := range kernel.Available() {
			set, err := kernel.Choose(string(isa))
			if err != nil {
				t.Fatal(err)
			}
			s := session(t, m, set, 2, b.B, b.T)
			_, n, err := s.Loss(b, nil)
			if err != nil {
				t.Fatal(err)
			}
			sum, _, err := s.Train(b, gpt.TrainOptions{GradScale: 1 / float32(n)})
			if err != nil {
				t.Fatal(err)
			}
			if want := ref.loss(b); math.Abs(sum/float64(n)-want) > 1e-5*want {
				t.Errorf("%s/%s: loss %v, want %v", activation, isa, sum/float64(n), want)
			}
			for _, p := range m.Params() {
				w := ref.w[p.Name]
				want := make([]float64, len(w))
				for i := range w {
					const h = 1e-5
					at := w[i]
					w[i] = at + h
					up := ref.loss(b)
					w[i] = at - h
					want[i] = (up - ref.loss(b)) / (2 * h)
					w[i] = at
				}
				if d := farthest(p.Grad, want); !(d < 1e-4) {
					t.Errorf("%s/%s: gradient of %s is off by %v of its largest element", activation, isa, p.Name, d)
				}
			}
		}
	}
}

func TestAccumulatedGradientsAddUp(t *testing.T) {
	m := smallModel(t, gpt.GELUTanh)
	whole := randomBatch(m.Config(), 4, 7)
	set, err := kernel.Choose("auto")
	if err != nil {
		t.Fatal(err)
	}
	s := session(t, m, set, 2, 4, 7)
	if _, _, err := s.Train(whole, gpt.TrainOptions{GradScale: 0.1}); err != nil {
		t.Fatal(err)
	}
	want := make([][]float64, len(m.Params()))
	for i, p := range m.Params() {
		for _, v := range p.Grad {
			want[i] = append(want[i], float64(v))
		}
	}
	for i := range 4 {
		part := gpt.Batch{B: 1, T: 7, Inputs: whole.Inputs[i*7 : (i+1)*7], Targets: whole.Targets[i*7 : (i+1)*7]}
		if _, _, err := s.Train(part, gpt.TrainOptions{GradScale: 0.1, Accumulate: i > 0}); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range m.Params() {
		if d := farthest(p.Grad, want[i]); !(d < 1e-5) {
			t.Errorf("gradient of %s is off by %v", p.Name, d)
		}
	}
}

func TestABatchWithoutTargetsHasNoGradient(t *testing.T) {
	m := smallModel(t, gpt.GELUTanh)
	b := randomBatch(m.Config(), 1, 5)
	for i := range b.Targets {
		b.Targets[i] = gpt.Ignore
	}
	set, err := kernel.Choose("auto")
	if err != nil {
		t.Fatal(err)
	}
	s := session(t, m, set, 2, 1, 5)
	m.Params()[0].Grad[0] = 7 // of an earlier step
	sum, n, err := s.Train(b, gpt.TrainOptions{GradScale: 1})
	if err != nil || sum != 0 || n != 0 {
		t.Fatalf("loss %v of %d, %v", sum, n, err)
	}
	for _, p := range m.Params() {
		for i, v := range p.Grad {
			if v != 0 {
				t.Fatalf("%s[%d] has gradient %v", p.Name, i, v)
			}
		}
	}
}
