package stage

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxReasons is how many bytes of a result the reasons of a gate may take: the
// reports have all of them, results only have room for a glance.
const maxReasons = 600

// glance joins sentences into one line of at most limit bytes: as many whole ones as
// fit, and how many are missing. The first is cut when it alone is too long.
func glance(sentences []string, limit int) string {
	whole := make([]string, len(sentences))
	for i, s := range sentences {
		whole[i] = strings.Join(strings.Fields(s), " ")
	}
	if all := strings.Join(whole, "; "); len(all) <= limit {
		return all
	}
	line := ""
	for i, s := range whole {
		rest := ""
		if left := len(sentences) - i - 1; left > 0 {
			rest = fmt.Sprintf("; and %d more", left)
		}
		if i > 0 {
			s = line + "; " + s
		}
		if len(s)+len(rest) > limit {
			if i == 0 {
				return shorten(s, limit-len(rest)) + rest
			}
			return line + fmt.Sprintf("; and %d more", len(sentences)-i)
		}
		line = s
	}
	return line
}

// shorten cuts text to a number of bytes, between characters.
func shorten(s string, limit int) string {
	const mark = "…"
	if len(s) <= limit {
		return s
	}
	s = s[:max(limit-len(mark), 0)]
	for len(s) > 0 && !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + mark
}
