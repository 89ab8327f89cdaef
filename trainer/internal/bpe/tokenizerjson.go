package bpe

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Parse reads the bytes of a tokenizer.json as Hugging Face's libraries write them for
// GPT-2: a BPE model with the ByteLevel pre-tokenizer. Whatever would make those
// libraries encode differently (another pre-tokenizer, a normalizer, a prefix space,
// dropout, tokens around a text) is refused.
func Parse(data []byte) (*Tokenizer, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("not UTF-8")
	}
	var f tokenizerJSON
	if err := eachMember(data, f.member); err != nil {
		return nil, err
	}
	switch {
	case f.vocab == nil:
		return nil, fmt.Errorf("model.vocab is missing")
	case !f.hasMerges:
		return nil, fmt.Errorf("model.merges is missing")
	case !f.byteLevel:
		return nil, fmt.Errorf("pre_tokenizer is missing: only GPT-2's ByteLevel is supported")
	}
	return assemble(f.vocab, f.merges, f.added)
}

// tokenizerJSON is what a tokenizer.json says.
type tokenizerJSON struct {
	vocab     map[string]int32
	merges    [][2]string
	hasMerges bool
	added     []Added
	byteLevel bool
}

// member reads one member of the file's object.
func (f *tokenizerJSON) member(name string, value json.RawMessage) error {
	var err error
	switch name {
	case "version", "truncation", "padding":
		// About the file and about batches: they change no token of a text.
	case "normalizer":
		if !isNull(value) {
			err = fmt.Errorf("not supported: only null is, got %s", excerpt(value))
		}
	case "added_tokens":
		f.added, err = parseAddedTokens(value)
	case "pre_tokenizer":
		f.byteLevel = true
		err = checkByteLevel(value, true)
	case "post_processor":
		err = checkPostProcessor(value)
	case "decoder":
		if !isNull(value) {
			err = checkByteLevel(value, false)
		}
	case "model":
		err = eachMember(value, f.modelMember)
	default:
		err = fmt.Errorf("unknown to this version")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// modelMember reads one member of the model. Old files have no type; the vocabulary and
// the merges tell.
func (f *tokenizerJSON) modelMember(name string, value json.RawMessage) error {
	var err error
	switch name {
	case "type":
		if string(value) != `"BPE"` {
			err = fmt.Errorf("only \"BPE\" is supported, got %s", excerpt(value))
		}
	case "dropout":
		if s := string(value); s != "null" && s != "0" && s != "0.0" {
			err = fmt.Errorf("not supported: encoding must repeat, got %s", excerpt(value))
		}
	case "unk_token", "fuse_unk":
		// A vocabulary with all 256 bytes has no use for them.
	case "continuing_subword_prefix", "end_of_word_suffix":
		if !isNull(value) && string(value) != `""` {
			err = fmt.Errorf("not supported, got %s", excerpt(value))
		}
	case "byte_fallback", "ignore_merges":
		var on bool
		if on, err = parseBool(value); err == nil && on {
			err = fmt.Errorf("not supported, got true")
		}
	case "vocab":
		f.vocab, err = parseVocab(value)
	case "merges":
		f.hasMerges = true
		f.merges, err = parseMergesJSON(value)
	default:
		err = fmt.Errorf("unknown to this version")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// checkByteLevel accepts the ByteLevel component only. Of the pre-tokenizer it wants
// GPT-2's settings as well; elsewhere they concern offsets, which are not used.
func checkByteLevel(value json.RawMessage, preTokenizer bool) error {
	kind, unknown, prefix := "", "", !preTokenizer
	err := eachMember(value, func(name string, value json.RawMessage) error {
		var err error
		switch name {
		case "type":
			kind, err = parseString(value)
		case "add_prefix_space":
			var on bool
			on, err = parseBool(value)
			if err == nil && on && preTokenizer {
				err = fmt.Errorf("not supported, got true")
			}
			prefix = true
		case "trim_offsets":
			_, err = parseBool(value)
		case "use_regex":
			var on bool
			on, err = parseBool(value)
			if err == nil && !on && preTokenizer {
				err = fmt.Errorf("not supported, got false")
			}
		default:
			unknown = name // of another type: that says more, and is looked at first
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case kind != "ByteLevel":
		return fmt.Errorf("type %q is not supported: only GPT-2's ByteLevel is", kind)
	case unknown != "":
		return fmt.Errorf("%s: unknown to this version", unknown)
	case !prefix:
		return fmt.Errorf("add_prefix_space is missing; GPT-2's is false")
	}
	return nil
}

// parseAddedTokens reads the list added_tokens.
func parseAddedTokens(value json.RawMessage) ([]Added, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(value, &list); err != nil {
		return nil, fmt.Errorf("want a list, got %s", excerpt(value))
	}
	if len(list) > maxAdded {
		return nil, fmt.Errorf("%d tokens, more than %d", len(list), maxAdded)
	}
	var added []Added
	for i, item := range list {
		a, err := parseAddedToken(item)
		if err != nil {
			return nil, fmt.Errorf("number %d: %w", i, err)
		}
		same := func(b Added) bool { return b.Content == a.Content || b.ID == a.ID }
		if slices.ContainsFunc(added, same) {
			return nil, fmt.Errorf("number %d: id %d or content %q is there twice", i, a.ID, a.Content)
		}
		added = append(added, a)
	}
	return added, nil
}

func parseAddedToken(item json.RawMessage) (a Added, err error) {
	a.ID = -1
	err = eachMember(item, func(name string, value json.RawMessage) error {
		var err error
		switch name {
		case "id":
			a.ID, err = parseID(value)
		case "content":
			if a.Content, err = parseString(value); err == nil {
				err = checkAdded(a.Content)
			}
		case "special":
			a.Special, err = parseBool(value)
		case "normalized":
			_, err = parseBool(value) // without a normalizer it makes no difference
		case "single_word", "lstrip", "rstrip":
			var on bool
			if on, err = parseBool(value); err == nil && on {
				err = fmt.Errorf("not supported, got true")
			}
		default:
			err = fmt.Errorf("unknown to this version")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return a, err
	case a.ID < 0:
		return a, fmt.Errorf("id is missing")
	case a.Content == "":
		return a, fmt.Errorf("content is missing")
	}
	return a, nil
}

// parseMergesJSON reads merges in both forms there are: "a b" and ["a","b"].
func parseMergesJSON(value json.RawMessage) ([][2]string, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(value, &list); err != nil {
		return nil, fmt.Errorf("want a list, got %s", excerpt(value))
	}
	if len(list) > maxTokens {
		return nil, fmt.Errorf("%d merges, more than %d", len(list), maxTokens)
	}
	merges := make([][2]string, len(list))
	for i, item := range list {
		if text, err := parseString(item); err == nil {
			if merges[i], err = splitMerge(text); err != nil {
				return nil, fmt.Errorf("merge %d: %w", i, err)
			}
			continue
		}
		var pair []string
		if err := json.Unmarshal(item, &pair); err != nil || len(pair) != 2 {
			return nil, fmt.Errorf("merge %d: want \"a b\" or [\"a\",\"b\"], got %s", i, excerpt(item))
		}
		merges[i] = [2]string(pair)
	}
	return merges, nil
}
