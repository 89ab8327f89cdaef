package bpe

import "unicode/utf8"

// GPT-2 spells every byte of a token as one printable character, so that vocabularies
// are text files without blanks or control characters: printable bytes of Latin-1 stand
// for themselves, and the other 68 for U+0100 and on, in order of the byte. The function
// is bytes_to_unicode in OpenAI's published encoder.py.

// shifted is the first character that stands for a byte with no character of its own.
const shifted = 0x100

// spellings is the character of each byte; read only.
var spellings = func() (table [256]rune) {
	next := rune(shifted)
	for b := range table {
		if printable(rune(b)) {
			table[b] = rune(b)
			continue
		}
		table[b] = next
		next++
	}
	return table
}()

// spelled is the inverse of spellings: the byte of each character, or -1; read only.
var spelled = func() (table [shifted + 68]int16) {
	for i := range table {
		table[i] = -1
	}
	for b, r := range spellings {
		table[r] = int16(b)
	}
	return table
}()

// byteOrder is the order of the 256 bytes in GPT-2's vocabulary, which is the order of
// their characters; read only.
var byteOrder = func() (order [256]byte) {
	n := 0
	for _, b := range spelled {
		if b >= 0 {
			order[n] = byte(b)
			n++
		}
	}
	return order
}()

// printable tells whether Latin-1's r stands for itself. The soft hyphen U+00AD does not.
func printable(r rune) bool {
	return '!' <= r && r <= '~' || '¡' <= r && r <= '¬' || '®' <= r && r <= 'ÿ'
}

// spell writes the bytes of a token as vocabulary files have them.
func spell(token []byte) string {
	out := make([]byte, 0, 2*len(token))
	for _, b := range token {
		out = utf8.AppendRune(out, spellings[b])
	}
	return string(out)
}

// unspell is the inverse of spell. It returns the first character that stands for no
// byte and false if there is one.
func unspell(text string) (token []byte, odd rune, ok bool) {
	token = make([]byte, 0, len(text))
	for _, r := range text {
		if int(r) >= len(spelled) || spelled[r] < 0 {
			return nil, r, false
		}
		token = append(token, byte(spelled[r]))
	}
	return token, 0, true
}
