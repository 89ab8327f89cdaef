package corpus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// jsonReader takes the text of one field from each line of JSON.
type jsonReader struct {
	lines *Scanner
	field string
	max   int // longest text in bytes

	rest     []byte // of a text that is being cut
	line     int64  // lines with something in them so far
	skipping bool
	tooLong  int64
	cut      int64
}

// jsonLineFactor is how much longer than its text a line may be: escapes of up
// to six bytes a character and other fields.
const jsonLineFactor = 4

func newJSONReader(r io.Reader, field string, maxDoc int) *jsonReader {
	return &jsonReader{lines: NewScanner(r, Separator{kind: kindJSONL}, jsonLineFactor*maxDoc), field: field, max: maxDoc}
}

// Next returns the text of the next record. Records whose text is white space
// alone are skipped; lines longer than four times the longest document are
// skipped and counted, since a part of a line is no JSON.
func (j *jsonReader) Next() ([]byte, error) {
	for {
		if len(j.rest) > 0 {
			return j.piece(), nil
		}
		line, err := j.lines.Next()
		if err != nil {
			return nil, err
		}
		if !j.lines.continued {
			j.line++
			j.skipping = false
		}
		if j.lines.partial || j.lines.continued {
			if !j.skipping {
				j.tooLong++
			}
			j.skipping = true
			continue
		}
		text, err := fieldOf(line, j.field)
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", j.line, err)
		}
		if len(bytes.TrimSpace(text)) > 0 {
			j.rest = text
		}
	}
}

// piece cuts as a Scanner does.
func (j *jsonReader) piece() []byte {
	n := boundary(j.rest, j.max)
	p := j.rest[:n]
	j.rest = j.rest[n:]
	if len(j.rest) > 0 {
		j.cut++
	}
	return p
}

// fieldOf returns the string in a field of a JSON object.
func fieldOf(line []byte, field string) ([]byte, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(line, &object); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	raw, ok := object[field]
	if !ok {
		return nil, fmt.Errorf("no field %q: name the field that holds the text", field)
	}
	var text string
	if len(raw) == 0 || raw[0] != '"' {
		return nil, fmt.Errorf("field %q is not a string", field)
	}
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, fmt.Errorf("field %q: %w", field, err)
	}
	return []byte(text), nil
}
