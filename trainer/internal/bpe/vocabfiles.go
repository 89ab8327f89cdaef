package bpe

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// parseVocab reads a vocab.json or the vocabulary in a tokenizer.json: an object of
// spelled tokens and their ids.
func parseVocab(data []byte) (map[string]int32, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("not UTF-8")
	}
	vocab := make(map[string]int32)
	err := eachMember(data, func(name string, value json.RawMessage) error {
		id, err := parseID(value)
		switch {
		case err != nil:
			return fmt.Errorf("token %s: %w", excerpt([]byte(name)), err)
		case name == "":
			return fmt.Errorf("the token with id %d is empty", id)
		case len(name) > 2*maxTokenBytes:
			return fmt.Errorf("token %s is longer than %d bytes", excerpt([]byte(name)), maxTokenBytes)
		case len(vocab) == maxTokens:
			return fmt.Errorf("more than %d tokens", maxTokens)
		}
		vocab[name] = id
		return nil
	})
	return vocab, err
}

// parseMerges reads a merges.txt: a line "#version: 0.2", which may be missing, then one
// merge on each line.
func parseMerges(data []byte) ([][2]string, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("not UTF-8")
	}
	text := strings.TrimRight(string(data), "\r\n")
	if text == "" {
		return nil, nil
	}
	var merges [][2]string
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		if number == 1 && strings.HasPrefix(line, "#version") {
			continue
		}
		if len(merges) == maxTokens {
			return nil, fmt.Errorf("line %d: more than %d merges", number, maxTokens)
		}
		m, err := splitMerge(strings.TrimSuffix(line, "\r"))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		merges = append(merges, m)
	}
	return merges, nil
}

// splitMerge cuts "a b" in two. No spelled token holds a blank.
func splitMerge(text string) ([2]string, error) {
	left, right, ok := strings.Cut(text, " ")
	if !ok || left == "" || right == "" || strings.Contains(right, " ") {
		return [2]string{}, fmt.Errorf("want two tokens with one blank between, got %s", excerpt([]byte(text)))
	}
	return [2]string{left, right}, nil
}

// assembleUnmarked makes the tokenizer of a vocab.json and merges.txt, which do not mark
// special tokens. One in GPT-2's style, <|name|>, that no merge makes is special, as
// <|endoftext|> is in the published vocabulary.
func assembleUnmarked(vocab map[string]int32, merges [][2]string) (*Tokenizer, error) {
	made := make(map[string]bool, len(merges))
	for _, m := range merges {
		made[m[0]+m[1]] = true
	}
	var added []Added
	for text, id := range vocab {
		if len(text) > len("<||>") && strings.HasPrefix(text, "<|") && strings.HasSuffix(text, "|>") && !made[text] {
			added = append(added, Added{ID: id, Content: text, Special: true})
		}
	}
	return assemble(vocab, merges, added)
}

// assemble makes a tokenizer of the spelled parts of a file.
func assemble(vocab map[string]int32, merges [][2]string, added []Added) (*Tokenizer, error) {
	if len(added) > maxAdded {
		return nil, fmt.Errorf("%d added tokens, more than %d", len(added), maxAdded)
	}
	size := len(vocab)
	for _, a := range added {
		id, ok := vocab[a.Content]
		if !ok {
			size++
		} else if id != a.ID {
			return nil, fmt.Errorf("added token %q has id %d, but %d in the vocabulary", a.Content, a.ID, id)
		}
	}
	tokens := make([][]byte, size)
	place := func(id int32, text string, token []byte) error {
		if int(id) >= size {
			return fmt.Errorf("token %q has id %d, but there are %d tokens and ids run from 0 without gaps", text, id, size)
		}
		if tokens[id] != nil {
			return fmt.Errorf("token %q has id %d, which token %q has too", text, id, tokens[id])
		}
		tokens[id] = token
		return nil
	}
	for _, a := range added {
		if err := place(a.ID, a.Content, []byte(a.Content)); err != nil {
			return nil, err
		}
	}
	for text, id := range vocab {
		if int(id) < size && string(tokens[id]) == text && isAddedID(added, id) {
			continue
		}
		token, odd, ok := unspell(text)
		if !ok {
			return nil, fmt.Errorf("token %q (id %d) has the character %q, which stands for no byte; a token of plain text belongs in added_tokens", text, id, odd)
		}
		if err := place(id, text, token); err != nil {
			return nil, err
		}
	}
	ranked, err := resolveMerges(vocab, merges)
	if err != nil {
		return nil, err
	}
	return newTokenizer(tokens, ranked, added)
}

func isAddedID(added []Added, id int32) bool {
	for _, a := range added {
		if a.ID == id {
			return true
		}
	}
	return false
}

// resolveMerges turns spelled merges into ids.
func resolveMerges(vocab map[string]int32, merges [][2]string) ([]merge, error) {
	ranked := make([]merge, len(merges))
	seen := make(map[uint64]int, len(merges))
	for rank, m := range merges {
		var ids [3]int32
		for i, text := range []string{m[0], m[1], m[0] + m[1]} {
			id, ok := vocab[text]
			if !ok {
				return nil, fmt.Errorf("merge %d (%q and %q): token %q is not in the vocabulary", rank, m[0], m[1], text)
			}
			ids[i] = id
		}
		key := pairKey(ids[0], ids[1])
		if before, ok := seen[key]; ok {
			return nil, fmt.Errorf("merge %d (%q and %q) repeats merge %d", rank, m[0], m[1], before)
		}
		seen[key] = rank
		ranked[rank] = merge{ids[0], ids[1], ids[2]}
	}
	return ranked, nil
}
