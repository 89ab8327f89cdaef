package evaluate

import "context"

// Tokenizer is what evaluation asks of a byte-level tokenizer.
type Tokenizer interface {
	AppendEncode(dst []int32, text []byte) []int32
	Decode(ids []int32) []byte
	VocabSize() int
	EndOfText() (int32, bool)
}

// TokenBytes returns the bytes of text that each token of a vocabulary of size v
// stands for: 0 for the end of text, which is not text.
func TokenBytes(t Tokenizer, v int) []int32 {
	sizes := make([]int32, v)
	eot, has := t.EndOfText()
	for id := range sizes {
		if id >= t.VocabSize() || (has && int32(id) == eot) {
			continue // a model may be padded beyond its tokenizer
		}
		sizes[id] = int32(len(t.Decode([]int32{int32(id)})))
	}
	return sizes
}

// EndOfText returns the token that ends documents, or -1.
func EndOfText(t Tokenizer) int32 {
	if id, ok := t.EndOfText(); ok {
		return id
	}
	return -1
}

// Retokenize writes the same text in the tokens of another tokenizer: document
// by document, question and answer apart, so that the bytes that count are the
// same ones. The result is held in memory.
func Retokenize(ctx context.Context, s Tokens, docs []Document, from, to Tokenizer) (Slice, []Document, error) {
	fromEnd, toEnd := EndOfText(from), EndOfText(to)
	var out Slice
	moved := make([]Document, len(docs))
	var ids []int32
	for i, d := range docs {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if n := d.End - d.Start; int64(cap(ids)) < n {
			ids = make([]int32, n)
		}
		ids = ids[:d.End-d.Start]
		if err := s.Read(ids, d.Start); err != nil {
			return nil, nil, err
		}
		text, ended := ids, false
		if n := len(ids); n > 0 && fromEnd >= 0 && ids[n-1] == fromEnd {
			text, ended = ids[:n-1], true
		}
		start := int64(len(out))
		question := min(int(d.Count-d.Start), len(text))
		if question > 0 {
			out = to.AppendEncode(out, from.Decode(text[:question]))
		}
		count := int64(len(out))
		out = to.AppendEncode(out, from.Decode(text[question:]))
		if ended && toEnd >= 0 {
			out = append(out, toEnd)
		}
		moved[i] = Document{start, count, int64(len(out))}
	}
	return out, moved, nil
}
