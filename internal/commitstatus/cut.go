package commitstatus

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const ellipsis = "…"

// Cut makes one line of at most limit characters out of a text: at the end of a word
// where it has to end, with an ellipsis for what is missing. Control and formatting
// characters, which could make a page show something else than it says, are left out.
func Cut(text string, limit int) string {
	text = oneLine(text)
	if limit <= 0 {
		return ""
	}
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	runes := []rune(text)
	kept := string(runes[:limit-1])
	if runes[limit-1] != ' ' {
		// Within a word: back to the one before, unless that leaves next to nothing.
		if i := strings.LastIndexByte(kept, ' '); i >= len(kept)/2 {
			kept = kept[:i]
		}
	}
	return strings.TrimRight(kept, " ,;:(") + ellipsis
}

// oneLine has the words of a text with one blank between them.
func oneLine(text string) string {
	visible := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
	return strings.Join(strings.Fields(visible), " ")
}

// narrow replaces characters that take four bytes of UTF-8.
func narrow(text string) string {
	return strings.Map(func(r rune) rune {
		if r > 0xffff {
			return utf8.RuneError
		}
		return r
	}, text)
}
