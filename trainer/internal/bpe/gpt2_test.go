package bpe

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"
	"testing"
)

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// The files we write for the published vocabulary are the published ones: merges.txt to
// the byte, vocab.json as encoder.json sorted by id and without blanks and escapes. So the
// committed merges are whole, and the vocabulary derived from them is OpenAI's.
func TestPublishedFilesAreReproduced(t *testing.T) {
	golden := hardList(t)
	tokenizer := gpt2(t)
	var vocab, merges bytes.Buffer
	if err := tokenizer.SaveVocab(&vocab); err != nil {
		t.Fatal(err)
	}
	if err := tokenizer.SaveMerges(&merges); err != nil {
		t.Fatal(err)
	}
	if got := digestOf(merges.Bytes()); got != golden.VocabBPE {
		t.Errorf("merges.txt has digest %s, OpenAI's vocab.bpe has %s", got, golden.VocabBPE)
	}
	if got := digestOf(vocab.Bytes()); got != golden.EncoderJSON {
		t.Errorf("vocab.json has digest %s, OpenAI's encoder.json has %s", got, golden.EncoderJSON)
	}
	if got := tokenizer.VocabSize(); got != 50257 {
		t.Errorf("VocabSize() = %d, want 50257", got)
	}
	if id, ok := tokenizer.EndOfText(); id != 50256 || !ok {
		t.Errorf("EndOfText() = %d, %v, want 50256", id, ok)
	}
}

func TestHardListHasPublishedIDs(t *testing.T) {
	tokenizer := gpt2(t)
	naive := naiveEncoder(tokenizer)
	for _, c := range hardList(t).Cases {
		t.Run(c.Name, func(t *testing.T) {
			text := c.text(t)
			var words []int
			for i := 0; i < len(text); {
				end := wordEnd(text, i)
				words = append(words, end-i)
				i = end
			}
			if !slices.Equal(words, c.Words) {
				t.Errorf("words have lengths\n%v, want\n%v", words, c.Words)
			}
			for _, pass := range []string{"first", "cached"} {
				if got := tokenizer.AppendEncode(nil, text); !slices.Equal(got, c.IDs) {
					t.Errorf("%s: ids\n%v, want\n%v", pass, got, c.IDs)
				}
			}
			if got := tokenizer.Decode(c.IDs); !bytes.Equal(got, text) {
				t.Errorf("decoded to %q, want %q", got, text)
			}
			if got := naive(text); !slices.Equal(got, c.IDs) {
				t.Errorf("the naive oracle of other tests has\n%v, want\n%v", got, c.IDs)
			}
		})
	}
}

func TestAppendEncodeAppends(t *testing.T) {
	tokenizer := gpt2(t)
	got := tokenizer.AppendEncode([]int32{7, 8}, []byte("Hello world"))
	if want := []int32{7, 8, 15496, 995}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSpecialTokensOnlyWhereAskedFor(t *testing.T) {
	tokenizer := gpt2(t)
	const eot = 50256
	plain := tokenizer.Encode(EndOfText)
	if slices.Contains(plain, eot) || string(tokenizer.Decode(plain)) != EndOfText {
		t.Errorf("Encode made %v of the text %s", plain, EndOfText)
	}
	for _, c := range []struct {
		name, text string
		want       []int32
	}{
		{"none", "Hello world", []int32{15496, 995}},
		{"empty", "", nil},
		{"alone", EndOfText, []int32{eot}},
		{"between", "Hello<|endoftext|> world", []int32{15496, eot, 995}},
		{"twice at the end", "Hello<|endoftext|><|endoftext|>", []int32{15496, eot, eot}},
		{"cut short", "Hello<|endoftext|", append([]int32{15496}, tokenizer.Encode("<|endoftext|")...)},
		{"nested", "<|endof<|endoftext|>text|>", slices.Concat(tokenizer.Encode("<|endof"), []int32{eot}, tokenizer.Encode("text|>"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := tokenizer.EncodeWithSpecial(c.text)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if back := string(tokenizer.Decode(got)); back != c.text {
				t.Errorf("decoded to %q, want %q", back, c.text)
			}
		})
	}
}

func TestLongestSpecialTokenWins(t *testing.T) {
	tokenizer := mustTrain(t, TrainOptions{VocabSize: 260, SpecialTokens: []string{"<|a|>", "<|a|><|b|>", "|><|b|", "<|b|>"}}, "x")
	got := tokenizer.EncodeWithSpecial("<|a|><|b|><|b|>|><|b|<|a|>x")
	if want := []int32{257, 259, 258, 256, 'x' - '!'}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDecodeIgnoresUnknownIDs(t *testing.T) {
	tokenizer := gpt2(t)
	if got := tokenizer.Decode([]int32{-1, 15496, 50257, 1 << 30, 995}); string(got) != "Hello world" {
		t.Errorf("got %q", got)
	}
	if _, ok := tokenizer.Token(50257); ok {
		t.Error("Token(50257) is there")
	}
	if token, ok := tokenizer.Token(995); string(token) != " world" || !ok {
		t.Errorf("Token(995) = %q, %v", token, ok)
	}
}

// Meant for the race detector as well.
func TestManyGoroutinesEncodeAlike(t *testing.T) {
	tokenizer := gpt2(t)
	cases := hardList(t).Cases
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for _, c := range cases {
				if got := tokenizer.AppendEncode(nil, c.text(t)); !slices.Equal(got, c.IDs) {
					t.Errorf("%s: ids %v, want %v", c.Name, got, c.IDs)
				}
			}
		})
	}
	running.Wait()
}
