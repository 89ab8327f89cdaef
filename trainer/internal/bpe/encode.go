package bpe

import (
	"bytes"
)

// Encode returns the tokens of text. A special token spelled out in text is text like
// any other: its characters are encoded.
func (t *Tokenizer) Encode(text string) []int32 {
	return t.AppendEncode(nil, []byte(text))
}

// AppendEncode appends the tokens of text to dst and returns it, as append does.
func (t *Tokenizer) AppendEncode(dst []int32, text []byte) []int32 {
	s := t.acquire()
	defer t.release(s)
	return t.appendText(dst, text, s)
}

// EncodeWithSpecial is Encode, but where text spells an added token (such as
// <|endoftext|>) that token stands in the result: the leftmost first, and of several at
// one place the longest. Text from outside must not go through it, or whoever wrote the
// text chooses where documents end.
func (t *Tokenizer) EncodeWithSpecial(text string) []int32 {
	s := t.acquire()
	defer t.release(s)
	return t.appendSpecial(nil, []byte(text), s)
}

// appendText encodes word by word.
func (t *Tokenizer) appendText(dst []int32, text []byte, s *scratch) []int32 {
	for i := 0; i < len(text); {
		end := wordEnd(text, i)
		n := end - i
		if n > cachedBytes {
			dst = t.appendWord(dst, text[i:end], s)
			i = end
			continue
		}
		key := keyAt(text, i, n)
		home := s.cache.home(&key, n)
		if e := s.cache.find(&key, n, home); e != nil {
			if e.count == 1 {
				dst = append(dst, e.ids[0])
			} else {
				dst = append(dst, e.ids[:e.count]...)
			}
		} else {
			ids := t.mergeShort(text[i:end], s)
			s.cache.keep(&key, n, home, ids)
			dst = append(dst, ids...)
		}
		i = end
	}
	return dst
}

// appendSpecial cuts text at added tokens.
func (t *Tokenizer) appendSpecial(dst []int32, text []byte, s *scratch) []int32 {
	// found[k] is where the k-th added token is next; len(text) if nowhere.
	found := make([]int, len(t.added))
	for k, a := range t.added {
		found[k] = indexFrom(text, 0, a.Content)
	}
	for i := 0; ; {
		best := -1
		for k, at := range found {
			if at < i {
				at = indexFrom(text, i, t.added[k].Content)
				found[k] = at
			}
			switch {
			case at == len(text):
			case best < 0, at < found[best],
				at == found[best] && len(t.added[k].Content) > len(t.added[best].Content):
				best = k
			}
		}
		if best < 0 {
			return t.appendText(dst, text[i:], s)
		}
		dst = t.appendText(dst, text[i:found[best]], s)
		dst = append(dst, t.added[best].ID)
		i = found[best] + len(t.added[best].Content)
	}
}

// indexFrom returns the first place of part in text at i or after, or len(text).
func indexFrom(text []byte, i int, part string) int {
	if at := bytes.Index(text[i:], []byte(part)); at >= 0 {
		return i + at
	}
	return len(text)
}
