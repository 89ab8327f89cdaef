package bpe

import (
	"unicode"
	"unicode/utf8"
)

// class says to which of the pattern's sets a character belongs.
type class uint8

const (
	other  class = iota // [^\s\p{L}\p{N}]
	letter              // \p{L}
	number              // \p{N}
	space               // \s, Unicode's White_Space
)

// asciiClass is the class of each ASCII character; read only.
var asciiClass = func() (table [utf8.RuneSelf]class) {
	for c := range table {
		table[c] = runeClass(rune(c))
	}
	return table
}()

// runeClass looks r up in Unicode's tables.
func runeClass(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return other
}

// classAt returns the class of the character at text[i] and its length in bytes. A byte
// that belongs to no well-formed UTF-8 sequence (surrogates and overlong forms are not
// well formed) is a character of its own, of class other.
func classAt(text []byte, i int) (class, int) {
	if c := text[i]; c < utf8.RuneSelf {
		return asciiClass[c], 1
	}
	r, size := utf8.DecodeRune(text[i:])
	if r == utf8.RuneError {
		return other, size // U+FFFD itself is a symbol too, so both are one case
	}
	return runeClass(r), size
}

// wordEnd returns the end of the word (the pre-token) that starts at text[i], with i
// below len(text). Words are the successive matches of GPT-2's pattern
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// whose alternatives are tried in this order; they leave nothing out.
func wordEnd(text []byte, i int) int {
	first := i
	switch text[i] {
	case '\'':
		if n := contraction(text[i:]); n > 0 {
			return i + n
		}
	case ' ':
		// One blank leads a word of any of the three kinds.
		if first+1 < len(text) {
			first++
		}
	}
	kind, size := classAt(text, first)
	if kind == space {
		return spaceEnd(text, i)
	}
	return runEnd(text, first+size, kind)
}

// contraction returns the length of the English contraction that text starts with, or 0.
// Only lower case counts, as in the pattern.
func contraction(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(text) > 2 && text[2] == 'e' {
			return 3
		}
	case 'l':
		if len(text) > 2 && text[2] == 'l' {
			return 3
		}
	}
	return 0
}

// runEnd returns the end of the run of characters of one class that goes on at text[i].
func runEnd(text []byte, i int, kind class) int {
	for i < len(text) {
		if c := text[i]; c < utf8.RuneSelf {
			if asciiClass[c] != kind {
				return i
			}
			i++
			continue
		}
		got, size := classAt(text, i)
		if got != kind {
			return i
		}
		i += size
	}
	return i
}

// spaceEnd returns the end of the white space that starts at text[i]. Before other text
// the last space character is left for the next word, unless it is the only one.
func spaceEnd(text []byte, i int) int {
	last, end := i, i
	for end < len(text) {
		kind, size := classAt(text, end)
		if kind != space {
			if last > i {
				return last
			}
			return end
		}
		last = end
		end += size
	}
	return end
}
