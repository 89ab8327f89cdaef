//go:build interop

package interoptest

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/bpe"
	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/par"
)

// expected is what the side that made a model says of it: expected.json in the
// model's directory. scripts/interop/exchange.py has the same.
type expected struct {
	Prompts []prompt `json:"prompts"`
	// Tensors has the SHA-256 of each tensor's float32 values, little-endian.
	Tensors map[string]string `json:"tensors,omitempty"`
}

type prompt struct {
	Text      string    `json:"text"`
	IDs       []int32   `json:"ids"`
	Logits    []float32 `json:"logits"`     // (len(IDs), V)
	Greedy    []int32   `json:"greedy"`     // prompt and continuation
	GreedyHex string    `json:"greedy_hex"` // their bytes; they need not be UTF-8
}

// row is one line of the table in docs/interop.md.
type row struct {
	Direction string `json:"direction"`
	Model     string `json:"model"`
	Check     string `json:"check"`
	Result    string `json:"result"`
	OK        bool   `json:"ok"`
}

// newTokens is how far both sides go on after a prompt; end of text stops them.
const newTokens = 40

var prompts = []string{
	"The Licensor grants",
	"Hello, it's 3 o'clock — they'll  wait\n\n  for   us.",
	"日本語と中文 and 한국어",
	"🙂👩‍👩‍👧 émigré naïve\t\ttabs",
	"Permission is hereby granted, free of charge, to any person",
}

func exchangeDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("INTEROP_DIR")
	if dir == "" {
		t.Fatal("INTEROP_DIR is not set: run scripts/interop/run.sh")
	}
	return dir
}

// answer computes what this side has to say about a prompt.
func answer(t *testing.T, m *gpt.Model, tok *bpe.Tokenizer, text string) prompt {
	t.Helper()
	pool := par.NewPool(2)
	defer pool.Close()
	p := prompt{Text: text, IDs: tok.Encode(text)}
	set, err := kernel.Choose("")
	if err != nil {
		t.Fatal(err)
	}
	session, err := gpt.NewSession(m, pool, gpt.SessionOptions{MaxB: 1, MaxT: len(p.IDs), Kernels: set})
	if err != nil {
		t.Fatal(err)
	}
	if p.Logits, err = session.Logits(gpt.Batch{B: 1, T: len(p.IDs), Inputs: p.IDs}); err != nil {
		t.Fatal(err)
	}
	decoder := gpt.NewDecoder(m, pool, set)
	end, hasEnd := tok.EndOfText()
	p.Greedy = slices.Clone(p.IDs)
	for next := p.IDs; len(p.Greedy) < len(p.IDs)+newTokens; {
		logits, err := decoder.Feed(next)
		if err != nil {
			t.Fatal(err)
		}
		best := 0
		for i, v := range logits {
			if v > logits[best] {
				best = i
			}
		}
		next = []int32{int32(best)}
		p.Greedy = append(p.Greedy, next...)
		if hasEnd && next[0] == end {
			break
		}
	}
	p.GreedyHex = hex.EncodeToString(tok.Decode(p.Greedy))
	return p
}

func readExpected(t *testing.T, dir string) expected {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var e expected
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func writeJSON(t *testing.T, path string, v any) {
	t.Helper()
	if err := atomicfile.WriteJSON(path, v); err != nil {
		t.Fatal(err)
	}
}
