package corpus

import (
	"unicode"
	"unicode/utf8"
)

// The repetition of a document is measured in blocks, so that it does not grow
// with length: every long text repeats itself.
const (
	repeatGram  = 10   // characters
	repeatBlock = 2000 // characters
	repeatSlots = 4096 // a power of two, at least twice the block
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
	slots [repeatSlots]struct{ print, round uint32 }
	round uint32
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
	var (
		out             Measures
		gram            roller
		windows, repeat int
	)
	gram.reset(repeatGram)
	m.nextRound()
	for i := 0; i < len(text); {
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(text[i:])
		}
		i += n
		out.Chars++
		switch classOf(r) {
		case classSymbol:
			out.Symbols++
		case classControl:
			out.Control++
		}
		if !gram.push(r) {
			continue
		}
		if windows%repeatBlock == 0 {
			m.nextRound()
		}
		windows++
		if m.seen(gram.hash()) {
			repeat++
		}
	}
	if windows > 0 {
		out.Repetition = float64(repeat) / float64(windows)
	}
	return out
}

func (m *Measurer) nextRound() {
	if m.round++; m.round == 0 { // wrapped: old rounds would look new
		clear(m.slots[:])
		m.round = 1
	}
}

// seen reports whether a hash occurred in this round and notes it.
func (m *Measurer) seen(h uint64) bool {
	print := uint32(h >> 32)
	for i := h % repeatSlots; ; i = (i + 1) % repeatSlots {
		s := &m.slots[i]
		if s.round != m.round {
			s.print, s.round = print, m.round
			return false
		}
		if s.print == print {
			return true
		}
	}
}
