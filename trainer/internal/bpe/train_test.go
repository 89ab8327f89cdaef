package bpe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The golden's documents have many ties and were given to Hugging Face's BpeTrainer.
func TestTrainingAgreesWithHuggingFace(t *testing.T) {
	var golden struct {
		VocabSize    int `json:"vocab_size"`
		MinFrequency int `json:"min_frequency"`
		Documents    []string
		Merges       []string
	}
	readGolden(t, "trained.json", &golden)
	if len(golden.Merges) < 500 {
		t.Fatalf("golden has %d merges, want at least 500", len(golden.Merges))
	}
	tokenizer := mustTrain(t, TrainOptions{VocabSize: golden.VocabSize + 1, MinFrequency: golden.MinFrequency, SpecialTokens: []string{EndOfText}}, golden.Documents...)
	var merges []string
	for _, m := range tokenizer.merges {
		merges = append(merges, spell(tokenizer.tokens[m.left])+" "+spell(tokenizer.tokens[m.right]))
	}
	for i := range min(len(merges), len(golden.Merges)) {
		if merges[i] != golden.Merges[i] {
			t.Fatalf("merge %d is %q, want %q", i, merges[i], golden.Merges[i])
		}
	}
	if len(merges) != len(golden.Merges) {
		t.Errorf("%d merges, want %d", len(merges), len(golden.Merges))
	}
}

// randomDocuments are dense in repeated pairs, overlapping runs and ties.
func randomDocuments(rand *rand.Rand) []string {
	documents := make([]string, rand.IntN(12))
	alphabet := []string{"ab", "aab ", "abc é", "a "}[rand.IntN(4)]
	for i := range documents {
		if rand.IntN(4) == 0 {
			documents[i] = string(randomText(rand, 40))
			continue
		}
		var text []byte
		for range rand.IntN(200) {
			text = append(text, alphabet[rand.IntN(len(alphabet))])
		}
		documents[i] = string(text)
	}
	return append(documents, "x")
}

func TestTrainingAgreesWithNaiveCounting(t *testing.T) {
	rand := rand.New(rand.NewPCG(7, 8))
	for round := range 300 {
		documents := randomDocuments(rand)
		size, least := 256+rand.IntN(120), 1+rand.IntN(3)
		want := naiveTrain(documents, size, least)
		for threads := 1; threads <= 3; threads++ {
			opts := TrainOptions{VocabSize: size, MinFrequency: least, Threads: threads, chunkBytes: 64, roundBytes: 256}
			got := mustTrain(t, opts, documents...)
			if !slices.Equal(got.merges, want) {
				t.Fatalf("round %d, %d threads, documents %q: merges\n%v, want\n%v", round, threads, documents, got.merges, want)
			}
		}
	}
}

// zipfDocuments are made-up words as frequent as those of a language.
func zipfDocuments(seed uint64, bytes int) []string {
	rand := rand.New(rand.NewPCG(seed, 9))
	syllables := strings.Split("ta ke mi so nu ra ing er st on the an re ou ly ed is al ti en pro com", " ")
	lexicon := make([]string, 60000)
	for i := range lexicon {
		var word strings.Builder
		for range 1 + rand.IntN(4) {
			word.WriteString(syllables[rand.IntN(len(syllables))])
		}
		lexicon[i] = word.String()
	}
	zipf := newZipf(rand, len(lexicon))
	var documents []string
	for bytes > 0 {
		var text strings.Builder
		for range 200 + rand.IntN(400) {
			text.WriteString(lexicon[zipf()])
			text.WriteString([]string{" ", " ", " ", " ", " ", ", ", ".\n"}[rand.IntN(7)])
		}
		documents = append(documents, text.String())
		bytes -= text.Len()
	}
	return documents
}

func newZipf(r *rand.Rand, n int) func() int {
	z := rand.NewZipf(r, 1.1, 3, uint64(n-1))
	return func() int { return int(z.Uint64()) }
}

func TestThreadsDoNotChangeTheTokenizer(t *testing.T) {
	documents := zipfDocuments(1, 1<<20)
	var digests []string
	for threads := 1; threads <= 3; threads++ {
		// A budget that is overrun every round: forgetting words must not depend on threads.
		opts := TrainOptions{VocabSize: 700, SpecialTokens: []string{EndOfText}, Threads: threads, WordBudget: 100_000, chunkBytes: 10_000, roundBytes: 200_000}
		tokenizer := mustTrain(t, opts, documents...)
		digests = append(digests, tokenizer.Digest())
	}
	if digests[1] != digests[0] || digests[2] != digests[0] {
		t.Errorf("digests for 1, 2 and 3 threads: %v", digests)
	}
}

func TestWordBudgetForgetsTheRarest(t *testing.T) {
	var documents []string
	for i := range 3000 {
		documents = append(documents, fmt.Sprintf("common rare%c%c%c ", 'a'+i%26, 'a'+i/26%26, 'a'+i/676))
	}
	opts, err := TrainOptions{VocabSize: 300, WordBudget: 20_000, roundBytes: 1000}.checked()
	if err != nil {
		t.Fatal(err)
	}
	words, err := countWords(context.Background(), each(documents...), opts)
	if err != nil {
		t.Fatal(err)
	}
	cost := 0
	for word := range words {
		cost += len(word) + wordCost
	}
	if cost > opts.WordBudget {
		t.Errorf("words cost %d, budget is %d", cost, opts.WordBudget)
	}
	if words["common"] != 3000 {
		t.Errorf("the most frequent word is counted %d times, want 3000", words["common"])
	}
	if len(words) < 100 {
		t.Errorf("%d words are left, want the budget used", len(words))
	}
}

func TestVeryLongWordsAreCountedInParts(t *testing.T) {
	document := strings.Repeat("é", 100_000)
	opts, err := TrainOptions{VocabSize: 300}.checked()
	if err != nil {
		t.Fatal(err)
	}
	words, err := countWords(context.Background(), each(document), opts)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for word, count := range words {
		if len(word) > longestCounted || len(word)%2 != 0 {
			t.Errorf("a part of %d bytes", len(word))
		}
		total += len(word) * int(count)
	}
	if total != len(document) {
		t.Errorf("parts have %d bytes, want %d", total, len(document))
	}
}

func TestTrainingStopsWhenNothingIsLeftToMerge(t *testing.T) {
	tokenizer := mustTrain(t, TrainOptions{VocabSize: 1000, SpecialTokens: []string{EndOfText, "<|pad|>"}}, "abab", "xy")
	// a+b comes twice, then ab+ab once, which is below the minimum of 2.
	if got := tokenizer.VocabSize(); got != 256+1+2 {
		t.Errorf("VocabSize() = %d, want 259", got)
	}
	if id, ok := tokenizer.EndOfText(); id != 257 || !ok {
		t.Errorf("EndOfText() = %d, %v, want 257", id, ok)
	}
	if id, ok := tokenizer.AddedID("<|pad|>"); id != 258 || !ok {
		t.Errorf("AddedID(<|pad|>) = %d, %v, want 258", id, ok)
	}
}

func TestTrainRefuses(t *testing.T) {
	boom := errors.New("disk on fire")
	failing := func(yield func([]byte, error) bool) {
		_ = yield([]byte("abc"), nil) && yield(nil, boom)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		name    string
		ctx     context.Context
		docs    func(func([]byte, error) bool)
		opts    TrainOptions
		is      error
		message string
	}{
		{name: "no documents", docs: each(), opts: TrainOptions{VocabSize: 300}, is: ErrNoText},
		{name: "empty documents", docs: each("", ""), opts: TrainOptions{VocabSize: 300}, is: ErrNoText},
		{name: "failing documents", docs: failing, opts: TrainOptions{VocabSize: 300}, is: boom, message: "document 1: disk on fire"},
		{name: "cancelled", ctx: cancelled, docs: each("abc"), opts: TrainOptions{VocabSize: 300}, is: context.Canceled},
		{name: "vocabulary too small", docs: each("abc"), opts: TrainOptions{VocabSize: 256, SpecialTokens: []string{EndOfText}}, message: "vocabulary size 256: want 257"},
		{name: "vocabulary too large", docs: each("abc"), opts: TrainOptions{VocabSize: 1 << 30}, message: "vocabulary size 1073741824"},
		{name: "negative frequency", docs: each("abc"), opts: TrainOptions{VocabSize: 300, MinFrequency: -1}, message: "negative option"},
		{name: "special token twice", docs: each("abc"), opts: TrainOptions{VocabSize: 300, SpecialTokens: []string{"<|a|>", "<|a|>"}}, message: `"<|a|>" is there twice`},
		{name: "special token empty", docs: each("abc"), opts: TrainOptions{VocabSize: 300, SpecialTokens: []string{""}}, message: "empty"},
		{name: "special token of one word", docs: each("abc"), opts: TrainOptions{VocabSize: 300, SpecialTokens: []string{"abc"}}, message: `"abc" is a single word`},
		{name: "special token spelled like a byte", docs: each("abc"), opts: TrainOptions{VocabSize: 300, SpecialTokens: []string{"a\xff"}}, message: "not UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := c.ctx
			if ctx == nil {
				ctx = context.Background()
			}
			_, err := Train(ctx, c.docs, c.opts)
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.message) {
				t.Errorf("error %v, want %v %s", err, c.is, c.message)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("error of several lines: %q", err)
			}
		})
	}
}
