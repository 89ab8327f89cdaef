package generate

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// textStream turns the bytes of tokens into text that may be shown at once. It
// keeps back half a rune, and whatever may still become a stop string; bytes
// that can be no rune become U+FFFD, one for each byte, as in a Go conversion
// to []rune.
type textStream struct {
	stops   []string
	raw     []byte // bytes that are no whole rune yet
	held    string // text that may be the start of a stop string
	stopped bool
}

// write takes the bytes of a token and returns the text that is certain now.
func (t *textStream) write(b []byte) string {
	if t.stopped {
		return ""
	}
	t.raw = append(t.raw, b...)
	whole, rest := runes(t.raw, false)
	t.raw = append(t.raw[:0], rest...)
	return t.release(whole, false)
}

// end returns what is left when no more tokens come.
func (t *textStream) end() string {
	if t.stopped {
		return ""
	}
	whole, _ := runes(t.raw, true)
	t.raw = t.raw[:0]
	return t.release(whole, true)
}

func (t *textStream) release(text string, final bool) string {
	t.held += text
	if at := firstStop(t.held, t.stops); at >= 0 {
		out := t.held[:at]
		t.held, t.stopped = "", true
		return out
	}
	keep := 0
	if !final {
		keep = overlap(t.held, t.stops)
	}
	cut := len(t.held) - keep
	out := t.held[:cut]
	t.held = t.held[cut:]
	return out
}

// runes converts b up to a rune that is still incomplete, which it returns as
// rest; when final, an incomplete rune is invalid.
func runes(b []byte, final bool) (text string, rest []byte) {
	var s strings.Builder
	for len(b) > 0 {
		if !final && !utf8.FullRune(b) {
			return s.String(), bytes.Clone(b)
		}
		r, n := utf8.DecodeRune(b)
		s.WriteRune(r)
		b = b[n:]
	}
	return s.String(), nil
}

// firstStop returns where the earliest stop string begins, or -1.
func firstStop(s string, stops []string) int {
	first := -1
	for _, stop := range stops {
		if at := strings.Index(s, stop); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

// overlap returns the length of the longest end of s that begins a stop string.
func overlap(s string, stops []string) int {
	longest := 0
	for _, stop := range stops {
		for n := min(len(stop)-1, len(s)); n > longest; n-- {
			if strings.HasSuffix(s, stop[:n]) {
				longest = n
				break
			}
		}
	}
	return longest
}
