package bpe

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
)

func benchmarkEncode(b *testing.B, tokenizer *Tokenizer, documents []string) {
	size := 0
	texts := make([][]byte, len(documents))
	for i, d := range documents {
		texts[i] = []byte(d)
		size += len(d)
	}
	var ids []int32
	b.SetBytes(int64(size))
	for b.Loop() {
		for _, text := range texts {
			ids = tokenizer.AppendEncode(ids[:0], text)
		}
	}
}

// BenchmarkEncode encodes on one core, with the cache as it is found by a corpus.
func BenchmarkEncode(b *testing.B) {
	b.Run("gpt2 on made-up English", func(b *testing.B) {
		benchmarkEncode(b, gpt2(b), zipfDocuments(5, 4<<20))
	})
	b.Run("trained on made-up English", func(b *testing.B) {
		documents := zipfDocuments(5, 4<<20)
		benchmarkEncode(b, mustTrain(b, TrainOptions{VocabSize: 4096}, documents...), documents)
	})
	b.Run("gpt2 on hard list", func(b *testing.B) {
		var documents []string
		for _, c := range hardList(b).Cases {
			documents = append(documents, string(c.text(b)))
		}
		benchmarkEncode(b, gpt2(b), documents)
	})
	b.Run("gpt2 on one long word", func(b *testing.B) {
		benchmarkEncode(b, gpt2(b), []string{strings.Repeat("abcdefghij", 100_000)})
	})
}

func BenchmarkDecode(b *testing.B) {
	tokenizer := gpt2(b)
	text := strings.Join(zipfDocuments(6, 1<<20), "\n")
	ids := tokenizer.Encode(text)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tokenizer.Decode(ids)
	}
}

// withRareWords ends each line with a word that comes nowhere else, so that there are about
// as many distinct words as in a corpus from many hands.
func withRareWords(documents []string) []string {
	rand := rand.New(rand.NewPCG(10, 11))
	for i, d := range documents {
		var out strings.Builder
		for line := range strings.Lines(d) {
			out.WriteString(strings.TrimSuffix(line, "\n"))
			out.WriteByte(' ')
			for range 5 + rand.IntN(8) {
				out.WriteByte("etaoinshrdlucmfwypvbgkqjxz"[min(rand.IntN(26), rand.IntN(26))])
			}
			out.WriteByte('\n')
		}
		documents[i] = out.String()
	}
	return documents
}

// BenchmarkTrain learns a vocabulary of 4096 tokens from 100 MB with about a million
// distinct words; run it once, with -benchtime 1x.
func BenchmarkTrain(b *testing.B) {
	const size = 100_000_000
	documents := withRareWords(zipfDocuments(7, size))
	b.SetBytes(size)
	for b.Loop() {
		if _, err := Train(context.Background(), each(documents...), TrainOptions{VocabSize: 4096, SpecialTokens: []string{EndOfText}}); err != nil {
			b.Fatal(err)
		}
	}
}
