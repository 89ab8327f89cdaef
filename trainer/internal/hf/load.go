package hf

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/safetensors"
)

const (
	// prefix is what GPT2LMHeadModel puts before the names of GPT2Model, which
	// saves the same tensors without it.
	prefix = "transformer."
	head   = "lm_head.weight"
	wte    = prefix + "wte.weight"
)

// Load reads a model directory into a new model. Weights may be F32, F16 or BF16.
// An error about a tensor names it with the shape found and the shape wanted.
func Load(dir string) (*gpt.Model, error) {
	c, err := readConfig(dir)
	if err != nil {
		return nil, err
	}
	r, err := openWeights(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	// The header must fit before hundreds of megabytes are taken: compared by size
	// here, by name and shape below.
	if err := checkSize(r, c.ParamCount()); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, WeightsFile), err)
	}
	m, err := gpt.New(c.Config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if err := loadParams(r, m.Params(), c.tied); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, WeightsFile), err)
	}
	return m, nil
}

// LoadInto replaces the weights of m by those of a model directory, whose config
// must agree with m's but for dropout. After an error m is not to be used.
func LoadInto(dir string, m *gpt.Model) error {
	c, err := readConfig(dir)
	if err != nil {
		return err
	}
	want := m.Config()
	want.EmbdDropout, want.AttnDropout, want.ResidDropout = c.EmbdDropout, c.AttnDropout, c.ResidDropout
	if c.Config != want {
		return fmt.Errorf("%s: %w: configuration %+v, want %+v", filepath.Join(dir, ConfigFile), ErrModel, c.Config, want)
	}
	r, err := openWeights(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := loadParams(r, m.Params(), c.tied); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, WeightsFile), err)
	}
	return nil
}

func openWeights(dir string) (*safetensors.Reader, error) {
	r, err := safetensors.Open(filepath.Join(dir, WeightsFile))
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	for _, other := range []string{WeightsFile + ".index.json", "pytorch_model.bin"} {
		if _, statErr := os.Stat(filepath.Join(dir, other)); statErr == nil {
			return nil, fmt.Errorf("%w (found %s: save the model again as one file, with safe_serialization=True)", err, other)
		}
	}
	return nil, err
}

func checkSize(r *safetensors.Reader, params int64) error {
	var n int64
	for _, t := range r.Tensors() {
		n += int64(t.Len())
	}
	if n < params {
		return fmt.Errorf("%w: %d numbers, config.json wants a model of %d", ErrModel, n, params)
	}
	return nil
}

// loadParams fills params from the tensors of r, each exactly once.
func loadParams(r *safetensors.Reader, params []gpt.Param, tied bool) error {
	found, err := index(r)
	if err != nil {
		return err
	}
	if err := matchShapes(found, params); err != nil {
		return err
	}
	for _, p := range params {
		if err := r.ReadFloat32(found[p.Name].Name, p.Data); err != nil {
			return err
		}
		if i := slices.IndexFunc(p.Data, func(v float32) bool { return v-v != 0 }); i >= 0 {
			return fmt.Errorf("%w: tensor %q: element %d is %v", ErrModel, found[p.Name].Name, i, p.Data[i])
		}
	}
	return checkHead(r, found, params, tied)
}

// index finds each tensor of r by the name that a Param has, without the mask
// buffers that older versions of transformers saved.
func index(r *safetensors.Reader) (map[string]safetensors.Info, error) {
	found := map[string]safetensors.Info{}
	for _, t := range r.Tensors() {
		name := t.Name
		if name != head && !strings.HasPrefix(name, prefix) {
			name = prefix + name
		}
		if isMask(name) {
			continue
		}
		if first, twice := found[name]; twice {
			return nil, fmt.Errorf("%w: tensor %q is there again as %q", ErrModel, first.Name, t.Name)
		}
		found[name] = t
	}
	return found, nil
}

// isMask tells whether name is transformer.h.N.attn.bias or .masked_bias.
func isMask(name string) bool {
	rest, ok := strings.CutPrefix(name, prefix+"h.")
	if !ok {
		return false
	}
	n, rest, _ := strings.Cut(rest, ".")
	return n != "" && strings.Trim(n, "0123456789") == "" && (rest == "attn.bias" || rest == "attn.masked_bias")
}

func matchShapes(found map[string]safetensors.Info, params []gpt.Param) error {
	known := make(map[string]bool, len(params))
	for _, p := range params {
		known[p.Name] = true
		t, ok := found[p.Name]
		switch {
		case !ok:
			return fmt.Errorf("%w: tensor %q is missing, want shape %v", ErrModel, p.Name, p.Shape)
		case !slices.Equal(t.Shape, p.Shape):
			return fmt.Errorf("%w: tensor %q has shape %v, want %v", ErrModel, t.Name, t.Shape, p.Shape)
		}
	}
	var extra []safetensors.Info
	for name, t := range found {
		if !known[name] && name != head {
			extra = append(extra, t)
		}
	}
	if len(extra) > 0 {
		t := slices.MinFunc(extra, func(a, b safetensors.Info) int { return cmp.Compare(a.Name, b.Name) })
		return fmt.Errorf("%w: tensor %q with shape %v is no part of this model, want none (%d such)", ErrModel, t.Name, t.Shape, len(extra))
	}
	return nil
}

// checkHead accepts a head of its own only when it equals the embedding, which is
// the head here.
func checkHead(r *safetensors.Reader, found map[string]safetensors.Info, params []gpt.Param, tied bool) error {
	i := slices.IndexFunc(params, func(p gpt.Param) bool { return p.Name == wte })
	if i < 0 {
		return fmt.Errorf("%w: model without %s", ErrModel, wte)
	}
	embedding := params[i]
	t, ok := found[head]
	switch {
	case !ok && !tied:
		return fmt.Errorf("%w: tie_word_embeddings is false and tensor %q is missing, want shape %v", ErrModel, head, embedding.Shape)
	case !ok:
		return nil
	case !slices.Equal(t.Shape, embedding.Shape):
		return fmt.Errorf("%w: tensor %q has shape %v, want %v", ErrModel, head, t.Shape, embedding.Shape)
	}
	rest := embedding.Data
	return r.EachFloat32(head, func(part []float32) error {
		for i, v := range part {
			if math.Float32bits(v) != math.Float32bits(rest[i]) {
				at := len(embedding.Data) - len(rest) + i
				return fmt.Errorf("%w: tensor %q differs from %q at element %d (%v, %v): an untied head is not supported", ErrModel, head, wte, at, v, rest[i])
			}
		}
		rest = rest[len(part):]
		return nil
	})
}
