package corpus

import "bytes"

// maxTag is the longest tag, and maxComment the longest comment, that is
// recognised: what is longer is text that happens to hold the brackets.
const (
	maxTag     = 1 << 10
	maxComment = 64 << 10
)

// htmlNames are the elements of HTML that are told from other text in angle
// brackets, such as <nil>, List<int> or <|endoftext|>.
var htmlNames = nameSet(
	"a abbr address area article aside audio b base bdi bdo big blockquote body br button canvas caption center cite " +
		"code col colgroup data datalist dd del details dfn dialog dir div dl dt em embed fieldset figcaption figure font " +
		"footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd label legend li link " +
		"main map mark meta meter nav noframes noscript object ol optgroup option output p param picture pre progress q " +
		"rp rt ruby s samp script section select small source span strike strong style sub summary sup svg table tbody " +
		"td template textarea tfoot th thead time title tr track tt u ul var video wbr")

const longestName = 10 // blockquote, figcaption

func nameSet(names string) map[string]bool {
	set := make(map[string]bool)
	for _, n := range bytes.Fields([]byte(names)) {
		set[string(n)] = true
	}
	return set
}

// isTag reports whether b, which begins with '<' and ends with '>' and has no
// '<' in between, is an HTML tag or a document type.
func isTag(b []byte) bool {
	if len(b) < 3 || len(b) > maxTag {
		return false
	}
	in := b[1 : len(b)-1]
	if in[0] == '!' {
		return len(in) >= 8 && bytes.EqualFold(in[1:8], []byte("doctype"))
	}
	if in[0] == '/' {
		in = in[1:]
	}
	var name [longestName]byte
	n := 0
	for n < len(in) && n < longestName && isNameByte(in[n]) {
		name[n] = in[n] | 0x20
		n++
	}
	if n == 0 || !htmlNames[string(name[:n])] {
		return false
	}
	// What follows a name is its end, white space before attributes, or a slash.
	return n == len(in) || in[n] == ' ' || in[n] == '\t' || in[n] == '\n' || in[n] == '\r' || in[n] == '/'
}

func isNameByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '1' && c <= '6'
}

// longestEntity is the length of "&nbsp;".
const longestEntity = 6

// entity returns the character that b stands for: "&amp;" and the few others
// that survive bad extraction most often.
func entity(b []byte) (text byte, ok bool) {
	switch string(b) {
	case "&amp;":
		return '&', true
	case "&lt;":
		return '<', true
	case "&gt;":
		return '>', true
	case "&quot;":
		return '"', true
	case "&apos;", "&#39;":
		return '\'', true
	case "&nbsp;":
		return ' ', true
	}
	return 0, false
}

// HasHTML reports whether text holds something that Clean takes for HTML: a tag,
// a comment or one of the common entities.
func HasHTML(text []byte) bool {
	for rest := text; ; {
		i := bytes.IndexByte(rest, '<')
		if i < 0 {
			break
		}
		rest = rest[i:]
		if bytes.HasPrefix(rest, []byte("<!--")) && bytes.Contains(rest[len("<!--"):min(len(rest), maxComment)], []byte("-->")) {
			return true
		}
		for j := 1; j < min(len(rest), maxTag); j++ {
			if rest[j] == '<' {
				break
			}
			if rest[j] == '>' {
				if isTag(rest[:j+1]) {
					return true
				}
				break
			}
		}
		rest = rest[1:]
	}
	for rest := text; ; {
		i := bytes.IndexByte(rest, '&')
		if i < 0 {
			return false
		}
		rest = rest[i:]
		if j := bytes.IndexByte(rest[:min(len(rest), longestEntity)], ';'); j > 0 {
			if _, ok := entity(rest[:j+1]); ok {
				return true
			}
		}
		rest = rest[1:]
	}
}
