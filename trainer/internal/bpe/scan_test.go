package bpe

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestClassesAgreeWithAnotherImplementation(t *testing.T) {
	var golden struct {
		Unicode string
		Ranges  [][3]any
	}
	readGolden(t, "unicode-classes.json", &golden)
	if len(golden.Ranges) < 1000 {
		t.Fatalf("golden has %d ranges, want at least 1000", len(golden.Ranges))
	}
	kinds := map[string]class{"L": letter, "N": number, "S": space, "O": other}
	for _, r := range golden.Ranges {
		want := kinds[r[2].(string)]
		for point := rune(r[0].(float64)); point <= rune(r[1].(float64)); point++ {
			if got := runeClass(point); got != want {
				t.Fatalf("%U has class %d, want %d (Unicode %s)", point, got, want, golden.Unicode)
			}
		}
	}
}

// fragments are what random texts are put together from: all that the pattern tells apart.
var fragments = strings.Split("s|t|re|ve|m|ll|d|'|'|a|B|é|世|1|½|٣| | |  |\t|\n|\r\n|\u00a0|\u3000|\u0085|.|!!|😀|\u200d|\u0301|\u200b|\xff|\x80|\xe2\x82|\xed\xa0\x80|\x00|'s|'LL", "|")

func randomText(rand *rand.Rand, most int) []byte {
	var text []byte
	for range rand.IntN(most + 1) {
		text = append(text, fragments[rand.IntN(len(fragments))]...)
	}
	return text
}

func TestWordsAgreeWithRegularExpression(t *testing.T) {
	rand := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		text := randomText(rand, 12)
		want := naiveWords(text)
		var got [][]byte
		for i := 0; i < len(text); {
			end := wordEnd(text, i)
			got = append(got, text[i:end])
			i = end
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("%q: words %q, want %q", text, got, want)
		}
	}
}

func TestBytesAreSpelledAsGPT2Does(t *testing.T) {
	for _, c := range []struct {
		b    byte
		want string
	}{
		{' ', "Ġ"}, {'\n', "Ċ"}, {'\t', "ĉ"}, {0, "Ā"}, {'!', "!"}, {'~', "~"}, {0x7f, "ġ"},
		{0xa0, "ł"}, {0xa1, "¡"}, {0xac, "¬"}, {0xad, "Ń"}, {0xae, "®"}, {0xff, "ÿ"},
	} {
		if got := spell([]byte{c.b}); got != c.want {
			t.Errorf("byte %#02x is spelled %q, want %q", c.b, got, c.want)
		}
	}
	for b := range 256 {
		back, _, ok := unspell(spell([]byte{byte(b)}))
		if !ok || len(back) != 1 || back[0] != byte(b) {
			t.Errorf("byte %#02x comes back as %v", b, back)
		}
	}
	if byteOrder[0] != '!' || byteOrder[187] != 0xff || byteOrder[188] != 0 || byteOrder[255] != 0xad {
		t.Errorf("ids 0, 187, 188, 255 are bytes %#x, %#x, %#x, %#x", byteOrder[0], byteOrder[187], byteOrder[188], byteOrder[255])
	}
	for _, odd := range []string{" ", "\n", "\u00ad", "\u0144", "世", "\ufffd"} {
		if _, _, ok := unspell("a" + odd); ok {
			t.Errorf("%q stands for a byte", odd)
		}
	}
}
