package quality

import (
	"bytes"
	"fmt"

	"github.com/trainyard/trainyard/trainer/internal/corpus"
)

// Detector is the number of a detector.
type Detector uint8

// The detectors.
const (
	WikiMarkup Detector = iota
	HTMLResidue
	ControlChars
	URL
	SymbolSpam
	HighRepetition
	TooShort
	Detectors // how many there are
)

// String returns the name used in reports.
func (d Detector) String() string {
	return [...]string{"wiki_markup", "html_residue", "control_chars", "url", "symbol_spam", "high_repetition", "too_short", "?"}[min(d, Detectors)]
}

// Flags are the detectors that a document set off.
type Flags uint8

// Has reports whether the detector was set off.
func (f Flags) Has(d Detector) bool { return f&(1<<d) != 0 }

// Options are the parameters of the detectors.
type Options struct {
	MaxPercent     map[string]float64 `json:"max_percent"` // by name; the highest share of documents that passes
	MinChars       int                `json:"min_chars"`   // too_short: fewer characters
	MaxSymbolRatio float64            `json:"max_symbol_ratio"`
	MaxRepetition  float64            `json:"max_repetition"`
	Examples       int                `json:"-"` // how many flagged documents to show for each detector
}

// DefaultOptions has the thresholds that the project starts from.
func DefaultOptions() Options {
	return Options{
		MaxPercent: map[string]float64{
			WikiMarkup.String(): 0.5, HTMLResidue.String(): 0.5, ControlChars.String(): 0.1, URL.String(): 5,
			SymbolSpam.String(): 1, HighRepetition.String(): 1, TooShort.String(): 5,
		},
		MinChars: 50, MaxSymbolRatio: 0.3, MaxRepetition: 0.3, Examples: 3,
	}
}

// Validate reports the first option that is unknown or out of range. All seven
// thresholds must be given: a forgotten one must not pass.
func (o Options) Validate() error {
	for d := range Detectors {
		max, ok := o.MaxPercent[d.String()]
		if !ok {
			return fmt.Errorf("quality: no threshold for %s: give one in percent", d)
		}
		if !(max >= 0 && max <= 100) {
			return fmt.Errorf("quality: threshold of %s is %v: want 0 to 100 percent", d, max)
		}
	}
	if len(o.MaxPercent) > int(Detectors) {
		for name := range o.MaxPercent {
			if !known(name) {
				return fmt.Errorf("quality: threshold for unknown detector %q", name)
			}
		}
	}
	if o.MinChars < 0 || !(o.MaxSymbolRatio > 0) || !(o.MaxRepetition > 0) {
		return fmt.Errorf("quality: min_chars %d, max_symbol_ratio %v, max_repetition %v: want 0 or more, and more than 0 for the ratios", o.MinChars, o.MaxSymbolRatio, o.MaxRepetition)
	}
	return nil
}

func known(name string) bool {
	for d := range Detectors {
		if d.String() == name {
			return true
		}
	}
	return false
}

// Detect returns what sets off a detector in a document whose measures are m.
func (o Options) Detect(text []byte, m corpus.Measures) Flags {
	var f Flags
	set := func(d Detector, on bool) {
		if on {
			f |= 1 << d
		}
	}
	set(WikiMarkup, hasWiki(text))
	set(HTMLResidue, corpus.HasHTML(text))
	set(ControlChars, m.Control > 0)
	set(URL, bytes.Contains(text, []byte("://")) || bytes.Contains(text, []byte("www.")))
	set(SymbolSpam, m.SymbolRatio() > o.MaxSymbolRatio)
	set(HighRepetition, m.Repetition > o.MaxRepetition)
	set(TooShort, m.Chars < o.MinChars)
	return f
}

// hasWiki looks for what MediaWiki leaves behind: language markers, links,
// templates with parameters, bold quotes, headings.
func hasWiki(text []byte) bool {
	return pair(text, "-{", "}-", false) || pair(text, "[[", "]]", true) || template(text) ||
		bytes.Contains(text, []byte("'''")) || heading(text)
}

// pair reports whether open is followed by close on the same line, with a letter
// or a character outside ASCII right after open if asked for.
func pair(text []byte, open, close string, letter bool) bool {
	for {
		i := bytes.Index(text, []byte(open))
		if i < 0 {
			return false
		}
		text = text[i+len(open):]
		line, _, _ := bytes.Cut(text[:min(len(text), 1<<10)], []byte("\n"))
		if bytes.Contains(line, []byte(close)) && (!letter || startsWithLetter(line)) {
			return true
		}
	}
}

func startsWithLetter(b []byte) bool {
	return len(b) > 0 && (b[0] >= 0x80 || b[0]|0x20 >= 'a' && b[0]|0x20 <= 'z')
}

// template finds {{Name|...}}: other languages write {{name}} too, but without
// a bar right after it.
func template(text []byte) bool {
	for {
		i := bytes.Index(text, []byte("{{"))
		if i < 0 {
			return false
		}
		text = text[i+2:]
		if !startsWithLetter(text) {
			continue
		}
		name := text[:min(len(text), 64)]
		if end := bytes.IndexAny(name, "|{}\n\"`"); end >= 0 && name[end] == '|' {
			return true
		}
	}
}

// heading finds a line such as == History ==.
func heading(text []byte) bool {
	for {
		i := bytes.Index(text, []byte("=="))
		if i < 0 {
			return false
		}
		line, rest, _ := bytes.Cut(text[i:], []byte("\n"))
		inner := bytes.Trim(line, "= \r")
		if (i == 0 || text[i-1] == '\n') && len(inner) > 0 && bytes.HasSuffix(bytes.TrimRight(line, " \r"), []byte("==")) {
			return true
		}
		text = rest
		if len(rest) == 0 {
			return false
		}
	}
}
