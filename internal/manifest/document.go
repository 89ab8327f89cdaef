package manifest

import "bytes"

// split cuts a YAML stream at its document markers, "---" and "...". YAML ends a
// document there even within a block of text, so that looking at line starts is
// enough. What has only blank lines and comments is no document.
func split(data []byte) [][]byte {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var docs [][]byte
	var text []byte
	for line := range bytes.Lines(data) {
		rest, marker := cutMarker(line)
		if !marker {
			text = append(text, line...)
			continue
		}
		// YAML libraries ignore what follows "..." silently; here it is a document.
		if !blank(text) {
			docs = append(docs, text)
		}
		text = append([]byte(nil), rest...)
	}
	if !blank(text) {
		docs = append(docs, text)
	}
	return docs
}

// cutMarker returns what follows a document marker in its line.
func cutMarker(line []byte) ([]byte, bool) {
	for _, m := range []string{"---", "..."} {
		if rest, ok := bytes.CutPrefix(line, []byte(m)); ok && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n")) {
			return rest, true
		}
	}
	return nil, false
}

func blank(text []byte) bool {
	for line := range bytes.Lines(text) {
		if t := bytes.TrimSpace(line); len(t) > 0 && t[0] != '#' {
			return false
		}
	}
	return true
}
