package hf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"path/filepath"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/safetensors"
)

// EndOfText is the text of GPT-2's only special token.
const EndOfText = "<|endoftext|>"

// SaveOptions say how a model is written.
type SaveOptions struct {
	// DType of the weights: F32 (also when empty), F16 or BF16.
	DType safetensors.DType
	// EndOfText is the id of the end-of-text token, nil when the vocabulary has none.
	EndOfText *int32
	// Metadata goes into the weights file beside format=pt. To keep the bytes
	// reproducible it should hold no times.
	Metadata map[string]string
}

// Save writes model.safetensors, config.json, generation_config.json and
// tokenizer_config.json into dir, which must exist, and returns the SHA-256 of
// model.safetensors in hex. Each file is replaced atomically, the weights first;
// the bytes depend on the model and the options alone. To replace a whole
// directory at once, save into a new one and exchange the two.
func Save(dir string, m *gpt.Model, opts SaveOptions) (digest string, err error) {
	return save(dir, m.Config(), m.Params(), opts)
}

func save(dir string, cfg gpt.Config, params []gpt.Param, opts SaveOptions) (string, error) {
	if opts.DType == "" {
		opts.DType = safetensors.F32
	}
	if _, err := torchDType(opts.DType); err != nil {
		return "", err
	}
	if id := opts.EndOfText; id != nil && (*id < 0 || int(*id) >= cfg.VocabSize) {
		return "", fmt.Errorf("end-of-text token %d is outside the vocabulary of %d", *id, cfg.VocabSize)
	}
	digest, err := saveWeights(filepath.Join(dir, WeightsFile), params, opts)
	if err != nil {
		return "", err
	}
	for _, file := range []struct {
		name    string
		content any
	}{
		{ConfigFile, newConfigJSON(cfg, opts)},
		{GenerationConfigFile, newGenerationConfigJSON(opts)},
		{TokenizerConfigFile, newTokenizerConfigJSON(cfg, opts)},
	} {
		if err := atomicfile.WriteJSON(filepath.Join(dir, file.name), file.content); err != nil {
			return "", err
		}
	}
	return digest, nil
}

func saveWeights(path string, params []gpt.Param, opts SaveOptions) (string, error) {
	metadata := map[string]string{}
	maps.Copy(metadata, opts.Metadata)
	metadata["format"] = "pt" // transformers refuses files without it
	tensors := make([]safetensors.Tensor, len(params))
	for i, p := range params {
		tensors[i] = safetensors.Tensor{Name: p.Name, DType: opts.DType, Shape: p.Shape, Data: p.Data}
	}
	sum := sha256.New()
	err := atomicfile.WriteFile(path, func(w io.Writer) error {
		return safetensors.Write(io.MultiWriter(w, sum), metadata, tensors)
	})
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// torchDType is the name that config.json uses.
func torchDType(d safetensors.DType) (string, error) {
	switch d {
	case safetensors.F32:
		return "float32", nil
	case safetensors.F16:
		return "float16", nil
	case safetensors.BF16:
		return "bfloat16", nil
	}
	return "", fmt.Errorf("weights cannot be saved as %q: use F32, F16 or BF16", d)
}
