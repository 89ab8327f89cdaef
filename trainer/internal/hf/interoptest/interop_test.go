//go:build interop

package interoptest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/bpe"
	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/hf"
	"github.com/trainyard/trainyard/trainer/internal/rng"
	"github.com/trainyard/trainyard/trainer/internal/safetensors"
)

// tolerance of logits, absolute; theirs and ours are float32 and of size 1 to 10.
const tolerance = 1e-4

// TestWriteModels makes the models that scripts/interop/check_ours.py loads.
func TestWriteModels(t *testing.T) {
	base := filepath.Join(exchangeDir(t), "ours")
	tok := trainTokenizer(t)
	nano, err := gpt.Preset("nano")
	if err != nil {
		t.Fatal(err)
	}
	odd := gpt.Config{BlockSize: 97, Layers: 3, Heads: 3, Channels: 33, Inner: 70, Activation: gpt.GELUErf, Epsilon: 1e-6}
	for name, c := range map[string]struct {
		cfg   gpt.Config
		dtype safetensors.DType
	}{
		"nano-f32":    {nano, safetensors.F32},
		"nano-f16":    {nano, safetensors.F16},
		"nano-bf16":   {nano, safetensors.BF16},
		"odd-erf-f32": {odd, safetensors.F32},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(base, name)
			if err := atomicfile.MkdirAll(dir); err != nil {
				t.Fatal(err)
			}
			c.cfg.VocabSize = tok.VocabSize()
			m := newModel(t, c.cfg)
			saveModel(t, dir, m, tok, c.dtype)
			// The weights as rounded, but the configuration as it was meant: a key that
			// is both written and read wrongly must show.
			if err := hf.LoadInto(dir, m); err != nil {
				t.Fatal(err)
			}
			e := expected{Tensors: tensorSums(m)}
			for _, text := range prompts {
				e.Prompts = append(e.Prompts, answer(t, m, tok, text))
			}
			writeJSON(t, filepath.Join(dir, "expected.json"), e)
		})
	}
}

func trainTokenizer(t *testing.T) *bpe.Tokenizer {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash("../../../../LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	one := func(yield func([]byte, error) bool) { yield(text, nil) }
	tok, err := bpe.Train(context.Background(), one, bpe.TrainOptions{VocabSize: 600, SpecialTokens: []string{hf.EndOfText}})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// newModel draws weights large enough that attention and GELU are far from linear,
// and gives every bias a part.
func newModel(t *testing.T, cfg gpt.Config) *gpt.Model {
	t.Helper()
	m, err := gpt.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := rng.New(7, "init")
	m.Init(s)
	for _, p := range m.Params() {
		for i := range p.Data {
			if len(p.Shape) == 2 {
				p.Data[i] *= 5
			} else {
				p.Data[i] += float32(s.NormFloat64()) / 5
			}
		}
	}
	return m
}

func saveModel(t *testing.T, dir string, m *gpt.Model, tok *bpe.Tokenizer, dtype safetensors.DType) {
	t.Helper()
	end, ok := tok.EndOfText()
	if !ok {
		t.Fatal("tokenizer without end of text")
	}
	if err := tok.Save(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := hf.Save(dir, m, hf.SaveOptions{DType: dtype, EndOfText: &end, Metadata: map[string]string{"made_by": "trainyard"}}); err != nil {
		t.Fatal(err)
	}
}

func tensorSums(m *gpt.Model) map[string]string {
	out := map[string]string{}
	for _, p := range m.Params() {
		h := sha256.New()
		for _, v := range p.Data {
			var b [4]byte
			binary.LittleEndian.PutUint32(b[:], math.Float32bits(v))
			h.Write(b[:])
		}
		out[p.Name] = hex.EncodeToString(h.Sum(nil))
	}
	return out
}

// TestReadModels loads what scripts/interop/make_theirs.py saved.
func TestReadModels(t *testing.T) {
	exchange := exchangeDir(t)
	base := filepath.Join(exchange, "theirs")
	entries, err := os.ReadDir(base)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) == 0 {
		t.Fatalf("no models in %s", base)
	}
	var rows []row
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			rows = append(rows, checkTheirs(t, e.Name(), filepath.Join(base, e.Name()))...)
		})
	}
	writeJSON(t, filepath.Join(exchange, "results-theirs.json"), rows)
	for _, r := range rows {
		if !r.OK {
			t.Errorf("%s: %s: %s", r.Model, r.Check, r.Result)
		}
	}
}

func checkTheirs(t *testing.T, name, dir string) []row {
	m, err := hf.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := bpe.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := readExpected(t, dir)
	ids, greedy, text, worst := 0, 0, 0, 0.0
	for _, w := range want.Prompts {
		got := answer(t, m, tok, w.Text)
		if slices.Equal(got.IDs, w.IDs) {
			ids++
		}
		if slices.Equal(got.Greedy, w.Greedy) {
			greedy++
		}
		if got.GreedyHex == w.GreedyHex {
			text++
		}
		worst = max(worst, distance(got.Logits, w.Logits))
	}
	n := len(want.Prompts)
	count := func(check string, k int) row {
		return row{"transformers → trainer", name, check, fmt.Sprintf("%d of %d equal", k, n), k == n && n > 0}
	}
	return []row{
		{"transformers → trainer", name, "logits", fmt.Sprintf("largest difference %.1e", worst), worst <= tolerance},
		count("token ids", ids), count("greedy ids", greedy), count("greedy text", text),
	}
}

// distance is infinite for logits of different length or with NaN.
func distance(a, b []float32) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	worst := 0.0
	for i := range a {
		d := math.Abs(float64(a[i]) - float64(b[i]))
		if !(d < math.Inf(1)) {
			return math.Inf(1)
		}
		worst = max(worst, d)
	}
	return worst
}
