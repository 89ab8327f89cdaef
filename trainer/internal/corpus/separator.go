package corpus

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The ways to tell where a document ends.
const (
	kindNewlines = "blank-lines"
	kindLine     = "line"
	kindFile     = "file"
	kindJSONL    = "jsonl"
	kindLiteral  = "literal"
)

// DefaultSeparator ends a document at three or more newlines.
const DefaultSeparator = "blank-lines:3"

// Separator says where one document ends and the next begins. The zero value is
// not usable: take one from ParseSeparator. Separators are comparable.
type Separator struct {
	kind     string
	newlines int
	literal  string
}

// ParseSeparator reads the name of a separator:
//
//	blank-lines:N  N or more newlines in a row; \r\n counts as one
//	blank-line     the same as blank-lines:2
//	line           every line is a document
//	file           every file is a document
//	jsonl          every line is a JSON object with the text in one field
//	literal:TEXT   the bytes of TEXT
//
// In a file called *.jsonl each record is a document, whatever the separator.
func ParseSeparator(name string) (Separator, error) {
	kind, arg, hasArg := strings.Cut(name, ":")
	switch {
	case kind == "blank-line" && !hasArg:
		return Separator{kind: kindNewlines, newlines: 2}, nil
	case kind == kindNewlines && hasArg:
		n, err := strconv.Atoi(arg)
		if err != nil || n < 2 || n > 100 {
			return Separator{}, fmt.Errorf("separator %q: want a number of newlines from 2 to 100 after the colon", name)
		}
		return Separator{kind: kindNewlines, newlines: n}, nil
	case (kind == kindLine || kind == kindFile || kind == kindJSONL) && !hasArg:
		return Separator{kind: kind}, nil
	case kind == kindLiteral && hasArg:
		if len(arg) < 1 || len(arg) > 1024 || !utf8.ValidString(arg) {
			return Separator{}, fmt.Errorf("separator %q: want 1 to 1024 bytes of UTF-8 after the colon", name)
		}
		return Separator{kind: kindLiteral, literal: arg}, nil
	}
	return Separator{}, fmt.Errorf("separator %q is unknown: use blank-lines:N, blank-line, line, file, jsonl or literal:TEXT", name)
}

// String returns the name that ParseSeparator reads.
func (s Separator) String() string {
	switch s.kind {
	case kindNewlines:
		return fmt.Sprintf("%s:%d", kindNewlines, s.newlines)
	case kindLiteral:
		return kindLiteral + ":" + s.literal
	}
	return s.kind
}

// find looks for the first separator in data[from:]. It returns where that
// begins and how long it is, or at < 0 and the place from which to look again
// when more data has come: no separator begins before it.
func (s Separator) find(data []byte, from int, atEOF bool) (at, width, again int) {
	switch s.kind {
	case kindNewlines:
		return findNewlines(data, from, s.newlines, atEOF)
	case kindLine, kindJSONL:
		if i := bytes.IndexByte(data[from:], '\n'); i >= 0 {
			return from + i, 1, 0
		}
	case kindLiteral:
		if i := bytes.Index(data[from:], []byte(s.literal)); i >= 0 {
			return from + i, len(s.literal), 0
		}
		if !atEOF {
			return -1, 0, max(from, len(data)-len(s.literal)+1)
		}
	}
	return -1, 0, len(data)
}

// findNewlines takes the first n newlines of a longer run: the scanner trims the
// rest off the next document, so that a run of any length needs no buffer.
func findNewlines(data []byte, from, n int, atEOF bool) (at, width, again int) {
	for from < len(data) {
		i := bytes.IndexByte(data[from:], '\n')
		if i < 0 {
			break
		}
		i += from
		j, count := i+1, 1
		for count < n && j < len(data) {
			if data[j] == '\n' {
				j++
			} else if j+1 < len(data) && data[j] == '\r' && data[j+1] == '\n' {
				j += 2
			} else {
				break
			}
			count++
		}
		if count == n {
			return i, j - i, 0
		}
		undecided := j == len(data) || (j+1 == len(data) && data[j] == '\r')
		if undecided && !atEOF {
			return -1, 0, i
		}
		from = j
	}
	return -1, 0, len(data)
}

// trim removes what the separator leaves at the ends of a document.
func (s Separator) trim(doc []byte) []byte {
	switch s.kind {
	case kindNewlines:
		return bytes.Trim(doc, "\r\n")
	case kindLine, kindJSONL:
		return bytes.TrimSuffix(doc, []byte("\r"))
	}
	return doc
}
