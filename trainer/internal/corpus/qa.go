package corpus

import (
	"bytes"
	"errors"
	"fmt"
)

// EndOfText ends a record of a question-answer file, and a document in a file of
// tokens.
const EndOfText = "<|endoftext|>"

// ErrQA is wrapped by every error about a question-answer record.
var ErrQA = errors.New("invalid question-answer record")

// QASeparator ends a record.
func QASeparator() Separator { return Separator{kind: kindLiteral, literal: EndOfText} }

// ParseQA reads the text of one record, "question | answer", and returns it with
// one space around the bar and the length of the part up to and with the bar:
// that part is the prompt of the question. The first bar counts.
func ParseQA(record []byte) (text []byte, prompt int, err error) {
	question, answer, ok := bytes.Cut(record, []byte("|"))
	question, answer = bytes.TrimSpace(question), bytes.TrimSpace(answer)
	switch {
	case !ok:
		return nil, 0, fmt.Errorf("%w: no | in %.60q: write question | answer%s", ErrQA, record, EndOfText)
	case len(question) == 0:
		return nil, 0, fmt.Errorf("%w: no question in %.60q", ErrQA, record)
	case len(answer) == 0:
		return nil, 0, fmt.Errorf("%w: no answer in %.60q", ErrQA, record)
	case bytes.IndexByte(answer, '\n') >= 0 && bytes.IndexByte(answer, '|') >= 0:
		// Two records with no end between them would train on the second question.
		return nil, 0, fmt.Errorf("%w: %.60q holds another | on a later line: end each record with %s", ErrQA, record, EndOfText)
	}
	text = make([]byte, 0, len(question)+len(answer)+3)
	text = append(append(text, question...), " |"...)
	prompt = len(text)
	return append(append(text, ' '), answer...), prompt, nil
}
