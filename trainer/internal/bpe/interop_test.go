package bpe

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// With a directory this flag keeps what TestTrainedTokenizerForInterop makes, for
// scripts/tokenizer-goldens/interop.py to check with Hugging Face's libraries.
var interopDir = flag.String("interop", "", "`directory` for a trained tokenizer and its ids")

// The trained tokenizer encodes the hard list, and what it saves encodes it alike.
func TestTrainedTokenizerForInterop(t *testing.T) {
	dir := *interopDir
	if dir == "" {
		dir = t.TempDir()
	}
	cases := hardList(t).Cases
	documents := zipfDocuments(4, 200_000)
	for _, c := range cases {
		documents = append(documents, strings.Repeat(string(c.text(t)), 3))
	}
	tokenizer := mustTrain(t, TrainOptions{VocabSize: 2000, SpecialTokens: []string{EndOfText}}, documents...)
	if err := tokenizer.Save(dir); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		text := cases[i].text(t)
		cases[i].Hex, cases[i].IDs = hex.EncodeToString(text), tokenizer.EncodeWithSpecial(string(text))
		if got := loaded.EncodeWithSpecial(string(text)); !slices.Equal(got, cases[i].IDs) {
			t.Errorf("%s: the saved tokenizer has ids %v, want %v", cases[i].Name, got, cases[i].IDs)
		}
	}
	data, err := json.Marshal(cases)
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, "ids.json"), data, 0o600)); err != nil {
		t.Fatal(err)
	}
}
