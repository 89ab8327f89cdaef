package gpt_test

import (
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/optim"
	"github.com/trainyard/trainyard/trainer/internal/par"
)

// golden is what PyTorch computed in float64; see testdata/README.md.
type golden struct {
	Config struct {
		Vocab      int    `json:"vocab_size"`
		Block      int    `json:"n_positions"`
		Layers     int    `json:"n_layer"`
		Heads      int    `json:"n_head"`
		Channels   int    `json:"n_embd"`
		Inner      int    `json:"n_inner"`
		Activation string `json:"activation_function"`
	} `json:"config"`
	Params map[string]struct {
		Shape []int     `json:"shape"`
		Data  []float64 `json:"data"`
	} `json:"params"`
	B         int                  `json:"b"`
	T         int                  `json:"t"`
	Inputs    []int32              `json:"inputs"`
	Targets   []int32              `json:"targets"`
	Logits    []float64            `json:"logits"`
	LossSum   float64              `json:"loss_sum"`
	Count     int                  `json:"count"`
	Grads     map[string][]float64 `json:"grads"`
	Losses    []float64            `json:"losses"`
	GradNorms []float64            `json:"grad_norms"`
}

func readGolden(t *testing.T, path string) golden {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.NewDecoder(z).Decode(&g); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g golden) model(t *testing.T) *gpt.Model {
	t.Helper()
	c := g.Config
	m, err := gpt.New(gpt.Config{
		VocabSize: c.Vocab, BlockSize: c.Block, Layers: c.Layers, Heads: c.Heads, Channels: c.Channels, Inner: c.Inner,
		Activation: gpt.Activation(c.Activation), Epsilon: 1e-5,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.Params() {
		want, ok := g.Params[p.Name]
		if !ok || len(want.Data) != len(p.Data) {
			t.Fatalf("golden file has no %s of %d elements", p.Name, len(p.Data))
		}
		for i, v := range want.Data {
			p.Data[i] = float32(v)
		}
	}
	if len(g.Params) != len(m.Params()) {
		t.Fatalf("golden file has %d tensors, the model %d", len(g.Params), len(m.Params()))
	}
	return m
}

func (g golden) batch() gpt.Batch {
	return gpt.Batch{B: g.B, T: g.T, Inputs: g.Inputs, Targets: g.Targets}
}

// everyCase runs a test for each golden file and instruction set.
func everyCase(t *testing.T, f func(t *testing.T, g golden, set *kernel.Set)) {
	paths, err := filepath.Glob("testdata/gpt2_*.json.gz")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range paths {
		g := readGolden(t, path)
		for _, isa := range kernel.Available() {
			set, err := kernel.Choose(string(isa))
			if err != nil {
				t.Fatal(err)
			}
			t.Run(filepath.Base(path)+"/"+string(isa), func(t *testing.T) { f(t, g, set) })
		}
	}
}

func session(t *testing.T, m *gpt.Model, set *kernel.Set, workers, b, seq int) *gpt.Session {
	t.Helper()
	pool := par.NewPool(workers)
	t.Cleanup(pool.Close)
	s, err := gpt.NewSession(m, pool, gpt.SessionOptions{MaxB: b, MaxT: seq, Train: true, Kernels: set})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// farthest returns the largest difference relative to the largest magnitude.
func farthest(got []float32, want []float64) float64 {
	var diff, top float64
	for i, w := range want {
		diff = math.Max(diff, math.Abs(float64(got[i])-w))
		top = math.Max(top, math.Abs(w))
	}
	return diff / math.Max(top, 1e-12)
}

func TestForwardAndGradientsEqualPyTorch(t *testing.T) {
	everyCase(t, func(t *testing.T, g golden, set *kernel.Set) {
		m, b := g.model(t), g.batch()
		s := session(t, m, set, 2, b.B, b.T)
		logits, err := s.Logits(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := farthest(logits, g.Logits); !(d < 1e-5) {
			t.Errorf("logits are off by %v", d)
		}
		sum, n, err := s.Train(b, gpt.TrainOptions{GradScale: 1 / float32(g.Count)})
		if err != nil {
			t.Fatal(err)
		}
		if n != g.Count || !(math.Abs(sum-g.LossSum) < 1e-5*g.LossSum) {
			t.Errorf("loss %v of %d targets, want %v of %d", sum, n, g.LossSum, g.Count)
		}
		for _, p := range m.Params() {
			if d := farthest(p.Grad, g.Grads[p.Name]); !(d < 2e-5) {
				t.Errorf("gradient of %s is off by %v", p.Name, d)
			}
		}
	})
}

func TestTenStepsEqualPyTorch(t *testing.T) {
	everyCase(t, func(t *testing.T, g golden, set *kernel.Set) {
		m, b := g.model(t), g.batch()
		s := session(t, m, set, 2, b.B, b.T)
		pool := par.NewPool(2)
		defer pool.Close()
		o, err := optim.New(m.Params(), pool, optim.Config{
			Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.1, Clip: 1, Kernels: set,
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range g.Losses {
			sum, n, err := s.Train(b, gpt.TrainOptions{GradScale: 1 / float32(g.Count)})
			if err != nil {
				t.Fatal(err)
			}
			if got := sum / float64(n); !(math.Abs(got-want) < 1e-4*want) {
				t.Errorf("step %d: loss %v, want %v", i, got, want)
			}
			if i >= len(g.GradNorms) {
				break
			}
			norm, err := o.Step(1e-2)
			if err != nil {
				t.Fatal(err)
			}
			if want := g.GradNorms[i]; !(math.Abs(norm-want) < 1e-3*want) {
				t.Errorf("step %d: gradient norm %v, want %v", i, norm, want)
			}
		}
	})
}

func TestDecoderGivesTheLogitsOfForward(t *testing.T) {
	everyCase(t, func(t *testing.T, g golden, set *kernel.Set) {
		m, b := g.model(t), g.batch()
		pool := par.NewPool(2)
		defer pool.Close()
		d := gpt.NewDecoder(m, pool, set)
		v := m.Config().VocabSize
		for row := range b.B {
			d.Reset()
			tokens := b.Inputs[row*b.T : (row+1)*b.T]
			for i := 0; i < b.T; {
				n := 1 + i%3 // one, two or three tokens at a time
				n = min(n, b.T-i)
				logits, err := d.Feed(tokens[i : i+n])
				if err != nil {
					t.Fatal(err)
				}
				i += n
				at := (row*b.T + i - 1) * v
				if diff := farthest(logits, g.Logits[at:at+v]); !(diff < 2e-5) {
					t.Errorf("sequence %d after %d tokens: off by %v", row, i, diff)
				}
			}
		}
	})
}
