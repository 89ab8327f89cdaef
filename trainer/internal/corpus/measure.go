package corpus

import (
	"encoding/binary"
	"unicode"
	"unicode/utf8"
)

// The repetition of a document is measured in blocks, so that it does not grow
// with length: every long text repeats itself.
const (
	repeatGram     = 10   // characters
	repeatBlock    = 2000 // characters
	repeatSlotBits = 12
	repeatSlots    = 1 << repeatSlotBits // at least twice the block
)

// Measures are what filters and detectors judge a document by.
type Measures struct {
	Chars      int // characters (Unicode code points)
	Symbols    int // neither letter, mark, digit nor white space
	Control    int // control characters other than tab and line ends
	Repetition float64
}

// SymbolRatio returns the share of symbols among the characters.
func (m Measures) SymbolRatio() float64 {
	if m.Chars == 0 {
		return 0
	}
	return float64(m.Symbols) / float64(m.Chars)
}

// Measurer measures documents. Use one for each goroutine.
type Measurer struct {
	grams gramSet
	runes [repeatBlock + repeatGram - 1]rune
}

// Classes of ASCII.
const (
	classSymbol = iota
	classWord
	classSpace
	classControl
)

var asciiClass = func() (t [utf8.RuneSelf]uint8) {
	for i := range t {
		r := rune(i)
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			t[i] = classWord
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			t[i] = classSpace
		case unicode.IsControl(r):
			t[i] = classControl
		}
	}
	return t
}()

func classOf(r rune) uint8 {
	switch {
	case r < utf8.RuneSelf:
		return asciiClass[r]
	case unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r):
		return classWord
	case unicode.IsSpace(r):
		return classSpace
	case unicode.IsControl(r):
		return classControl
	}
	return classSymbol
}

// Measure measures text. Repetition is the share of the runs of 10 characters
// that occurred before in the same 2000 characters, as in the repetition filters
// of Rae et al., "Scaling Language Models" (2021), A.1.1, but of characters, so
// that it also holds for languages without spaces; 0 for fewer than 10.
func (m *Measurer) Measure(text []byte) Measures {
	var out Measures
	for i := 0; i < len(text); {
		n := 1
		var class uint8
		if text[i] < utf8.RuneSelf {
			class = asciiClass[text[i]]
		} else {
			var r rune
			r, n = utf8.DecodeRune(text[i:])
			class = classOf(r)
		}
		i += n
		out.Chars++
		switch class {
		case classSymbol:
			out.Symbols++
		case classControl:
			out.Control++
		}
	}
	if windows := out.Chars - repeatGram + 1; windows > 0 {
		out.Repetition = float64(m.repeats(text)) / float64(windows)
	}
	return out
}

// repeats counts the runs that occurred before in their block.
func (m *Measurer) repeats(text []byte) (repeats int) {
	for len(text) > 0 {
		m.grams.clear()
		n := asciiPrefix(text, repeatBlock+repeatGram-1)
		if n == repeatBlock+repeatGram-1 || n == len(text) {
			for i := 0; i+repeatGram <= n; i++ {
				if m.grams.seen(hashASCII(text[i:])) {
					repeats++
				}
			}
			text = text[min(repeatBlock, n):]
			continue
		}
		repeats += m.blockRepeats(&text)
	}
	return repeats
}

// blockRepeats counts the repeats of a block that is not all ASCII and moves text
// past it.
func (m *Measurer) blockRepeats(text *[]byte) (repeats int) {
	n, next := 0, 0
	for i := 0; i < len(*text) && n < len(m.runes); n++ {
		r, size := utf8.DecodeRune((*text)[i:])
		m.runes[n] = r
		if i += size; n < repeatBlock {
			next = i
		}
	}
	var gram roller
	gram.reset(repeatGram)
	for _, r := range m.runes[:n] {
		if gram.push(r) && m.grams.seen(gram.hash()) {
			repeats++
		}
	}
	*text = (*text)[next:]
	return repeats
}

// asciiPrefix returns how many of the first n bytes come before any that is not
// ASCII.
func asciiPrefix(b []byte, n int) int {
	b = b[:min(n, len(b))]
	i := 0
	for ; i+8 <= len(b); i += 8 {
		if binary.LittleEndian.Uint64(b[i:])&0x8080808080808080 != 0 {
			break
		}
	}
	for i < len(b) && b[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// hashASCII hashes the first 10 bytes.
func hashASCII(b []byte) uint64 {
	_ = b[repeatGram-1]
	h := binary.LittleEndian.Uint64(b)*rollBase ^ uint64(binary.LittleEndian.Uint16(b[8:]))*0xbf58476d1ce4e5b9
	return (h ^ h>>32) * 0x94d049bb133111eb
}

// gramSet is a set of hashes, emptied for each block; 0 marks a free slot.
type gramSet [repeatSlots]uint32

func (g *gramSet) clear() { *g = gramSet{} }

// seen reports whether a hash is in the set and adds it.
func (g *gramSet) seen(h uint64) bool {
	print := uint32(h>>8) | 1
	for i := h >> (64 - repeatSlotBits); ; i = (i + 1) % repeatSlots {
		if g[i] == print {
			return true
		}
		if g[i] == 0 {
			g[i] = print
			return false
		}
	}
}
