package bpe

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestSavedTokenizersAreEqual(t *testing.T) {
	for name, tokenizer := range map[string]*Tokenizer{
		"gpt2":    gpt2(t),
		"trained": mustTrain(t, TrainOptions{VocabSize: 300, SpecialTokens: []string{EndOfText, "<|sep|>"}}, zipfDocuments(2, 5000)...),
		"small":   mustTrain(t, TrainOptions{VocabSize: 256}, "x"),
	} {
		t.Run(name, func(t *testing.T) {
			first, second, third := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "new")
			if err := tokenizer.Save(first); err != nil {
				t.Fatal(err)
			}
			loaded, err := Load(first)
			if err != nil {
				t.Fatal(err)
			}
			if err := loaded.Save(second); err != nil {
				t.Fatal(err)
			}
			// Without tokenizer.json the other two files say the same.
			if err := os.Remove(filepath.Join(second, TokenizerFile)); err != nil {
				t.Fatal(err)
			}
			if loaded, err = Load(second); err != nil {
				t.Fatal(err)
			}
			if err := loaded.Save(third); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{TokenizerFile, VocabFile, MergesFile} {
				a, errA := os.ReadFile(filepath.Join(first, file))
				b, errB := os.ReadFile(filepath.Join(third, file))
				if err := errors.Join(errA, errB); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(a, b) {
					t.Errorf("%s differs", file)
				}
				if file == TokenizerFile && digestOf(a) != tokenizer.Digest() {
					t.Errorf("Digest() = %s, but the file has %s", tokenizer.Digest(), digestOf(a))
				}
			}
		})
	}
}

// full is a writer that has room for n bytes.
type full struct{ n int }

var errFull = errors.New("no space left")

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.n {
		return 0, errFull
	}
	f.n -= len(p)
	return len(p), nil
}

func TestSaveReportsAFullDisk(t *testing.T) {
	tokenizer := gpt2(t)
	for name, save := range map[string]func(io.Writer) error{
		"tokenizer.json": tokenizer.SaveTokenizerJSON,
		"vocab.json":     tokenizer.SaveVocab,
		"merges.txt":     tokenizer.SaveMerges,
	} {
		for _, room := range []int{0, 100_000} {
			if err := save(&full{room}); !errors.Is(err, errFull) {
				t.Errorf("%s with room for %d bytes: error %v, want %v", name, room, err, errFull)
			}
		}
	}
}
