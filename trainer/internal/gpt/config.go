package gpt

import (
	"errors"
	"fmt"
	"math"
)

// Activation names the GELU of the feed-forward layer, by Hugging Face's names.
type Activation string

// The two forms of GELU: GPT-2 was trained with the tanh form.
const (
	GELUTanh Activation = "gelu_new"
	GELUErf  Activation = "gelu"
)

// Config is the shape of a model and what its layers need to know.
type Config struct {
	VocabSize int // V
	BlockSize int // longest sequence, rows of the position table
	Layers    int
	Heads     int // H, divides Channels
	Channels  int // C
	Inner     int // width of the feed-forward layer, 4*C in GPT-2

	Activation Activation
	Epsilon    float32 // of layer norm, 1e-5 in GPT-2

	// Probabilities of dropping an element in training.
	EmbdDropout  float32 // after the embeddings
	AttnDropout  float32 // of attention weights
	ResidDropout float32 // of what a branch adds to the residual stream
}

// ErrConfig is wrapped by every error about a Config.
var ErrConfig = errors.New("invalid model configuration")

// Preset returns a named configuration: "nano" (about 1.38 million parameters
// at its default vocabulary) or "gpt2" (OpenAI's 124M model).
func Preset(name string) (Config, error) {
	c := Config{Activation: GELUTanh, Epsilon: 1e-5}
	switch name {
	case "nano":
		c.VocabSize, c.BlockSize, c.Layers, c.Heads, c.Channels = 4480, 128, 4, 4, 128
	case "gpt2":
		c.VocabSize, c.BlockSize, c.Layers, c.Heads, c.Channels = 50257, 1024, 12, 12, 768
	default:
		return Config{}, fmt.Errorf("%w: unknown preset %q: use nano or gpt2", ErrConfig, name)
	}
	c.Inner = 4 * c.Channels
	return c, nil
}

// maxParams bounds what a file may ask us to allocate: 2^31 parameters are 8 GiB.
const maxParams = int64(1) << 31

// Validate reports the first field that no model can have.
func (c Config) Validate() error {
	for _, f := range []struct {
		name  string
		value int
	}{
		{"vocab_size", c.VocabSize}, {"n_positions", c.BlockSize}, {"n_layer", c.Layers},
		{"n_head", c.Heads}, {"n_embd", c.Channels}, {"n_inner", c.Inner},
	} {
		if f.value < 1 || f.value > math.MaxInt32 {
			return fmt.Errorf("%w: %s is %d, want 1 or more", ErrConfig, f.name, f.value)
		}
	}
	if c.Channels%c.Heads != 0 {
		return fmt.Errorf("%w: n_embd %d is not a multiple of n_head %d", ErrConfig, c.Channels, c.Heads)
	}
	if c.Activation != GELUTanh && c.Activation != GELUErf {
		return fmt.Errorf("%w: activation_function is %q, want %q or %q", ErrConfig, c.Activation, GELUTanh, GELUErf)
	}
	if !(c.Epsilon > 0 && c.Epsilon < 1) {
		return fmt.Errorf("%w: layer_norm_epsilon is %v, want more than 0 and less than 1", ErrConfig, c.Epsilon)
	}
	for _, p := range []struct {
		name  string
		value float32
	}{{"embd_pdrop", c.EmbdDropout}, {"attn_pdrop", c.AttnDropout}, {"resid_pdrop", c.ResidDropout}} {
		if !(p.value >= 0 && p.value < 1) {
			return fmt.Errorf("%w: %s is %v, want 0 or more and less than 1", ErrConfig, p.name, p.value)
		}
	}
	if n := c.paramCountFloat(); n > float64(maxParams) {
		return fmt.Errorf("%w: %.3g parameters, more than the %d that this trainer takes", ErrConfig, n, maxParams)
	}
	return nil
}

// paramCountFloat cannot overflow, whatever the fields are.
func (c Config) paramCountFloat() float64 {
	v, t, l, ch, in := float64(c.VocabSize), float64(c.BlockSize), float64(c.Layers), float64(c.Channels), float64(c.Inner)
	perLayer := 4*ch + ch*3*ch + 3*ch + ch*ch + ch + ch*in + in + in*ch + ch
	return (v+t)*ch + l*perLayer + 2*ch
}

// ParamCount returns the number of parameters; the tied head counts once.
func (c Config) ParamCount() int64 { return int64(c.paramCountFloat()) }

// HeadSize returns the channels of one attention head.
func (c Config) HeadSize() int { return c.Channels / c.Heads }
