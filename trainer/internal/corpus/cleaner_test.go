package corpus

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestClean(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain text stays", "Hello, world.\nSecond line.", "Hello, world.\nSecond line."},
		{"composes", "e\u0301", "é"},
		{"tags", `<p class="x">Hello <b>big</b> world</p>`, "Hello big world"},
		{"upper case and self-closing", "a<BR/>b<br />c", "abc"},
		{"doctype", "<!DOCTYPE html>x", "x"},
		{"comment", "a<!-- <b>hidden</b> -->b", "ab"},
		{"comment in a comment", "a<!-- <!-->b<!--->c", "ab<!--->c"},
		{"not tags", "a < b, List<int>, <nil>, <|endoftext|>, x<y>z", "a < b, List<int>, <nil>, <|endoftext|>, x<y>z"},
		{"tag made by taking out a tag", "<<b>b>x", "x"},
		{"entities", "a &amp; b &lt;i&gt; &quot;c&quot;&nbsp;d", `a & b "c" d`},
		{"unknown entity", "&foo; & &;", "&foo; & &;"},
		{"control characters", "a\x00b\x07c\x7f\u0085d", "abcd"},
		{"zero width", "\ufeffa\u200bb", "ab"},
		{"joiners stay", "a\u200db", "a\u200db"},
		{"line ends", "a\r\nb\rc", "a\nb\nc"},
		{"white space", "  a \t b  \n  c\u00a0\u3000d\n\n\n\ne \n", "a b\nc d\n\ne"},
		{"wiki marker", "a-{中文}-b", "a中文b"},
		{"wiki variants", "-{zh-hans:计算机; zh-hant:電腦;}-", "计算机"},
		{"wiki variants with title", "-{T|zh-cn:a;zh-tw:b}-", "a"},
		{"not a wiki marker", "a -{ b", "a -{ b"},
		{"invalid bytes are one replacement for a run", "a\xff\xfe\xfdb\xc3", "a\uFFFDb\uFFFD"},
		{"surrogate half", "a\xed\xa0\x80b", "a\uFFFDb"},
		{"nothing", "", ""},
		{"only white space", " \n\t ", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(NewCleaner(DefaultClean()).Clean([]byte(tt.in))); got != tt.want {
				t.Errorf("Clean(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

// What is longer than a tag, a comment or a marker can be is text.
func TestCleanKeepsWhatIsTooLong(t *testing.T) {
	for name, tt := range map[string]struct {
		open, close string
		limit       int
	}{"tag": {"<b ", ">", maxTag}, "comment": {"<!--", "-->", maxComment}, "marker": {"-{", "}-", maxWiki}} {
		t.Run(name, func(t *testing.T) {
			fit := tt.open + strings.Repeat("x", tt.limit-len(tt.open)-len(tt.close)) + tt.close
			if got := NewCleaner(DefaultClean()).Clean([]byte(fit)); strings.Contains(string(got), tt.open) {
				t.Errorf("%d bytes are kept", len(fit))
			}
			long := tt.open + "x" + strings.TrimPrefix(fit, tt.open)
			if got := NewCleaner(DefaultClean()).Clean([]byte(long)); string(got) != long {
				t.Errorf("%d bytes are taken out", len(long))
			}
		})
	}
}

func TestCleanStepsCanBeOff(t *testing.T) {
	in := "<b>a</b>  -{x}-\x00 e\u0301 \xff"
	for _, tt := range []struct {
		name string
		opts CleanOptions
		want string
	}{
		{"none", CleanOptions{}, "<b>a</b>  -{x}-\x00 e\u0301 \uFFFD"},
		{"html", CleanOptions{HTML: true}, "a  -{x}-\x00 e\u0301 \uFFFD"},
		{"wiki", CleanOptions{Wiki: true}, "<b>a</b>  x\x00 e\u0301 \uFFFD"},
		{"control", CleanOptions{Control: true}, "<b>a</b>  -{x}- e\u0301 \uFFFD"},
		{"space", CleanOptions{Space: true}, "<b>a</b> -{x}-\x00 e\u0301 \uFFFD"},
		{"nfc", CleanOptions{NFC: true}, "<b>a</b>  -{x}-\x00 é \uFFFD"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(NewCleaner(tt.opts).Clean([]byte(in))); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestCleanCounts(t *testing.T) {
	c := NewCleaner(DefaultClean())
	c.Clean([]byte("<b>a</b> &amp; -{x}- \x00\x01 \xff\xff y \xfe e\u0301"))
	c.Clean([]byte("nothing to do"))
	want := CleanStats{InvalidRuns: 2, ControlChars: 2, HTMLTags: 2, HTMLEntities: 1, WikiMarkers: 1, NotNormalized: 1}
	if c.Stats() != want {
		t.Errorf("%+v, want %+v", c.Stats(), want)
	}
	var sum CleanStats
	sum.Add(want)
	sum.Add(want)
	if sum.ControlChars != 4 || sum.NotNormalized != 2 || sum.InvalidRuns != 4 || sum.HTMLTags != 4 || sum.HTMLEntities != 2 || sum.WikiMarkers != 2 {
		t.Errorf("sum %+v", sum)
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{
		"<<b>b>", "-{-{a}-}-", "&amp;lt;b&gt;", "<\u0338b>", "a\r\n\r\r\n <b> \n\n", "\xff<p\xff>", "<!--<!---->-->", "<!--<!-->", "-{a:&lt;}-b>",
		"<b \u037e>", "&lt\u037e", "e-{\u0301}-", "&nb<i>sp;", "<a\u00a0>", "-{\u0301}-",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c := NewCleaner(DefaultClean())
		once := string(c.Clean(text))
		if twice := string(c.Clean([]byte(once))); twice != once {
			t.Errorf("%q cleans to %q, and that to %q", text, once, twice)
		}
		switch {
		case !utf8.ValidString(once):
			t.Errorf("%q is no UTF-8", once)
		case !norm.NFC.IsNormalString(once):
			t.Errorf("%q is not in NFC", once)
		case HasHTML([]byte(once)):
			t.Errorf("HTML is left in %q", once)
		case strings.ContainsFunc(once, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }):
			t.Errorf("a control character is left in %q", once)
		case strings.Contains(once, "  ") || strings.Contains(once, "\n\n\n") || strings.TrimSpace(once) != once:
			t.Errorf("white space is left in %q", once)
		}
	})
}

// A nested structure must not make cleaning slower than its length.
func TestCleanIsLinear(t *testing.T) {
	for name, in := range map[string]string{
		"tags":     strings.Repeat("<", 1<<18) + strings.Repeat("b>", 1<<18),
		"markers":  strings.Repeat("-{", 1<<18) + strings.Repeat("}-", 1<<18),
		"entities": strings.Repeat("&amp;", 1<<17),
		"comments": strings.Repeat("<!--", 1<<17) + strings.Repeat("-->", 1<<17),
	} {
		t.Run(name, func(t *testing.T) {
			out := NewCleaner(DefaultClean()).Clean([]byte(in))
			if HasHTML(out) {
				t.Error("HTML is left")
			}
		})
	}
}

func BenchmarkClean(b *testing.B) {
	text := []byte(strings.Repeat("The quick brown fox, 42 years old, jumps over the <b>lazy</b> dog.\n", 1000))
	c := NewCleaner(DefaultClean())
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c.Clean(text)
	}
}
