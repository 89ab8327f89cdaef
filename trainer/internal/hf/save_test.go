package hf

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/safetensors"
)

var update = flag.Bool("update", false, "write the golden files anew")

func ptr(i int32) *int32 { return &i }

func TestSaveThenLoad(t *testing.T) {
	odd := testConfig()
	odd.Inner, odd.Activation, odd.Epsilon = 7, gpt.GELUErf, 1e-6
	for name, c := range map[string]struct {
		cfg       gpt.Config
		opts      SaveOptions
		tolerance float64
	}{
		"float32":       {testConfig(), SaveOptions{}, 0},
		"half":          {testConfig(), SaveOptions{DType: safetensors.F16, EndOfText: ptr(10)}, 1.0 / 2048},
		"bfloat16":      {testConfig(), SaveOptions{DType: safetensors.BF16}, 1.0 / 256},
		"odd shape":     {odd, SaveOptions{}, 0},
		"with metadata": {testConfig(), SaveOptions{Metadata: map[string]string{"run": "r1", "format": "x"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			want := newParams(c.cfg)
			digest, err := save(dir, c.cfg, want, c.opts)
			if err != nil {
				t.Fatal(err)
			}
			if sum := sha256.Sum256(readFile(t, dir, WeightsFile)); digest != hex.EncodeToString(sum[:]) {
				t.Errorf("digest %s, the file's is %x", digest, sum)
			}
			if got, err := ReadConfig(dir); err != nil || got != c.cfg {
				t.Errorf("config %+v and %v, want %+v", got, err, c.cfg)
			}
			r, err := openWeights(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			wantMeta := map[string]string{"format": "pt"}
			if run, ok := c.opts.Metadata["run"]; ok {
				wantMeta["run"] = run
			}
			if !reflect.DeepEqual(r.Metadata(), wantMeta) {
				t.Errorf("metadata %v, want %v", r.Metadata(), wantMeta)
			}
			got := cleared(want)
			if err := loadParams(r, got, true); err != nil {
				t.Fatal(err)
			}
			compare(t, got, want, c.tolerance)
		})
	}
}

func TestSaveGivesTheSameBytesEveryTime(t *testing.T) {
	cfg := testConfig()
	params := newParams(cfg)
	a, b := t.TempDir(), t.TempDir()
	opts := SaveOptions{EndOfText: ptr(0), Metadata: map[string]string{"a": "1", "b": "2", "c": "3"}}
	first, err := save(a, cfg, params, opts)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(params)
	second, err := save(b, cfg, params, opts)
	if err != nil {
		t.Fatal(err)
	}
	if first != second {
		t.Errorf("digests %s and %s differ", first, second)
	}
	for _, name := range []string{ConfigFile, WeightsFile, GenerationConfigFile, TokenizerConfigFile} {
		if !bytes.Equal(readFile(t, a, name), readFile(t, b, name)) {
			t.Errorf("%s differs", name)
		}
	}
}

// TestSaveEqualsTransformers writes the model that transformers wrote: the weights
// file must be the same but for the order of tensors, which is the same too.
func TestSaveEqualsTransformers(t *testing.T) {
	cfg, params := goldenParams(t)
	dir := t.TempDir()
	if _, err := save(dir, cfg, params, SaveOptions{EndOfText: ptr(0)}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(readFile(t, dir, WeightsFile), readFile(t, "testdata", "transformers", WeightsFile)) {
		t.Error("model.safetensors is not byte for byte what transformers wrote")
	}
}

func TestSavedJSON(t *testing.T) {
	odd := testConfig()
	odd.Inner, odd.Activation = 7, gpt.GELUErf
	for name, c := range map[string]struct {
		cfg  gpt.Config
		opts SaveOptions
	}{
		"plain":          {testConfig(), SaveOptions{EndOfText: ptr(10)}},
		"odd_without_id": {odd, SaveOptions{DType: safetensors.BF16}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := save(dir, c.cfg, newParams(c.cfg), c.opts); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name)
			for _, file := range []string{ConfigFile, GenerationConfigFile, TokenizerConfigFile} {
				got := readFile(t, dir, file)
				if *update {
					if err := os.MkdirAll(golden, 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(golden, file), got, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				if want := readFile(t, golden, file); !bytes.Equal(got, want) {
					t.Errorf("%s is\n%s\nwant\n%s", file, got, want)
				}
			}
		})
	}
}

func TestSaveRefusesAndLeavesTheOldModel(t *testing.T) {
	cfg := testConfig()
	huge := newParams(cfg)
	huge[3].Data[0] = 1e6
	for name, c := range map[string]struct {
		params []gpt.Param
		opts   SaveOptions
		want   string
	}{
		"too large for half":       {huge, SaveOptions{DType: safetensors.F16}, "too large for F16"},
		"integers":                 {newParams(cfg), SaveOptions{DType: safetensors.I64}, `"I64"`},
		"token outside":            {newParams(cfg), SaveOptions{EndOfText: ptr(11)}, "outside the vocabulary of 11"},
		"negative token":           {newParams(cfg), SaveOptions{EndOfText: ptr(-1)}, "outside"},
		"metadata that is no text": {newParams(cfg), SaveOptions{Metadata: map[string]string{"k": "\xff"}}, "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			want, err := save(dir, cfg, newParams(cfg), SaveOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := save(dir, cfg, c.params, c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if sum := sha256.Sum256(readFile(t, dir, WeightsFile)); want != hex.EncodeToString(sum[:]) {
				t.Error("the old weights are gone")
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 4 {
				t.Errorf("%d files and %v, want the four of a model", len(entries), err)
			}
		})
	}
}

func TestSaveIntoNoDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "missing")
	if _, err := save(dir, testConfig(), newParams(testConfig()), SaveOptions{}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want an error with the directory", err)
	}
}
