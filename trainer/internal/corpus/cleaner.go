package corpus

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// CleanOptions switch the steps of cleaning. Invalid UTF-8 is always replaced:
// each run of bytes that are no UTF-8 becomes one U+FFFD.
type CleanOptions struct {
	NFC     bool `json:"nfc"`     // Unicode normalisation form C
	HTML    bool `json:"html"`    // drop tags and comments of HTML, decode the common entities
	Control bool `json:"control"` // drop control characters, byte-order marks and zero-width spaces; \r\n and \r become \n
	Wiki    bool `json:"wiki"`    // -{text}- becomes text, -{zh-hans:a; zh-hant:b}- becomes a
	Space   bool `json:"space"`   // one space for a run of them, no space around line ends, at most one empty line
}

// DefaultClean has every step on.
func DefaultClean() CleanOptions {
	return CleanOptions{NFC: true, HTML: true, Control: true, Wiki: true, Space: true}
}

// CleanStats count what cleaning changed.
type CleanStats struct {
	InvalidRuns   int64 `json:"invalid_utf8_runs"`    // replaced by U+FFFD
	ControlChars  int64 `json:"control_characters"`   // dropped
	HTMLTags      int64 `json:"html_tags"`            // and comments, dropped
	HTMLEntities  int64 `json:"html_entities"`        // decoded
	WikiMarkers   int64 `json:"wiki_markers"`         // replaced by their text
	NotNormalized int64 `json:"documents_not_in_nfc"` // brought to NFC
}

// Add adds the counts of o.
func (c *CleanStats) Add(o CleanStats) {
	c.InvalidRuns += o.InvalidRuns
	c.ControlChars += o.ControlChars
	c.HTMLTags += o.HTMLTags
	c.HTMLEntities += o.HTMLEntities
	c.WikiMarkers += o.WikiMarkers
	c.NotNormalized += o.NotNormalized
}

const maxWiki = 256 // longest -{...}- that is recognised

// maxRounds bounds how often cleaning starts over because normalising joined
// what was apart; text that is not made for it needs one round.
const maxRounds = 8

// Cleaner cleans documents. It keeps its buffers, so use one for each goroutine.
//
// Every rule looks at what has been written so far, so that a tag which appears
// when another is taken out of it goes too: cleaning twice is cleaning once.
type Cleaner struct {
	opts  CleanOptions
	plain [256]bool // bytes that no rule looks at
	stats CleanStats

	out      []byte
	angles   []int // of '<' in out
	comments []int // of "<!--" in out
	markers  []int // of "-{" in out
	norm     []byte
}

// NewCleaner returns a cleaner.
func NewCleaner(opts CleanOptions) *Cleaner {
	c := &Cleaner{opts: opts}
	for b := range c.plain {
		c.plain[b] = b >= 0x21 && b < 0x7f
	}
	for _, b := range "<>;-{" {
		c.plain[b] = false
	}
	return c
}

// Stats returns the counts since the cleaner was made.
func (c *Cleaner) Stats() CleanStats { return c.stats }

// Clean returns the cleaned text, valid until the next call.
func (c *Cleaner) Clean(text []byte) []byte {
	if !utf8.Valid(text) {
		c.stats.InvalidRuns += invalidRuns(text)
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	text, changed := c.normalize(text)
	if changed {
		c.stats.NotNormalized++
	}
	for range maxRounds {
		c.pass(text)
		if text, changed = c.normalize(c.out); !changed {
			break
		}
	}
	return text
}

func (c *Cleaner) normalize(text []byte) (_ []byte, changed bool) {
	if !c.opts.NFC || norm.NFC.IsNormal(text) {
		return text, false
	}
	c.norm = norm.NFC.Append(c.norm[:0], text...)
	return c.norm, true
}

func (c *Cleaner) pass(text []byte) {
	c.out, c.angles, c.comments, c.markers = c.out[:0], c.angles[:0], c.comments[:0], c.markers[:0]
	for i := 0; i < len(text); {
		b := text[i]
		if c.plain[b] {
			j := i + 1
			for j < len(text) && c.plain[text[j]] {
				j++
			}
			c.out = append(c.out, text[i:j]...)
			i = j
			continue
		}
		if b < utf8.RuneSelf {
			if b == '\r' && c.opts.Control {
				b = '\n'
				if i+1 < len(text) && text[i+1] == '\n' {
					i++
				}
			}
			c.ascii(b)
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		c.wide(r, text[i:i+n])
		i += n
	}
	if c.opts.Space {
		c.out = bytes.TrimRight(c.out, " \n")
	}
}

// wide writes a character outside ASCII.
func (c *Cleaner) wide(r rune, encoded []byte) {
	switch {
	case c.opts.Control && (r < 0xa0 || r == '\uFEFF' || r == '\u200B'):
		c.stats.ControlChars++
	case c.opts.Space && (r == '\u2028' || r == '\u2029'):
		c.ascii('\n')
	case c.opts.Space && (r == '\u00A0' || r >= '\u2000' && unicode.Is(unicode.Zs, r)):
		c.ascii(' ')
	default:
		c.out = append(c.out, encoded...)
	}
}

// ascii writes one byte and applies the rules that it may complete.
func (c *Cleaner) ascii(b byte) {
	switch {
	case b == ' ' || b == '\n' || b == '\t':
		c.space(b)
		return
	case b < 0x20 || b == 0x7f:
		if c.opts.Control {
			c.stats.ControlChars++
			return
		}
	}
	c.out = append(c.out, b)
	n := len(c.out)
	switch b {
	case '<':
		c.angles = append(c.angles, n-1)
	case '>':
		c.tag()
	case ';':
		c.entity()
	case '{':
		if n >= 2 && c.out[n-2] == '-' {
			c.markers = append(c.markers, n-2)
		}
	case '-':
		if n >= 4 && string(c.out[n-4:]) == "<!--" {
			c.comments = append(c.comments, n-4)
		}
		if n >= 2 && c.out[n-2] == '}' {
			c.wiki()
		}
	}
}

func (c *Cleaner) space(b byte) {
	if !c.opts.Space {
		c.out = append(c.out, b)
		return
	}
	n := len(c.out)
	if b != '\n' {
		if n > 0 && c.out[n-1] != ' ' && c.out[n-1] != '\n' {
			c.out = append(c.out, ' ')
		}
		return
	}
	if n > 0 && c.out[n-1] == ' ' {
		n--
		c.out = c.out[:n]
	}
	if n > 0 && !(n >= 2 && c.out[n-1] == '\n' && c.out[n-2] == '\n') {
		c.out = append(c.out, '\n')
	}
}

// truncate takes everything from at on back out.
func (c *Cleaner) truncate(at int) {
	c.out = c.out[:at]
	c.angles = dropFrom(c.angles, at)
	c.comments = dropFrom(c.comments, at)
	c.markers = dropFrom(c.markers, at)
}

func dropFrom(positions []int, at int) []int {
	for len(positions) > 0 && positions[len(positions)-1] >= at {
		positions = positions[:len(positions)-1]
	}
	return positions
}

// tag looks for a tag or comment that ends here.
func (c *Cleaner) tag() {
	if !c.opts.HTML {
		return
	}
	if at := c.comment(); at >= 0 {
		c.truncate(at)
		c.stats.HTMLTags++
		return
	}
	if k := len(c.angles); k > 0 && isTag(c.out[c.angles[k-1]:]) {
		c.truncate(c.angles[k-1])
		c.stats.HTMLTags++
	}
}

// comment returns where the comment that ends here begins, or -1: at the last
// "<!--" that does not share its dashes with the end.
func (c *Cleaner) comment() int {
	n := len(c.out)
	if n < len("<!---->") || string(c.out[n-3:]) != "-->" {
		return -1
	}
	for k := len(c.comments) - 1; k >= 0; k-- {
		if length := n - c.comments[k]; length >= len("<!---->") {
			if length > maxComment {
				return -1
			}
			return c.comments[k]
		}
	}
	return -1
}

func (c *Cleaner) entity() {
	if !c.opts.HTML {
		return
	}
	n := len(c.out)
	at := bytes.LastIndexByte(c.out[max(0, n-longestEntity):], '&')
	if at < 0 {
		return
	}
	at += max(0, n-longestEntity)
	if text, ok := entity(c.out[at:]); ok {
		c.truncate(at)
		c.stats.HTMLEntities++
		c.ascii(text)
	}
}

// wiki looks for a language marker of MediaWiki that ends here and writes the
// text of its first variant in its place.
func (c *Cleaner) wiki() {
	if !c.opts.Wiki || len(c.markers) == 0 {
		return
	}
	at := c.markers[len(c.markers)-1]
	n := len(c.out)
	if n-at > maxWiki || n-at < len("-{}-") {
		return
	}
	var buf [maxWiki]byte
	text := buf[:copy(buf[:], c.out[at+2:n-2])]
	c.truncate(at)
	c.stats.WikiMarkers++
	if i := bytes.LastIndexByte(text, '|'); i >= 0 {
		text = text[i+1:]
	}
	first, _, _ := bytes.Cut(text, []byte(";"))
	if _, after, ok := bytes.Cut(first, []byte(":")); ok {
		first = after
	}
	for _, b := range bytes.TrimSpace(first) {
		if b < utf8.RuneSelf {
			c.ascii(b)
		} else {
			c.out = append(c.out, b)
		}
	}
}

// invalidRuns counts the runs of bytes that are no UTF-8.
func invalidRuns(text []byte) (runs int64) {
	inside := false
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		bad := r == utf8.RuneError && n == 1
		if bad && !inside {
			runs++
		}
		inside = bad
		text = text[n:]
	}
	return runs
}
