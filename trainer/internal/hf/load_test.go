package hf

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/safetensors"
)

// goldenParams are the weights that PyTorch had when transformers saved
// testdata/transformers (scripts/interop/transformers_golden.py).
func goldenParams(t *testing.T) (gpt.Config, []gpt.Param) {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "gpt", "testdata", "gpt2_tiny_tanh.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Params map[string]struct {
			Shape []int
			Data  []float32
		}
	}
	if err := json.NewDecoder(z).Decode(&golden); err != nil {
		t.Fatal(err)
	}
	cfg, err := ReadConfig(filepath.Join("testdata", "transformers"))
	if err != nil {
		t.Fatal(err)
	}
	params := newParams(cfg)
	if len(params) != len(golden.Params) {
		t.Fatalf("%d golden tensors, want %d", len(golden.Params), len(params))
	}
	for i, p := range params {
		g, ok := golden.Params[p.Name]
		if !ok {
			t.Fatalf("no golden tensor %q", p.Name)
		}
		params[i].Shape, params[i].Data = g.Shape, g.Data
	}
	return cfg, params
}

func TestLoadModelSavedByTransformers(t *testing.T) {
	cfg, want := goldenParams(t)
	if w := (gpt.Config{
		VocabSize: 61, BlockSize: 16, Layers: 2, Heads: 2, Channels: 16, Inner: 64, Activation: gpt.GELUTanh,
		Epsilon: 1e-5, EmbdDropout: 0.1, AttnDropout: 0.1, ResidDropout: 0.1,
	}); cfg != w {
		t.Errorf("configuration %+v, want %+v", cfg, w)
	}
	r, err := openWeights(filepath.Join("testdata", "transformers"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := cleared(newParams(cfg))
	if err := loadParams(r, got, true); err != nil {
		t.Fatal(err)
	}
	compare(t, got, want, 0)
}

func TestLoadVariants(t *testing.T) {
	want := newParams(testConfig())
	withoutPrefix := func(ts []safetensors.Tensor) []safetensors.Tensor {
		for i := range ts {
			ts[i].Name = strings.TrimPrefix(ts[i].Name, prefix)
		}
		return ts
	}
	mask := safetensors.Tensor{DType: safetensors.U8, Shape: []int{1, 1, 6, 6}, Data: make([]byte, 36)}
	masked := safetensors.Tensor{DType: safetensors.F32, Data: []float32{-1e4}}
	withMasks := func(ts []safetensors.Tensor, pre string) []safetensors.Tensor {
		for _, n := range []string{"0", "1"} {
			mask.Name, masked.Name = pre+"h."+n+".attn.bias", pre+"h."+n+".attn.masked_bias"
			ts = append(ts, mask, masked)
		}
		return ts
	}
	withHead := func(ts []safetensors.Tensor) []safetensors.Tensor {
		return append(ts, safetensors.Tensor{Name: head, DType: safetensors.F32, Shape: ts[0].Shape, Data: slices.Clone(want[0].Data)})
	}
	inDType := func(d safetensors.DType) []safetensors.Tensor {
		ts := tensors(want)
		for i := range ts {
			ts[i].DType = d
		}
		return ts
	}
	for name, c := range map[string]struct {
		tensors   []safetensors.Tensor
		tied      bool
		tolerance float64
	}{
		"as saved":             {tensors(want), true, 0},
		"no prefix":            {withoutPrefix(tensors(want)), true, 0},
		"masks":                {withMasks(tensors(want), prefix), true, 0},
		"masks, no prefix":     {withMasks(withoutPrefix(tensors(want)), ""), true, 0},
		"equal head":           {withHead(tensors(want)), true, 0},
		"untied but equal":     {withHead(tensors(want)), false, 0},
		"head, no prefix":      {withHead(withoutPrefix(tensors(want))), true, 0},
		"half precision":       {inDType(safetensors.F16), true, 1.0 / 2048},
		"bfloat16":             {inDType(safetensors.BF16), true, 1.0 / 256},
		"mixed":                {append(tensors(want)[:5:5], inDType(safetensors.BF16)[5:]...), true, 1.0 / 256},
		"head in another type": {append(inDType(safetensors.BF16), safetensors.Tensor{Name: head, DType: safetensors.BF16, Shape: want[0].Shape, Data: want[0].Data}), true, 1.0 / 256},
	} {
		t.Run(name, func(t *testing.T) {
			got := cleared(want)
			if err := loadParams(reader(t, c.tensors), got, c.tied); err != nil {
				t.Fatal(err)
			}
			compare(t, got, want, c.tolerance)
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	params := newParams(testConfig())
	at := func(name string) int {
		return slices.IndexFunc(params, func(p gpt.Param) bool { return p.Name == name })
	}
	attn := at("transformer.h.1.attn.c_attn.weight")
	for name, c := range map[string]struct {
		change func([]safetensors.Tensor) []safetensors.Tensor
		tied   bool
		want   string
	}{
		"missing": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			return slices.Delete(ts, attn, attn+1)
		}, true, `tensor "transformer.h.1.attn.c_attn.weight" is missing, want shape [4 12]`},
		"transposed": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			ts[attn].Shape = []int{12, 4}
			return ts
		}, true, `tensor "transformer.h.1.attn.c_attn.weight" has shape [12 4], want [4 12]`},
		"flat": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			ts[attn].Shape = []int{48}
			return ts
		}, true, `has shape [48], want [4 12]`},
		"one layer more": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			return append(ts, safetensors.Tensor{Name: "h.2.ln_1.bias", DType: safetensors.F32, Shape: []int{4}, Data: make([]float32, 4)})
		}, true, `tensor "h.2.ln_1.bias" with shape [4] is no part of this model`},
		"not quite a mask": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			return append(ts, safetensors.Tensor{Name: "h.x.attn.bias", DType: safetensors.F32, Data: []float32{0}})
		}, true, `tensor "h.x.attn.bias"`},
		"both names": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			return append(ts, safetensors.Tensor{Name: "wpe.weight", DType: safetensors.F32, Shape: []int{6, 4}, Data: make([]float32, 24)})
		}, true, `is there again as`},
		"integers": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			ts[attn].DType, ts[attn].Data = safetensors.I64, make([]int64, 48)
			return ts
		}, true, `dtype I64`},
		"not a number": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			d := slices.Clone(params[attn].Data)
			d[7] = float32(math.NaN())
			ts[attn].Data = d
			return ts
		}, true, `element 7 is NaN`},
		"infinite": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			d := slices.Clone(params[attn].Data)
			d[8] = float32(math.Inf(-1))
			ts[attn].Data = d
			return ts
		}, true, `element 8 is -Inf`},
		"untied without head": {func(ts []safetensors.Tensor) []safetensors.Tensor { return ts },
			false, `tie_word_embeddings is false and tensor "lm_head.weight" is missing`},
		"another head": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			d := slices.Clone(params[0].Data)
			d[43] += 1
			return append(ts, safetensors.Tensor{Name: head, DType: safetensors.F32, Shape: params[0].Shape, Data: d})
		}, true, `differs from "transformer.wte.weight" at element 43`},
		"head of another shape": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			return append(ts, safetensors.Tensor{Name: head, DType: safetensors.F32, Shape: []int{4, 11}, Data: params[0].Data})
		}, true, `"lm_head.weight" has shape [4 11], want [11 4]`},
	} {
		t.Run(name, func(t *testing.T) {
			err := loadParams(reader(t, c.change(tensors(params))), cleared(params), c.tied)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, c.want)
			}
		})
	}
}

func TestWeightsThatAreElsewhere(t *testing.T) {
	dir := t.TempDir()
	if _, err := openWeights(dir); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), WeightsFile) {
		t.Errorf("got %v, want that the file does not exist", err)
	}
	for _, name := range []string{"pytorch_model.bin", "model.safetensors.index.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openWeights(dir); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want the hint at %s", err, name)
		}
	}
}

func TestConfigOfALargerModelTakesNoMemory(t *testing.T) {
	r := reader(t, tensors(newParams(testConfig())))
	if err := checkSize(r, 124_000_000); !errors.Is(err, ErrModel) {
		t.Errorf("got %v, want ErrModel", err)
	}
	if err := checkSize(r, testConfig().ParamCount()); err != nil {
		t.Error(err)
	}
}

// TestHeadOfSeveralParts has a head longer than the parts in which it is compared.
func TestHeadOfSeveralParts(t *testing.T) {
	cfg := testConfig()
	cfg.VocabSize = 10_007
	params := newParams(cfg)
	own := slices.Clone(params[0].Data)
	file := append(tensors(params), safetensors.Tensor{Name: head, DType: safetensors.F32, Shape: params[0].Shape, Data: own})
	if err := loadParams(reader(t, file), cleared(params), true); err != nil {
		t.Fatal(err)
	}
	own[40_000]++
	if err := loadParams(reader(t, file), cleared(params), true); err == nil || !strings.Contains(err.Error(), "element 40000 ") {
		t.Errorf("got %v, want an error at element 40000", err)
	}
}
