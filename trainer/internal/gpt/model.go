package gpt

import "github.com/trainyard/trainyard/trainer/internal/rng"

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

// New returns a model with all parameters zero (layer-norm gains too): call
// Init, or fill Params from a file.
func New(cfg Config) (*Model, error) { panic("stub") }

// Config returns the model's configuration.
func (m *Model) Config() Config { return m.cfg }

// Params returns all tensors in a fixed order. The slices are the model's own:
// writing to Data changes the model.
func (m *Model) Params() []Param { return m.params }

// EnableGrad allocates the gradients; a second call does nothing.
func (m *Model) EnableGrad() { panic("stub") }

// Init draws GPT-2's initial weights: normal with standard deviation 0.02,
// divided by sqrt(2*Layers) for the projections that feed the residual stream;
// biases zero, gains one.
func (m *Model) Init(s *rng.Stream) { panic("stub") }
