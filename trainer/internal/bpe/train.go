package bpe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
)

// ErrNoText is returned by Train when the documents hold no byte.
var ErrNoText = errors.New("no text to learn a vocabulary from")

// TrainOptions say what vocabulary to learn. Only VocabSize has no default.
type TrainOptions struct {
	// VocabSize is the number of tokens wanted: 256 bytes, merges and special tokens.
	VocabSize int
	// MinFrequency is how often a pair must be there to be merged; 0 means 2.
	MinFrequency int
	// SpecialTokens get the last ids, in this order. They are not looked for in the
	// documents.
	SpecialTokens []string
	// Threads count words; 0 means GOMAXPROCS. The result does not depend on it.
	Threads int
	// WordBudget bounds the distinct words that are kept, in bytes, each counted with 32
	// more than its length; 0 means 32 MiB, about 800 000 English words. When it is
	// reached the rarest words are forgotten. Training takes about four times as much
	// memory.
	WordBudget int

	chunkBytes int // what a counting goroutine is given at a time
	roundBytes int // text between two sums of the goroutines' counts
}

const (
	defaultMinFrequency = 2
	defaultWordBudget   = 32 << 20
	defaultChunkBytes   = 1 << 20
	defaultRoundBytes   = 16 << 20
)

// Train learns a vocabulary from the documents. A document's bytes are not used after the
// next one is asked for; an error from the iterator ends training and is returned.
//
// The words of all documents are counted, each word starts as its bytes, and then the
// most frequent pair of adjacent tokens is joined everywhere (from left to right) and
// becomes the next token, until there are VocabSize tokens or no pair comes MinFrequency
// times. Of equally frequent pairs the one with the smallest ids is joined, the left id
// compared first. That is the rule of Hugging Face's BpeTrainer.
//
// Ids 0 to 255 are the bytes in GPT-2's order, then come the merges by rank, then the
// special tokens. The result may be smaller than VocabSize when the text has too few
// pairs; it depends on the documents and the options alone, not on threads or time.
func Train(ctx context.Context, documents iter.Seq2[[]byte, error], opts TrainOptions) (*Tokenizer, error) {
	opts, err := opts.checked()
	if err != nil {
		return nil, fmt.Errorf("train tokenizer: %w", err)
	}
	words, err := countWords(ctx, documents, opts)
	if err != nil {
		return nil, fmt.Errorf("train tokenizer: %w", err)
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("train tokenizer: %w", ErrNoText)
	}
	tokens, merges, err := learnMerges(ctx, words, opts)
	if err != nil {
		return nil, fmt.Errorf("train tokenizer: %w", err)
	}
	var added []Added
	for _, content := range opts.SpecialTokens {
		added = append(added, Added{ID: int32(len(tokens)), Content: content, Special: true})
		tokens = append(tokens, []byte(content))
	}
	t, err := newTokenizer(tokens, merges, added)
	if err != nil {
		return nil, fmt.Errorf("train tokenizer: %w", err)
	}
	return t, nil
}

// checked fills in defaults and refuses what makes no sense.
func (o TrainOptions) checked() (TrainOptions, error) {
	if len(o.SpecialTokens) > maxAdded {
		return o, fmt.Errorf("%d special tokens, more than %d", len(o.SpecialTokens), maxAdded)
	}
	for i, content := range o.SpecialTokens {
		if err := checkAdded(content); err != nil {
			return o, err
		}
		if slices.Contains(o.SpecialTokens[:i], content) {
			return o, fmt.Errorf("special token %q is there twice", content)
		}
		// Text must not be able to become the special token by merging.
		if wordEnd([]byte(content), 0) == len(content) {
			return o, fmt.Errorf("special token %q is a single word, which text can contain: enclose it, as in <|name|>", content)
		}
	}
	if least := 256 + len(o.SpecialTokens); o.VocabSize < least || o.VocabSize > maxTokens {
		return o, fmt.Errorf("vocabulary size %d: want %d (256 bytes and the special tokens) to %d", o.VocabSize, least, maxTokens)
	}
	if o.MinFrequency < 0 || o.Threads < 0 || o.WordBudget < 0 {
		return o, fmt.Errorf("negative option (minimum frequency %d, threads %d, word budget %d)", o.MinFrequency, o.Threads, o.WordBudget)
	}
	o.MinFrequency = cmp.Or(o.MinFrequency, defaultMinFrequency)
	o.Threads = cmp.Or(o.Threads, runtime.GOMAXPROCS(0))
	o.WordBudget = cmp.Or(o.WordBudget, defaultWordBudget)
	o.chunkBytes = cmp.Or(o.chunkBytes, defaultChunkBytes)
	o.roundBytes = cmp.Or(o.roundBytes, defaultRoundBytes)
	return o, nil
}
