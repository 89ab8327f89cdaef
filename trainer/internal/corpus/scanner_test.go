package corpus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

func mustSeparator(t testing.TB, name string) Separator {
	t.Helper()
	s, err := ParseSeparator(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func scanAll(t testing.TB, r io.Reader, sep Separator, max int) ([]string, *Scanner) {
	t.Helper()
	s := NewScanner(r, sep, max)
	var docs []string
	for {
		doc, err := s.Next()
		if errors.Is(err, io.EOF) {
			return docs, s
		}
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(doc))
	}
}

func TestScannerSeparators(t *testing.T) {
	for _, tt := range []struct{ name, sep, in, want string }{
		{"three newlines", "blank-lines:3", "a\n\nb\n\n\nc\n", "a\n\nb|c"},
		{"more than three newlines are one separator", "blank-lines:3", "a\n\n\n\n\n\n\n\nb", "a|b"},
		{"carriage returns", "blank-lines:3", "a\r\n\r\n\r\nb\r\n", "a|b"},
		{"mixed line ends", "blank-lines:3", "a\n\r\n\nb", "a|b"},
		{"a lone carriage return is no newline", "blank-lines:2", "a\n\rb", "a\n\rb"},
		{"blank line", "blank-line", "a\n\nb\nc\n\n\n\nd", "a|b\nc|d"},
		{"separators at both ends", "blank-line", "\n\n\na\n\n\n", "a"},
		{"white space alone is no document", "blank-line", "a\n\n \t \n\nb", "a|b"},
		{"line", "line", "a\r\nb\n\nc", "a|b|c"},
		{"file", "file", "\na\n\n\nb\n", "\na\n\n\nb\n"},
		{"literal", "literal:<|endoftext|>", "a<|endoftext|>b<|endo<|endoftext|>\n", "a|b<|endo"},
		{"literal of newlines", "literal:\n\n\n", "a\n\n\nb", "a|b"},
		{"nothing", "blank-line", "", ""},
		{"only newlines", "blank-line", "\n\n\n\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sep := mustSeparator(t, tt.sep)
			for name, r := range map[string]io.Reader{
				"whole":         strings.NewReader(tt.in),
				"byte by byte":  iotest.OneByteReader(strings.NewReader(tt.in)),
				"data with EOF": iotest.DataErrReader(strings.NewReader(tt.in)),
			} {
				got, _ := scanAll(t, r, sep, 1<<20)
				if s := strings.Join(got, "|"); s != tt.want {
					t.Errorf("%s: %q, want %q", name, s, tt.want)
				}
			}
		})
	}
}

func TestParseSeparator(t *testing.T) {
	for _, name := range []string{"blank-lines:2", "blank-lines:3", "line", "file", "jsonl", "literal:<|endoftext|>", "literal:a:b"} {
		if got := mustSeparator(t, name).String(); got != name {
			t.Errorf("String of %q is %q", name, got)
		}
	}
	if mustSeparator(t, "blank-line") != mustSeparator(t, "blank-lines:2") {
		t.Error("blank-line is not blank-lines:2")
	}
	for _, name := range []string{"", "blank-lines", "blank-lines:1", "blank-lines:x", "blank-lines:101", "line:2", "file:", "literal:", "literal", "literal:\xff", "paragraph"} {
		if s, err := ParseSeparator(name); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("ParseSeparator(%q) = %v, %v: want an error that names it", name, s, err)
		}
	}
}

// splitReference is the splitter again, from regular expressions on the whole text.
func splitReference(text string, sep Separator) []string {
	var parts []string
	switch sep.kind {
	case kindNewlines:
		for _, p := range regexp.MustCompile(fmt.Sprintf(`(?:\r?\n){%d,}`, sep.newlines)).Split(text, -1) {
			parts = append(parts, strings.Trim(p, "\r\n"))
		}
	case kindLine:
		for p := range strings.SplitSeq(text, "\n") {
			parts = append(parts, strings.TrimSuffix(p, "\r"))
		}
	case kindLiteral:
		parts = strings.Split(text, sep.literal)
	default:
		parts = []string{text}
	}
	return slices.DeleteFunc(parts, func(p string) bool { return strings.TrimSpace(p) == "" })
}

func FuzzScanner(f *testing.F) {
	f.Add("a\n\n\nb\r\n\r\n\r\nc", uint8(0), uint8(3))
	f.Add("a<x>b<<x>x>c", uint8(4), uint8(1))
	f.Add("日本\n語\n\n\n\n", uint8(2), uint8(2))
	seps := []string{"blank-lines:3", "blank-line", "line", "file", "literal:<x>"}
	f.Fuzz(func(t *testing.T, text string, which, size uint8) {
		sep := mustSeparator(t, seps[int(which)%len(seps)])
		want := splitReference(text, sep)
		got, _ := scanAll(t, &stutter{r: strings.NewReader(text), n: int(size)%7 + 1}, sep, 1<<20)
		if !slices.Equal(got, want) {
			t.Errorf("%s of %q: %q, want %q", sep, text, got, want)
		}
	})
}

// stutter reads n bytes at a time.
type stutter struct {
	r io.Reader
	n int
}

func (s *stutter) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), s.n)]) }

func TestScannerCutsLongDocumentsAtCharacters(t *testing.T) {
	text := strings.Repeat("日本語 ", 100) + "\n\n\nshort\n\n\n" + strings.Repeat("é", 51)
	sep := mustSeparator(t, "blank-lines:3")
	const most = 98 // in the middle of a character
	want, _ := scanAll(t, strings.NewReader(text), sep, most)
	for _, doc := range want {
		if len(doc) > most || !utf8.ValidString(doc) {
			t.Errorf("%d bytes, valid %v: %q", len(doc), utf8.ValidString(doc), doc)
		}
	}
	got, s := scanAll(t, iotest.OneByteReader(strings.NewReader(text)), sep, most)
	if !slices.Equal(got, want) {
		t.Error("cuts depend on how the stream is read")
	}
	if all := strings.Join(got, ""); all != strings.ReplaceAll(text, "\n\n\n", "") {
		t.Errorf("cutting lost text: %q", all)
	}
	if want := int64(len(got) - 3); s.Cut() != want || want != 11 {
		t.Errorf("%d cuts, want %d", s.Cut(), want)
	}
}

func TestScannerCutsBytesThatAreNoText(t *testing.T) {
	got, _ := scanAll(t, bytes.NewReader(bytes.Repeat([]byte{0x80}, 1000)), mustSeparator(t, "file"), 64)
	if all := strings.Join(got, ""); len(all) != 1000 {
		t.Errorf("%d bytes came out, want 1000", len(all))
	}
}

func TestScannerReadErrors(t *testing.T) {
	broken := errors.New("disk on fire")
	s := NewScanner(io.MultiReader(strings.NewReader("a\n\nb"), iotest.ErrReader(broken)), mustSeparator(t, "blank-line"), 100)
	if doc, err := s.Next(); err != nil || string(doc) != "a" {
		t.Fatalf("%q, %v", doc, err)
	}
	if _, err := s.Next(); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	if _, err := NewScanner(idle{}, mustSeparator(t, "line"), 100).Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("error %v, want %v", err, io.ErrNoProgress)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// endless makes a corpus of n bytes up as it is read.
type endless struct {
	n    int64
	rand *rand.Rand
	line string
}

func (e *endless) Read(p []byte) (int, error) {
	if e.n <= 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), e.n)]
	n := 0
	for n < len(p) {
		if len(e.line) == 0 {
			e.line = "the quick brown fox jumps over the lazy dog\n"
			if e.rand.IntN(20) == 0 {
				e.line = "\n\n\n"
			}
		}
		k := copy(p[n:], e.line)
		e.line = e.line[k:]
		n += k
	}
	e.n -= int64(n)
	return n, nil
}

// A corpus of any size needs the memory of its longest document.
func TestScannerMemory(t *testing.T) {
	peak := func(size int64) uint64 {
		s := NewScanner(&endless{n: size, rand: rand.New(rand.NewPCG(1, 2))}, mustSeparator(t, DefaultSeparator), DefaultMaxDocBytes)
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		before, most := m.HeapAlloc, uint64(0)
		for n := 0; ; n++ {
			_, err := s.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if n%10000 == 0 {
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc-min(before, m.HeapAlloc))
			}
		}
		return most
	}
	small, large := peak(2<<20), peak(200<<20)
	t.Logf("peak heap: %d KiB for 2 MiB, %d KiB for 200 MiB", small>>10, large>>10)
	if limit := small + 4<<20; large > limit {
		t.Errorf("200 MiB of text needed %d bytes of heap, 2 MiB %d", large, small)
	}
}
