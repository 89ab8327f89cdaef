package bpe

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"unicode/utf8"
)

// The truth that tests compare with: goldens of other implementations, and naive ones.

// hardCase is one text of the hard list with GPT-2's words and ids.
type hardCase struct {
	Name  string
	Hex   string
	Words []int // lengths in bytes
	IDs   []int32
}

func (c hardCase) text(t testing.TB) []byte {
	t.Helper()
	text, err := hex.DecodeString(c.Hex)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// gpt2IDs is testdata/gpt2-ids.json.
type gpt2IDs struct {
	EncoderJSON string `json:"encoder_json_sha256_sorted"`
	VocabBPE    string `json:"vocab_bpe_sha256"`
	Cases       []hardCase
}

func readGolden(t testing.TB, name string, v any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func hardList(t testing.TB) gpt2IDs {
	t.Helper()
	var golden gpt2IDs
	readGolden(t, "gpt2-ids.json", &golden)
	if len(golden.Cases) < 60 {
		t.Fatalf("hard list has %d cases, want at least 60", len(golden.Cases))
	}
	return golden
}

// gpt2Merges is OpenAI's published vocab.bpe.
func gpt2Merges(t testing.TB) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "gpt2-vocab.bpe.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// gpt2 is the tokenizer of the published vocabulary. encoder.json is not kept: it follows
// from vocab.bpe as below. scripts/tokenizer-goldens/goldens.py has checked that with the
// published encoder.json, and TestPublishedFilesAreReproduced checks it by digest.
func gpt2(t testing.TB) *Tokenizer {
	t.Helper()
	merges, err := parseMerges(gpt2Merges(t))
	if err != nil {
		t.Fatal(err)
	}
	vocab := make(map[string]int32)
	for _, b := range byteOrder {
		vocab[spell([]byte{b})] = int32(len(vocab))
	}
	for _, m := range merges {
		vocab[m[0]+m[1]] = int32(len(vocab))
	}
	vocab[EndOfText] = int32(len(vocab))
	tokenizer, err := assembleUnmarked(vocab, merges)
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

// wordPattern is GPT-2's pattern in Go's dialect, without the alternatives for white
// space, whose lookahead Go's regexp lacks. Go's \s is ASCII only, so that White_Space is
// spelled out.
var wordPattern = regexp.MustCompile(`^(?:'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{Z}\t-\r\x{85}\p{L}\p{N}]+)`)
var spacePattern = regexp.MustCompile(`^[\p{Z}\t-\r\x{85}]+`)

// naiveWords cuts text by the regular expression.
func naiveWords(text []byte) [][]byte {
	var words [][]byte
	for len(text) > 0 {
		word := wordPattern.Find(text)
		if word == nil {
			word = spacePattern.Find(text)
			_, last := utf8.DecodeLastRune(word)
			if len(word) < len(text) && len(word) > last {
				word = word[:len(word)-last] // \s+(?!\S)
			}
		}
		words = append(words, word)
		text = text[len(word):]
	}
	return words
}

// naiveEncoder returns a function that merges each word by looking for the lowest rank
// each time.
func naiveEncoder(t *Tokenizer) func(text []byte) []int32 {
	ranks := make(map[[2]int32]int)
	for rank, m := range t.merges {
		ranks[[2]int32{m.left, m.right}] = rank
	}
	return func(text []byte) []int32 { return naiveEncode(t, ranks, text) }
}

func naiveEncode(t *Tokenizer, ranks map[[2]int32]int, text []byte) []int32 {
	var out []int32
	for _, word := range naiveWords(text) {
		var ids []int32
		for _, b := range word {
			ids = append(ids, t.byteIDs[b])
		}
		for {
			best, at := len(t.merges), -1
			for i := 0; i+1 < len(ids); i++ {
				if rank, ok := ranks[[2]int32{ids[i], ids[i+1]}]; ok && rank < best {
					best, at = rank, i
				}
			}
			if at < 0 {
				break
			}
			ids = append(append(append([]int32(nil), ids[:at]...), t.merges[best].id), ids[at+2:]...)
		}
		out = append(out, ids...)
	}
	return out
}

// naiveTrain counts all pairs of all words again for every merge.
func naiveTrain(documents []string, size, least int) []merge {
	words := make(map[string]int)
	for _, d := range documents {
		for _, w := range naiveWords([]byte(d)) {
			words[string(w)]++
		}
	}
	known := make(map[string]int32)
	text := make(map[int32]string)
	for _, b := range byteOrder {
		id := int32(len(known))
		known[string([]byte{b})], text[id] = id, string([]byte{b})
	}
	split := make(map[string][]int32)
	for w := range words {
		for i := range len(w) {
			split[w] = append(split[w], known[w[i:i+1]])
		}
	}
	var merges []merge
	for len(known) < size {
		counts := make(map[[2]int32]int)
		for w, ids := range split {
			for i := 0; i+1 < len(ids); i++ {
				counts[[2]int32{ids[i], ids[i+1]}] += words[w]
			}
		}
		var best [2]int32
		most := 0
		for pair, n := range counts {
			less := pair[0] < best[0] || pair[0] == best[0] && pair[1] < best[1]
			if n > most || n == most && less {
				best, most = pair, n
			}
		}
		if most < least || most == 0 {
			break
		}
		joined := text[best[0]] + text[best[1]]
		id, ok := known[joined]
		if !ok {
			id = int32(len(known))
			known[joined], text[id] = id, joined
		}
		merges = append(merges, merge{best[0], best[1], id})
		for w, ids := range split {
			var next []int32
			for i := 0; i < len(ids); i++ {
				if i+1 < len(ids) && ids[i] == best[0] && ids[i+1] == best[1] {
					next = append(next, id)
					i++
				} else {
					next = append(next, ids[i])
				}
			}
			split[w] = next
		}
	}
	return merges
}

// each yields documents in one buffer that is used again, as a reader of files does.
func each(documents ...string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var buf []byte
		for _, d := range documents {
			buf = append(buf[:0], d...)
			if !yield(buf, nil) {
				return
			}
			for i := range buf {
				buf[i] = '#'
			}
		}
	}
}

// mustTrain trains on documents.
func mustTrain(t testing.TB, opts TrainOptions, documents ...string) *Tokenizer {
	t.Helper()
	tokenizer, err := Train(context.Background(), each(documents...), opts)
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}
