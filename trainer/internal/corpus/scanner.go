package corpus

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// scanBuffer is what a Scanner reads ahead; its buffer grows to the longest
// document only.
const scanBuffer = 256 << 10

// Scanner cuts a stream into documents. Documents of white space alone are
// skipped. Its memory is bounded by the longest document allowed.
type Scanner struct {
	r   io.Reader
	sep Separator
	max int

	buf        []byte
	start, end int // the unread part of buf
	scan       int // no separator begins in buf[start:scan]
	eof        bool
	cut        int64

	// Of the document returned last: it was cut at its end; it is the rest of
	// one that was.
	partial, continued bool
	unended            bool // the stream ended it, not a separator
}

// NewScanner returns a scanner whose documents have at most maxDoc bytes. A
// longer one is cut at the last UTF-8 boundary before that, and what follows
// goes on as a document of its own.
func NewScanner(r io.Reader, sep Separator, maxDoc int) *Scanner {
	return &Scanner{r: r, sep: sep, max: max(maxDoc, utf8.UTFMax)}
}

// Cut returns how many times a document was cut for being too long.
func (s *Scanner) Cut() int64 { return s.cut }

// Next returns the next document, valid until the next call, or io.EOF.
func (s *Scanner) Next() ([]byte, error) {
	for {
		s.continued = s.partial
		s.partial = false
		doc, ok, err := s.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, io.EOF
		}
		if doc = s.sep.trim(doc); len(bytes.TrimSpace(doc)) > 0 {
			return doc, nil
		}
	}
}

func (s *Scanner) next() (doc []byte, ok bool, err error) {
	for {
		at, width, again := s.sep.find(s.buf[:s.end], s.scan, s.eof)
		if at >= 0 && at-s.start <= s.max {
			doc = s.buf[s.start:at]
			s.start, s.scan = at+width, at+width
			return doc, true, nil
		}
		clear := again // up to here there is no separator
		if at >= 0 {
			clear = at
		}
		s.scan = clear
		switch {
		case clear-s.start > s.max:
			cut := s.start + boundary(s.buf[s.start:s.end], s.max)
			doc = s.buf[s.start:cut]
			s.start = cut
			s.cut++
			s.partial = true
			return doc, true, nil
		case s.eof && s.start == s.end:
			return nil, false, nil
		case s.eof:
			doc = s.buf[s.start:s.end]
			s.start, s.scan = s.end, s.end
			s.unended = true
			return doc, true, nil
		}
		if err := s.fill(); err != nil {
			return nil, false, err
		}
	}
}

// fill reads more, moving or growing the buffer when it is full.
func (s *Scanner) fill() error {
	if s.end == len(s.buf) {
		if s.start > len(s.buf)/2 || (s.start > 0 && len(s.buf) >= s.max+scanBuffer) {
			copy(s.buf, s.buf[s.start:s.end])
		} else {
			grown := make([]byte, max(scanBuffer, 2*len(s.buf)))
			copy(grown, s.buf[s.start:s.end])
			s.buf = grown
		}
		s.end -= s.start
		s.scan -= s.start
		s.start = 0
	}
	for range 100 {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		if err == io.EOF {
			s.eof = true
			return nil
		}
		if err != nil {
			return err
		}
		if n > 0 {
			return nil
		}
	}
	return io.ErrNoProgress
}

// boundary returns the last start of a character in b at or before n, or n where
// the bytes around it are no UTF-8. It is never 0, for n >= 4.
func boundary(b []byte, n int) int {
	if n >= len(b) {
		return len(b)
	}
	for i := n; i > n-utf8.UTFMax && i > 0; i-- {
		if utf8.RuneStart(b[i]) {
			return i
		}
	}
	return n
}
