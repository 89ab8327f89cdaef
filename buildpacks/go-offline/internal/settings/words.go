package settings

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// splitWords splits a line into words as Paketo's go-build does, as far as that
// agrees with what a shell would do; the rest is an error.
//
// Words end at white space outside of quotes. $NAME and ${NAME} are replaced
// everywhere, in single quotes too. In double quotes \" and \$ stand for " and $.
// The value of a variable outside of quotes is split at white space.
func splitWords(line string, getenv func(string) string) ([]string, error) {
	var words []string
	rest := []rune(line)
	for {
		for len(rest) > 0 && isSpace(rest[0]) {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return words, nil
		}
		var t token
		var err error
		if rest, err = t.read(rest); err != nil {
			return nil, err
		}
		w, err := t.words(getenv)
		if err != nil {
			return nil, err
		}
		words = append(words, w...)
	}
}

func isSpace(r rune) bool { return r == ' ' || r == '\t' || r == '\r' || r == '\n' }

// special are the characters that mean something to a shell outside of quotes.
const special = "`();&|<>\\\"'"

// token is a word without its quotes, its variables still to be replaced.
type token struct {
	text    []rune
	literal map[int]bool // positions of $ signs that were escaped
	quotes  map[int]bool // positions in text before which a quote was
	spaces  bool         // there is white space that was in quotes
	ends    bool         // the last that was read is a closing quote
}

// read takes one token from the front of line, which must not be empty, and
// returns what follows it.
func (t *token) read(line []rune) ([]rune, error) {
	t.literal, t.quotes = map[int]bool{}, map[int]bool{}
	var open rune // the quote that is open, or 0
	for i := 0; i < len(line); i++ {
		r := line[i]
		switch {
		case open == 0 && isSpace(r):
			return line[i:], nil
		case open == 0 && (r == '"' || r == '\''):
			open, t.ends = r, false
			t.quotes[len(t.text)] = true
			continue
		case open != 0 && r == open:
			open, t.ends = 0, true
			t.quotes[len(t.text)] = true
			continue
		case r == '\\':
			if open != '"' || i+1 == len(line) || (line[i+1] != '"' && line[i+1] != '$') {
				return nil, errors.New(`a backslash may only stand before " or $ in double quotes`)
			}
			i++
			t.literal[len(t.text)] = line[i] == '$'
			r = line[i]
		case open == 0 && strings.ContainsRune(special, r):
			return nil, fmt.Errorf("%q outside of quotes: put the word in double quotes", r)
		}
		t.spaces = t.spaces || isSpace(r)
		t.text, t.ends = append(t.text, r), false
	}
	if open != 0 {
		return nil, fmt.Errorf("the quote %c is not closed", open)
	}
	return nil, nil
}

// words replaces the variables. The result is one word, but several or none when
// a variable outside of quotes holds white space or nothing.
func (t *token) words(getenv func(string) string) ([]string, error) {
	text, err := t.expand(getenv)
	if err != nil {
		return nil, err
	}
	if t.ends {
		return []string{text}, nil
	}
	// Paketo reads such a word a second time, when its quotes are gone.
	if t.spaces || strings.ContainsAny(text, special) {
		return nil, fmt.Errorf("%q has characters that need quotes: end the word with a closing quote", text)
	}
	return strings.FieldsFunc(text, isSpace), nil
}

func isName(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func (t *token) expand(getenv func(string) string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(t.text); i++ {
		if t.text[i] != '$' || t.literal[i] {
			out.WriteRune(t.text[i])
			continue
		}
		start := i + 1
		braces := start < len(t.text) && t.text[start] == '{'
		if braces {
			start++
		}
		end := start
		for end < len(t.text) && isName(t.text[end]) {
			end++
		}
		if braces && (end == start || end == len(t.text) || t.text[end] != '}') {
			return "", fmt.Errorf("%q: want ${NAME}", string(t.text[i:]))
		}
		if !braces && t.literal[end] {
			return "", fmt.Errorf(`%q: write ${NAME} before \$, and \$ for a $`, string(t.text[i:end]))
		}
		if end == start { // a lone $ stands for itself
			out.WriteRune('$')
			continue
		}
		for p := i + 1; p < end; p++ {
			if t.quotes[p] {
				return "", fmt.Errorf("$%s: there is a quote within the name, write ${NAME}", string(t.text[start:end]))
			}
		}
		out.WriteString(getenv(string(t.text[start:end])))
		i = end - 1
		if braces {
			i = end
		}
	}
	return out.String(), nil
}
