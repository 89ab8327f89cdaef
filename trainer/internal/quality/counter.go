package quality

import (
	"bytes"
	"unicode/utf8"

	"github.com/trainyard/trainyard/trainer/internal/corpus"
)

// exampleBytes is the longest excerpt in a report.
const exampleBytes = 120

// Example is a document that a detector flagged.
type Example struct {
	File     string `json:"file"`
	Document int64  `json:"document"` // counted from 1 over the corpus as it was read
	Excerpt  string `json:"excerpt"`  // its beginning
}

// Counter counts flagged documents. Add is called in the order of the documents,
// so that the examples are the first ones.
type Counter struct {
	opts      Options
	documents int64
	flagged   [Detectors]int64
	examples  [Detectors][]Example
}

// NewCounter returns a counter.
func NewCounter(opts Options) *Counter { return &Counter{opts: opts} }

// Add counts a document.
func (c *Counter) Add(f Flags, doc corpus.Document) {
	c.documents++
	if f == 0 {
		return
	}
	for d := range Detectors {
		if !f.Has(d) {
			continue
		}
		c.flagged[d]++
		if len(c.examples[d]) < c.opts.Examples {
			c.examples[d] = append(c.examples[d], Example{File: doc.File, Document: doc.Number, Excerpt: excerpt(doc.Text)})
		}
	}
}

// excerpt cuts at the end of a character, and makes the rest valid UTF-8.
func excerpt(text []byte) string {
	if len(text) > exampleBytes {
		n := exampleBytes
		for n > exampleBytes-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n]
	}
	return string(bytes.ToValidUTF8(text, []byte("\uFFFD")))
}

// Percent returns n of documents in percent, 0 when there are none.
func Percent(n, documents int64) float64 {
	if documents == 0 {
		return 0
	}
	return 100 * float64(n) / float64(documents)
}
