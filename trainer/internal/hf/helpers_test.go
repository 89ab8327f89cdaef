package hf

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/safetensors"
)

func testConfig() gpt.Config {
	return gpt.Config{
		VocabSize: 11, BlockSize: 6, Layers: 2, Heads: 2, Channels: 4, Inner: 16,
		Activation: gpt.GELUTanh, Epsilon: 1e-5, EmbdDropout: 0.1, ResidDropout: 0.25,
	}
}

// newParams builds the tensors of a GPT-2 by transformers' names and shapes,
// independent of package gpt.
func newParams(c gpt.Config) []gpt.Param {
	r := rand.New(rand.NewPCG(1, 1))
	var out []gpt.Param
	add := func(name string, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		p := gpt.Param{Name: name, Shape: shape, Data: make([]float32, n)}
		for i := range p.Data {
			p.Data[i] = float32(r.NormFloat64())
		}
		out = append(out, p)
	}
	add("transformer.wte.weight", c.VocabSize, c.Channels)
	add("transformer.wpe.weight", c.BlockSize, c.Channels)
	for i := range c.Layers {
		h := fmt.Sprintf("transformer.h.%d.", i)
		add(h+"ln_1.weight", c.Channels)
		add(h+"ln_1.bias", c.Channels)
		add(h+"attn.c_attn.weight", c.Channels, 3*c.Channels)
		add(h+"attn.c_attn.bias", 3*c.Channels)
		add(h+"attn.c_proj.weight", c.Channels, c.Channels)
		add(h+"attn.c_proj.bias", c.Channels)
		add(h+"ln_2.weight", c.Channels)
		add(h+"ln_2.bias", c.Channels)
		add(h+"mlp.c_fc.weight", c.Channels, c.Inner)
		add(h+"mlp.c_fc.bias", c.Inner)
		add(h+"mlp.c_proj.weight", c.Inner, c.Channels)
		add(h+"mlp.c_proj.bias", c.Channels)
	}
	add("transformer.ln_f.weight", c.Channels)
	add("transformer.ln_f.bias", c.Channels)
	return out
}

func cleared(params []gpt.Param) []gpt.Param {
	out := slices.Clone(params)
	for i := range out {
		out[i].Data = make([]float32, len(out[i].Data))
	}
	return out
}

// tensors turns params into what a file may hold, for a test to change.
func tensors(params []gpt.Param) []safetensors.Tensor {
	var out []safetensors.Tensor
	for _, p := range params {
		out = append(out, safetensors.Tensor{Name: p.Name, DType: safetensors.F32, Shape: p.Shape, Data: p.Data})
	}
	return out
}

func reader(t *testing.T, tensors []safetensors.Tensor) *safetensors.Reader {
	t.Helper()
	var b bytes.Buffer
	if err := safetensors.Write(&b, nil, tensors); err != nil {
		t.Fatal(err)
	}
	r, err := safetensors.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// compare requires equal names and shapes, and values within a relative tolerance.
func compare(t *testing.T, got, want []gpt.Param, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d tensors, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.Name != w.Name || !slices.Equal(g.Shape, w.Shape) {
			t.Fatalf("tensor %d is %s %v, want %s %v", i, g.Name, g.Shape, w.Name, w.Shape)
		}
		for j := range w.Data {
			if d := math.Abs(float64(g.Data[j]) - float64(w.Data[j])); !(d <= tolerance*math.Abs(float64(w.Data[j]))) {
				t.Fatalf("%s[%d] is %v, want %v", w.Name, j, g.Data[j], w.Data[j])
			}
		}
	}
}

func readFile(t *testing.T, elem ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
