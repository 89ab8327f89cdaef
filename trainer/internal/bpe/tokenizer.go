package bpe

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"unicode/utf8"
)

// EndOfText is the special token that GPT-2 puts between documents.
const EndOfText = "<|endoftext|>"

// Tokenizer turns bytes into token ids and back. It does not change after it was made,
// and any number of goroutines may use it at once.
type Tokenizer struct {
	tokens  [][]byte // by id: the bytes it decodes to
	added   []Added  // by id
	merges  []merge  // by rank
	ranks   rankTable
	byteIDs [256]int32

	mu   sync.Mutex
	free []*scratch // of calls that have ended; at most one for each CPU
}

// Added is a token that stands for a whole string and that no merge makes. Only
// EncodeWithSpecial recognises it in text.
type Added struct {
	ID      int32
	Content string
	Special bool // false for one that was added as ordinary text
}

// newTokenizer checks that the parts fit together. tokens, merges and added are kept.
// Every token is either a single byte, the result of merges, added, or cannot be reached
// by encoding; all 256 bytes are there, so that any text can be encoded.
func newTokenizer(tokens [][]byte, merges []merge, added []Added) (*Tokenizer, error) {
	t := &Tokenizer{tokens: tokens, merges: merges, added: added}
	slices.SortFunc(t.added, func(a, b Added) int { return int(a.ID) - int(b.ID) })
	isAdded := make(map[int32]bool, len(added))
	for _, a := range added {
		isAdded[a.ID] = true
	}
	for b := range t.byteIDs {
		t.byteIDs[b] = -1
	}
	byText := make(map[string]int32, len(tokens))
	for i, token := range tokens {
		id := int32(i)
		text := t.spelling(id, isAdded[id])
		if before, ok := byText[text]; ok {
			return nil, fmt.Errorf("token %q has two ids, %d and %d", text, before, id)
		}
		byText[text] = id
		if len(token) == 1 && !isAdded[id] {
			t.byteIDs[token[0]] = id
		}
	}
	for b, id := range t.byteIDs {
		if id < 0 {
			return nil, fmt.Errorf("the vocabulary lacks the token %q for byte 0x%02x; a byte-level vocabulary has all 256", string(spellings[b]), b)
		}
	}
	for rank, m := range merges {
		if isAdded[m.left] || isAdded[m.right] || isAdded[m.id] {
			return nil, fmt.Errorf("merge %d takes or makes an added token (%q and %q)", rank, tokens[m.left], tokens[m.right])
		}
	}
	t.ranks = newRankTable(merges)
	return t, nil
}

// spelling is the name of a token in vocabulary files.
func (t *Tokenizer) spelling(id int32, added bool) string {
	if added {
		return string(t.tokens[id])
	}
	return spell(t.tokens[id])
}

// VocabSize returns the number of tokens: the 256 bytes, the merged and the added ones.
// Ids run from 0 to VocabSize()-1.
func (t *Tokenizer) VocabSize() int { return len(t.tokens) }

// EndOfText returns the id of the token EndOfText and whether there is one.
func (t *Tokenizer) EndOfText() (int32, bool) { return t.AddedID(EndOfText) }

// AddedID returns the id of the added (special) token with this text and whether there
// is one.
func (t *Tokenizer) AddedID(content string) (int32, bool) {
	for _, a := range t.added {
		if a.Content == content {
			return a.ID, true
		}
	}
	return 0, false
}

// AddedTokens returns the added tokens, special ones and others, in order of id.
func (t *Tokenizer) AddedTokens() []Added { return slices.Clone(t.added) }

// Token returns the bytes of one token and whether there is a token with this id.
func (t *Tokenizer) Token(id int32) ([]byte, bool) {
	if id < 0 || int(id) >= len(t.tokens) {
		return nil, false
	}
	return bytes.Clone(t.tokens[id]), true
}

// Decode returns the bytes of the tokens. Added tokens decode to their text. An id
// outside the vocabulary decodes to nothing. The bytes of a part of a text may begin or
// end in the middle of a UTF-8 sequence.
func (t *Tokenizer) Decode(ids []int32) []byte {
	size := 0
	for _, id := range ids {
		if id >= 0 && int(id) < len(t.tokens) {
			size += len(t.tokens[id])
		}
	}
	out := make([]byte, 0, size)
	for _, id := range ids {
		if id >= 0 && int(id) < len(t.tokens) {
			out = append(out, t.tokens[id]...)
		}
	}
	return out
}

// acquire takes a scratch from the free ones or makes one.
func (t *Tokenizer) acquire() *scratch {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		s := t.free[n-1]
		t.free = t.free[:n-1]
		return s
	}
	return &scratch{cache: newWordCache(len(t.tokens))}
}

// release gives a scratch back. What an enormous word made it grow to is let go.
func (t *Tokenizer) release(s *scratch) {
	const keep = 1 << 16
	if cap(s.ids) > keep || cap(s.heap) > keep {
		*s = scratch{cache: s.cache}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.free) < runtime.GOMAXPROCS(0) {
		t.free = append(t.free, s)
	}
}

// checkAdded refuses texts that cannot be an added token.
func checkAdded(content string) error {
	switch {
	case content == "":
		return fmt.Errorf("an added token is empty")
	case !utf8.ValidString(content):
		return fmt.Errorf("added token %q is not UTF-8", content)
	case len(content) > maxTokenBytes:
		return fmt.Errorf("added token %q… has %d bytes, more than %d", content[:32], len(content), maxTokenBytes)
	}
	return nil
}
