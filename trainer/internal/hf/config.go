package hf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
)

// Names of the files in a model directory.
const (
	ConfigFile           = "config.json"
	WeightsFile          = "model.safetensors"
	GenerationConfigFile = "generation_config.json"
	TokenizerConfigFile  = "tokenizer_config.json"
)

// maxConfig bounds what is read as a config.json, in bytes; real ones have about 1000.
const maxConfig = 1 << 20

// ErrModel is wrapped by every error about the content of a model directory.
var ErrModel = errors.New("invalid model directory")

// fields are the top-level keys of a config.json. They are looked up by their exact
// names, where encoding/json would also take N_LAYER for n_layer.
type fields map[string]json.RawMessage

// get decodes a key into v and tells whether it was there; null counts as absent.
func (f fields) get(key string, v any) (bool, error) {
	raw, ok := f[key]
	if !ok || string(raw) == "null" {
		return false, nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return false, fmt.Errorf("%w: %s is %.60s, want %s", ErrModel, key, raw, kind(v))
	}
	return true, nil
}

func kind(v any) string {
	switch v.(type) {
	case *int:
		return "an integer"
	case *float32:
		return "a number"
	case *bool:
		return "true or false"
	}
	return "a string"
}

// fileConfig is what a config.json says about a model and its weights.
type fileConfig struct {
	gpt.Config
	tied bool
}

// ReadConfig reads the config.json of a model directory. Keys that do not change
// what the model computes are ignored; those that ask for something this GPT-2
// lacks are an error.
func ReadConfig(dir string) (gpt.Config, error) {
	c, err := readConfig(dir)
	return c.Config, err
}

func readConfig(dir string) (fileConfig, error) {
	path := filepath.Join(dir, ConfigFile)
	f, err := os.Open(path)
	if err != nil {
		return fileConfig{}, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return fileConfig{}, fmt.Errorf("read %s: %w", path, err)
	}
	c, err := parseConfig(raw)
	if err != nil {
		return fileConfig{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

func parseConfig(raw []byte) (fileConfig, error) {
	if len(raw) > maxConfig {
		return fileConfig{}, fmt.Errorf("%w: more than %d bytes", ErrModel, maxConfig)
	}
	var f fields
	if err := json.Unmarshal(raw, &f); err != nil {
		return fileConfig{}, fmt.Errorf("%w: not a JSON object: %w", ErrModel, err)
	}
	modelType := ""
	if _, err := f.get("model_type", &modelType); err != nil {
		return fileConfig{}, err
	}
	if modelType != "gpt2" {
		return fileConfig{}, fmt.Errorf("%w: model_type is %q, only gpt2 is known", ErrModel, modelType)
	}
	if err := checkVariants(f); err != nil {
		return fileConfig{}, err
	}
	// Absent keys have the defaults of transformers' GPT2Config.
	c := fileConfig{tied: true, Config: gpt.Config{
		Epsilon: 1e-5, EmbdDropout: 0.1, AttnDropout: 0.1, ResidDropout: 0.1,
	}}
	if err := readSizes(f, &c.Config); err != nil {
		return fileConfig{}, err
	}
	activation := "gelu_new"
	for _, o := range []struct {
		key string
		v   any
	}{
		{"activation_function", &activation}, {"layer_norm_epsilon", &c.Epsilon},
		{"embd_pdrop", &c.EmbdDropout}, {"attn_pdrop", &c.AttnDropout}, {"resid_pdrop", &c.ResidDropout},
		{"tie_word_embeddings", &c.tied},
	} {
		if _, err := f.get(o.key, o.v); err != nil {
			return fileConfig{}, err
		}
	}
	switch activation {
	case "gelu_new", "gelu_pytorch_tanh":
		c.Activation = gpt.GELUTanh
	case "gelu":
		c.Activation = gpt.GELUErf
	default:
		return fileConfig{}, fmt.Errorf("%w: activation_function is %q, want gelu_new, gelu_pytorch_tanh or gelu", ErrModel, activation)
	}
	if err := c.Validate(); err != nil {
		return fileConfig{}, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return c, nil
}

// readSizes reads the integers that give a model its shape.
func readSizes(f fields, c *gpt.Config) error {
	for _, s := range []struct {
		keys []string // the first that is there counts
		v    *int
	}{
		{[]string{"vocab_size"}, &c.VocabSize},
		{[]string{"n_positions", "n_ctx"}, &c.BlockSize},
		{[]string{"n_layer"}, &c.Layers},
		{[]string{"n_head"}, &c.Heads},
		{[]string{"n_embd"}, &c.Channels},
	} {
		found := false
		for _, key := range s.keys {
			ok, err := f.get(key, s.v)
			if err != nil {
				return err
			}
			if found = ok; found {
				break
			}
		}
		if !found {
			return fmt.Errorf("%w: %s is missing", ErrModel, s.keys[0])
		}
	}
	ok, err := f.get("n_inner", &c.Inner)
	if err != nil {
		return err
	}
	if !ok && c.Channels < math.MaxInt/4 { // Validate refuses larger ones
		c.Inner = 4 * c.Channels
	}
	return nil
}

// checkVariants refuses the switches of transformers' GPT-2 that compute something else.
func checkVariants(f fields) error {
	for _, s := range []struct {
		key  string
		want bool
	}{
		{"scale_attn_weights", true},
		{"scale_attn_by_inverse_layer_idx", false},
		{"add_cross_attention", false},
	} {
		got := s.want
		if _, err := f.get(s.key, &got); err != nil {
			return err
		}
		if got != s.want {
			return fmt.Errorf("%w: %s is %v, this GPT-2 has %v", ErrModel, s.key, got, s.want)
		}
	}
	return nil
}
