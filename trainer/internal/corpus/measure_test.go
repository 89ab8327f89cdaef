package corpus

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
)

// measureReference measures again, from the definition.
func measureReference(text string) Measures {
	runes := []rune(text)
	m := Measures{Chars: len(runes)}
	for _, r := range runes {
		switch {
		case unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r) || unicode.IsSpace(r) && r != '\v' && r != '\f':
		case unicode.IsControl(r):
			m.Control++
		default:
			m.Symbols++
		}
	}
	windows, repeats := 0, 0
	seen := map[string]bool{}
	for i := 0; i+10 <= len(runes); i++ {
		if windows%2000 == 0 {
			clear(seen)
		}
		windows++
		w := string(runes[i : i+10])
		if seen[w] {
			repeats++
		}
		seen[w] = true
	}
	if windows > 0 {
		m.Repetition = float64(repeats) / float64(windows)
	}
	return m
}

func TestMeasureAgainstItsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	random := func(n int, alphabet string) string {
		letters := []rune(alphabet)
		var b strings.Builder
		for range n {
			b.WriteRune(letters[r.IntN(len(letters))])
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"empty":                       "",
		"short":                       "abc",
		"ten characters":              "abcdefghij",
		"symbols and controls":        "!!! \x01\x02 a+b=c €\u0085",
		"one character, long":         strings.Repeat("a", 5000),
		"period of three":             strings.Repeat("abc", 700),
		"random letters":              random(9000, "abcdefghijklmnopqrstuvwxyz "),
		"two letters repeat a lot":    random(9000, "ab"),
		"Chinese":                     strings.Repeat(random(300, "天地玄黄宇宙洪荒日月盈昃辰宿列张"), 8),
		"ASCII, then not":             random(3000, "abcdef") + random(3000, "äöü") + random(3000, "abcdef"),
		"not ASCII at the block edge": strings.Repeat("x", 1999) + "é" + strings.Repeat("x", 2009),
		"block and a bit":             random(2008, "abcd"),
		"exactly one block of runs":   random(2009, "abcd"),
		"one run more":                random(2010, "abcd"),
	} {
		t.Run(name, func(t *testing.T) {
			var m Measurer
			m.Measure([]byte("a document before it leaves no trace: aaaaaaaaaaaaaaaaaaaaaaa"))
			if got, want := m.Measure([]byte(text)), measureReference(text); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	var m Measurer
	for _, tt := range []struct {
		name, text string
		want       Fate
	}{
		{"good", "A sentence of ordinary English that says something.", Kept},
		{"short", "Too short.", TooShort},
		{"nothing", "", TooShort},
		{"symbols", "$$$ !!! *** ### $$$ ??? @@@ %%% words", TooManySymbols},
		{"repeats", strings.Repeat("buy now ", 30), TooRepetitive},
		{"twenty characters are enough", "twenty letters here.", Kept},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := DefaultFilter().Judge(m.Measure([]byte(tt.text))); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
	if got := (FilterOptions{}).Judge(m.Measure([]byte("$"))); got != Kept {
		t.Errorf("with all rules off: %v", got)
	}
	for _, f := range []FilterOptions{{MinChars: -1}, {MaxSymbolRatio: 1.1}, {MaxRepetition: -0.1}} {
		if f.Validate() == nil {
			t.Errorf("%+v is valid", f)
		}
	}
}

func BenchmarkMeasure(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	text := make([]byte, 100000)
	for i := range text {
		text[i] = "etaoin shrdlu cmfwyp"[r.IntN(20)]
	}
	var m Measurer
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		m.Measure(text)
	}
}
