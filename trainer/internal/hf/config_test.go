package hf

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
)

// openai is the config.json of OpenAI's GPT-2 as Hugging Face published it.
const openai = `{
  "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
  "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02,
  "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12,
  "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1, "summary_activation": null,
  "summary_first_dropout": 0.1, "summary_proj_to_labels": true, "summary_type": "cls_index",
  "summary_use_proj": true, "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}},
  "vocab_size": 50257}`

func TestParseConfigOfOpenAI(t *testing.T) {
	got, err := parseConfig([]byte(openai))
	if err != nil {
		t.Fatal(err)
	}
	want, err := gpt.Preset("gpt2")
	if err != nil {
		t.Fatal(err)
	}
	want.EmbdDropout, want.AttnDropout, want.ResidDropout = 0.1, 0.1, 0.1
	if got.Config != want || !got.tied {
		t.Errorf("got %+v, want %+v, tied", got, want)
	}
}

// with changes one key of a small config; nil removes it.
func with(t *testing.T, key string, value any) []byte {
	t.Helper()
	m := map[string]any{"model_type": "gpt2", "vocab_size": 11, "n_positions": 6, "n_layer": 2, "n_head": 2, "n_embd": 4}
	if m[key] = value; value == nil {
		delete(m, key)
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParseConfigVariants(t *testing.T) {
	base := testConfig()
	base.EmbdDropout, base.AttnDropout, base.ResidDropout = 0.1, 0.1, 0.1
	for name, c := range map[string]struct {
		key   string
		value any
		want  func(*fileConfig)
	}{
		"defaults":           {"x", 1, func(*fileConfig) {}},
		"null is absent":     {"n_inner", json.RawMessage("null"), func(*fileConfig) {}},
		"inner":              {"n_inner", 7, func(c *fileConfig) { c.Inner = 7 }},
		"positions win":      {"n_ctx", 99, func(*fileConfig) {}},
		"tanh":               {"activation_function", "gelu_pytorch_tanh", func(*fileConfig) {}},
		"erf":                {"activation_function", "gelu", func(c *fileConfig) { c.Activation = gpt.GELUErf }},
		"epsilon":            {"layer_norm_epsilon", 1e-6, func(c *fileConfig) { c.Epsilon = 1e-6 }},
		"embedding dropout":  {"embd_pdrop", 0, func(c *fileConfig) { c.EmbdDropout = 0 }},
		"attention dropout":  {"attn_pdrop", 0.2, func(c *fileConfig) { c.AttnDropout = 0.2 }},
		"residual dropout":   {"resid_pdrop", 0.3, func(c *fileConfig) { c.ResidDropout = 0.3 }},
		"untied":             {"tie_word_embeddings", false, func(c *fileConfig) { c.tied = false }},
		"key in capitals":    {"N_LAYER", 3, func(*fileConfig) {}},
		"harmless switch":    {"scale_attn_weights", true, func(*fileConfig) {}},
		"nested unknown key": {"rope", map[string]any{"n_layer": 9}, func(*fileConfig) {}},
	} {
		t.Run(name, func(t *testing.T) {
			want := fileConfig{base, true}
			c.want(&want)
			got, err := parseConfig(with(t, c.key, c.value))
			if err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	t.Run("context for positions", func(t *testing.T) {
		got, err := parseConfig([]byte(strings.Replace(string(with(t, "x", 1)), "n_positions", "n_ctx", 1)))
		if err != nil || got.BlockSize != 6 {
			t.Errorf("got block %d and %v, want 6", got.BlockSize, err)
		}
	})
}

func TestParseConfigRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"empty":               {nil, "not a JSON object"},
		"array":               {[]byte("[]"), "not a JSON object"},
		"trailing text":       {append(with(t, "x", 1), "{}"...), "not a JSON object"},
		"too long":            {append(with(t, "x", 1), make([]byte, maxConfig)...), "more than"},
		"null":                {[]byte("null"), `model_type is ""`},
		"other model":         {with(t, "model_type", "llama"), `model_type is "llama"`},
		"no model type":       {with(t, "model_type", nil), `model_type is ""`},
		"no layers":           {with(t, "n_layer", nil), "n_layer is missing"},
		"no positions":        {with(t, "n_positions", nil), "n_positions is missing"},
		"zero layers":         {with(t, "n_layer", 0), "n_layer is 0"},
		"negative vocabulary": {with(t, "vocab_size", -5), "vocab_size is -5"},
		"text for a number":   {with(t, "n_layer", "12"), `n_layer is "12", want an integer`},
		"fraction":            {with(t, "n_layer", 1.5), "n_layer is 1.5, want an integer"},
		"beyond int64":        {with(t, "n_embd", json.RawMessage("99999999999999999999")), "want an integer"},
		"huge":                {with(t, "n_embd", 1<<62), "n_embd is 4611686018427387904"},
		"too many parameters": {with(t, "vocab_size", 1<<31-1), "parameters"},
		"heads do not divide": {with(t, "n_head", 3), "not a multiple"},
		"relu":                {with(t, "activation_function", "relu"), `activation_function is "relu"`},
		"activation number":   {with(t, "activation_function", 1), "want a string"},
		"dropout of one":      {with(t, "attn_pdrop", 1), "attn_pdrop is 1"},
		"dropout text":        {with(t, "attn_pdrop", "x"), "want a number"},
		"epsilon zero":        {with(t, "layer_norm_epsilon", 0), "layer_norm_epsilon is 0"},
		"scaled by layer":     {with(t, "scale_attn_by_inverse_layer_idx", true), "scale_attn_by_inverse_layer_idx is true"},
		"attention unscaled":  {with(t, "scale_attn_weights", false), "scale_attn_weights is false"},
		"cross attention":     {with(t, "add_cross_attention", true), "add_cross_attention is true"},
		"switch as text":      {with(t, "tie_word_embeddings", "yes"), "want true or false"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseConfig(c.raw)
			if !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v and %v, want ErrModel with %q", got, err, c.want)
			}
		})
	}
}

func TestReadConfigNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadConfig(dir); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), ConfigFile) {
		t.Errorf("got %v, want that config.json does not exist", err)
	}
	if err := os.WriteFile(filepath.Join(dir, ConfigFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadConfig(dir); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), filepath.Join(dir, ConfigFile)) {
		t.Errorf("got %v, want ErrModel and the path", err)
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(openai))
	f.Add([]byte(`{"model_type":"gpt2","n_layer":null,"n_inner":-1}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := parseConfig(raw)
		if err == nil {
			err = c.Validate()
		} else if errors.Is(err, ErrModel) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}
