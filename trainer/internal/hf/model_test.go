package hf

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
)

func TestLoadAndSaveModel(t *testing.T) {
	dir := filepath.Join("testdata", "transformers")
	_, want := goldenParams(t)
	m, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	compareByName(t, m.Params(), want)
	copied := t.TempDir()
	if _, err := Save(copied, m, SaveOptions{EndOfText: ptr(0)}); err != nil {
		t.Fatal(err)
	}
	if string(readFile(t, copied, WeightsFile)) != string(readFile(t, dir, WeightsFile)) {
		t.Error("saved weights are not the loaded file")
	}
	for _, p := range m.Params() {
		clear(p.Data)
	}
	if err := LoadInto(copied, m); err != nil {
		t.Fatal(err)
	}
	compareByName(t, m.Params(), want)
}

// compareByName requires equal bits; the order of a model's tensors is its own.
func compareByName(t *testing.T, got, want []gpt.Param) {
	t.Helper()
	byName := map[string]gpt.Param{}
	for _, p := range got {
		byName[p.Name] = p
	}
	var sorted []gpt.Param
	for _, w := range want {
		sorted = append(sorted, byName[w.Name])
	}
	if len(got) != len(want) {
		t.Fatalf("%d tensors, want %d", len(got), len(want))
	}
	compare(t, sorted, want, 0)
}

func TestLoadIntoAnotherShape(t *testing.T) {
	m, err := gpt.New(testConfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := LoadInto(filepath.Join("testdata", "transformers"), m); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), ConfigFile) {
		t.Errorf("got %v, want ErrModel and the file", err)
	}
}

func TestLoadNamesFileAndTensor(t *testing.T) {
	cfg := testConfig()
	for name, c := range map[string]struct {
		change func(dir string) error
		want   string
	}{
		"truncated": {func(dir string) error {
			return os.Truncate(filepath.Join(dir, WeightsFile), 3000)
		}, "truncated"},
		"other config": {func(dir string) error {
			path := filepath.Join(dir, ConfigFile)
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, []byte(strings.Replace(string(b), `"n_positions": 6`, `"n_positions": 5`, 1)), 0o600)
		}, `tensor "transformer.wpe.weight" has shape [6 4], want [5 4]`},
		"larger config": {func(dir string) error {
			path := filepath.Join(dir, ConfigFile)
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, []byte(strings.Replace(string(b), `"vocab_size": 11`, `"vocab_size": 500000000`, 1)), 0o600)
		}, "config.json wants a model of"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := save(dir, cfg, newParams(cfg), SaveOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := c.change(dir); err != nil {
				t.Fatal(err)
			}
			_, err := Load(dir)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.Join(dir, WeightsFile)) {
				t.Errorf("got %v, want the file and %q", err, c.want)
			}
		})
	}
}
