package generate

import "errors"

var errFull = errors.New("context is full")

// bytesTokenizer has the 256 bytes as tokens, and 256 as end of text.
type bytesTokenizer struct{ noEOT bool }

func (bytesTokenizer) Encode(text string) []int32 {
	ids := make([]int32, len(text))
	for i := range len(text) {
		ids[i] = int32(text[i])
	}
	return ids
}

func (bytesTokenizer) Decode(ids []int32) []byte {
	b := make([]byte, len(ids))
	for i, id := range ids {
		b[i] = byte(id)
	}
	return b
}

func (t bytesTokenizer) EndOfText() (int32, bool) { return 256, !t.noEOT }

// scriptDecoder wants the bytes of script one after the other, whatever it is
// fed, and then the end of text. It records what it was fed.
type scriptDecoder struct {
	script string
	block  int
	made   int
	cache  []int32
	resets [][]int32 // what was fed right after each Reset
	fresh  bool
	logits []float32
}

func (d *scriptDecoder) Reset()   { d.cache, d.fresh = nil, true }
func (d *scriptDecoder) Len() int { return len(d.cache) }

func (d *scriptDecoder) Feed(tokens []int32) ([]float32, error) {
	if len(d.cache)+len(tokens) > d.block {
		return nil, errFull
	}
	if d.fresh {
		d.resets = append(d.resets, append([]int32(nil), tokens...))
		d.fresh = false
	}
	d.cache = append(d.cache, tokens...)
	next := 256
	if d.made < len(d.script) {
		next = int(d.script[d.made])
	}
	d.made++
	d.logits = make([]float32, 257)
	d.logits[next] = 5
	return d.logits, nil
}

// fixedDecoder gives the same logits every time.
type fixedDecoder struct {
	logits []float32
	n      int
}

func (d *fixedDecoder) Reset()   { d.n = 0 }
func (d *fixedDecoder) Len() int { return d.n }
func (d *fixedDecoder) Feed(tokens []int32) ([]float32, error) {
	d.n += len(tokens)
	return d.logits, nil
}
