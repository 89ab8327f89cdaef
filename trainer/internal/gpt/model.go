package gpt

import (
	"fmt"
	"math"

	"github.com/trainyard/trainyard/trainer/internal/rng"
)

// Param is one named tensor of a model.
type Param struct {
	Name  string    // Hugging Face's name, such as "transformer.h.0.attn.c_attn.weight"
	Shape []int     // row-major
	Data  []float32 // the weights
	Grad  []float32 // same length as Data; nil until EnableGrad
	Decay bool      // whether weight decay applies: matrices and embeddings, not biases and norms
}

// Model holds the parameters of a GPT-2.
type Model struct {
	cfg    Config
	params []Param
}

// Places of the tensors outside the layers and, from firstLayer on, of each
// layer's tensors in Model.params.
const (
	wte = iota // (V, C), also the output layer
	wpe        // (block, C)
	firstLayer
)

const (
	ln1Gain = iota // (C)
	ln1Bias        // (C)
	attnW          // (C, 3C)
	attnB          // (3C)
	projW          // (C, C)
	projB          // (C)
	ln2Gain        // (C)
	ln2Bias        // (C)
	fcW            // (C, Inner)
	fcB            // (Inner)
	fcProjW        // (Inner, C)
	fcProjB        // (C)
	perLayer
)

// New returns a model with all parameters zero (layer-norm gains too): call
// Init, or fill Params from a file.
func New(cfg Config) (*Model, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg}
	c, in := cfg.Channels, cfg.Inner
	m.declare("transformer.wte.weight", cfg.VocabSize, c)
	m.declare("transformer.wpe.weight", cfg.BlockSize, c)
	for l := range cfg.Layers {
		for _, t := range []struct {
			name  string
			shape []int
		}{
			{"ln_1.weight", []int{c}}, {"ln_1.bias", []int{c}},
			{"attn.c_attn.weight", []int{c, 3 * c}}, {"attn.c_attn.bias", []int{3 * c}},
			{"attn.c_proj.weight", []int{c, c}}, {"attn.c_proj.bias", []int{c}},
			{"ln_2.weight", []int{c}}, {"ln_2.bias", []int{c}},
			{"mlp.c_fc.weight", []int{c, in}}, {"mlp.c_fc.bias", []int{in}},
			{"mlp.c_proj.weight", []int{in, c}}, {"mlp.c_proj.bias", []int{c}},
		} {
			m.declare(fmt.Sprintf("transformer.h.%d.%s", l, t.name), t.shape...)
		}
	}
	m.declare("transformer.ln_f.weight", c)
	m.declare("transformer.ln_f.bias", c)
	for i, data := range m.block() {
		m.params[i].Data = data
	}
	return m, nil
}

func (m *Model) declare(name string, shape ...int) {
	m.params = append(m.params, Param{Name: name, Shape: shape, Decay: len(shape) == 2})
}

// block allocates one slice of memory and cuts it into the shapes of all
// parameters, each beginning on a cache line.
func (m *Model) block() [][]float32 {
	const line = 16
	size := func(p Param) int {
		n := 1
		for _, d := range p.Shape {
			n *= d
		}
		return n
	}
	total := 0
	for _, p := range m.params {
		total += (size(p) + line - 1) / line * line
	}
	memory := Alloc(total)
	cut := make([][]float32, len(m.params))
	for i, p := range m.params {
		n := size(p)
		cut[i] = memory[:n:n]
		memory = memory[(n+line-1)/line*line:]
	}
	return cut
}

// Config returns the model's configuration.
func (m *Model) Config() Config { return m.cfg }

// SetDropout replaces the probabilities of dropping an element, which belong to
// a run rather than to the weights. Sessions made before keep the old ones.
func (m *Model) SetDropout(embd, attn, resid float32) error {
	cfg := m.cfg
	cfg.EmbdDropout, cfg.AttnDropout, cfg.ResidDropout = embd, attn, resid
	if err := cfg.Validate(); err != nil {
		return err
	}
	m.cfg = cfg
	return nil
}

// Params returns all tensors in a fixed order. The slices are the model's own:
// writing to Data changes the model.
func (m *Model) Params() []Param { return m.params }

// layer returns the tensors of layer l, indexed by ln1Gain and so on.
func (m *Model) layer(l int) []Param {
	first := firstLayer + l*perLayer
	return m.params[first : first+perLayer]
}

func (m *Model) finalNorm() (gain, bias *Param) {
	n := len(m.params)
	return &m.params[n-2], &m.params[n-1]
}

// EnableGrad allocates the gradients; a second call does nothing.
func (m *Model) EnableGrad() {
	if m.params[wte].Grad != nil {
		return
	}
	for i, grad := range m.block() {
		m.params[i].Grad = grad
	}
}

// Init draws GPT-2's initial weights: normal with standard deviation 0.02,
// divided by sqrt(2*Layers) for the projections that feed the residual stream;
// biases zero, gains one.
func (m *Model) Init(s *rng.Stream) {
	const deviation = 0.02
	fill := func(p Param, std float64) {
		for i := range p.Data {
			p.Data[i] = float32(s.NormFloat64() * std)
		}
	}
	ones := func(p Param) {
		for i := range p.Data {
			p.Data[i] = 1
		}
	}
	fill(m.params[wte], deviation)
	fill(m.params[wpe], deviation)
	for l := range m.cfg.Layers {
		t := m.layer(l)
		for i := range t {
			clear(t[i].Data)
		}
		ones(t[ln1Gain])
		ones(t[ln2Gain])
		residual := deviation / math.Sqrt(float64(2*m.cfg.Layers))
		fill(t[attnW], deviation)
		fill(t[projW], residual)
		fill(t[fcW], deviation)
		fill(t[fcProjW], residual)
	}
	gain, bias := m.finalNorm()
	ones(*gain)
	clear(bias.Data)
}
