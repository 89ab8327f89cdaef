package generate

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestGenerate(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		opts   Options
		pieces []string // each text emitted; nil: only the whole counts
		text   string
		reason Reason
		tokens int
	}{
		"ends at the end of text": {
			script: "abc", opts: Options{MaxTokens: 9}, pieces: []string{"a", "b", "c"}, text: "abc", reason: ReasonStop, tokens: 3},
		"ends at the limit": {
			script: "abc", opts: Options{MaxTokens: 2}, pieces: []string{"a", "b"}, text: "ab", reason: ReasonLength, tokens: 2},
		"a rune is never cut": {
			script: "é€🚀!", opts: Options{MaxTokens: 99}, pieces: []string{"é", "€", "🚀", "!"}, text: "é€🚀!", reason: ReasonStop, tokens: 10},
		"half a rune at the limit becomes a replacement": {
			script: "a€", opts: Options{MaxTokens: 3}, text: "a��", reason: ReasonLength, tokens: 3},
		"a byte that is no rune becomes a replacement at once": {
			script: "a\xffb", opts: Options{MaxTokens: 9}, pieces: []string{"a", "�", "b"}, text: "a�b", reason: ReasonStop, tokens: 3},
		"a stop string is not shown": {
			script: "one\n\ntwo", opts: Options{MaxTokens: 99, Stop: []string{"\n\n"}}, pieces: []string{"o", "n", "e"}, text: "one", reason: ReasonStop, tokens: 5},
		"what looked like a stop string is shown later": {
			script: "a\nb", opts: Options{MaxTokens: 99, Stop: []string{"\n\n"}}, pieces: []string{"a", "\nb"}, text: "a\nb", reason: ReasonStop, tokens: 3},
		"the earliest of several stop strings counts": {
			script: "xxENDyySTOP", opts: Options{MaxTokens: 99, Stop: []string{"STOP", "END"}}, text: "xx", reason: ReasonStop, tokens: 5},
		"the start of a stop string at the end is shown": {
			script: "aST", opts: Options{MaxTokens: 99, Stop: []string{"STOP"}}, text: "aST", reason: ReasonStop, tokens: 3},
	} {
		t.Run(name, func(t *testing.T) {
			g := New(&scriptDecoder{script: c.script, block: 64}, bytesTokenizer{}, 64)
			var pieces []string
			res, err := g.Generate(t.Context(), []int32{'?'}, c.opts, func(s string) error {
				pieces = append(pieces, s)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(pieces, ""); got != c.text {
				t.Errorf("text %q, want %q", got, c.text)
			}
			if c.pieces != nil && !slices.Equal(pieces, c.pieces) {
				t.Errorf("pieces %q, want %q", pieces, c.pieces)
			}
			if res.Reason != c.reason || len(res.Tokens) != c.tokens || res.PromptTokens != 1 {
				t.Errorf("reason %s, %d tokens, prompt %d; want %s, %d, 1", res.Reason, len(res.Tokens), res.PromptTokens, c.reason, c.tokens)
			}
		})
	}
}

func TestWindowSlidesWhenTheBlockIsFull(t *testing.T) {
	dec := &scriptDecoder{script: strings.Repeat("0123456789", 3), block: 8}
	var text strings.Builder
	_, err := New(dec, bytesTokenizer{}, 8).Generate(t.Context(), bytesTokenizer{}.Encode("abcdef"), Options{MaxTokens: 20},
		func(s string) error { text.WriteString(s); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if got := text.String(); got != "01234567890123456789" {
		t.Errorf("text %q", got)
	}
	// Six tokens of prompt and two of text fill the block; the third makes it slide.
	want := []string{"abcdef", "f012", "4567"}
	for i, w := range want {
		if got := string(bytesTokenizer{}.Decode(dec.resets[i])); got != w {
			t.Errorf("fed %q after reset %d, want %q", got, i, w)
		}
	}
}

func TestLongPromptCountsWithItsEnd(t *testing.T) {
	dec := &scriptDecoder{script: "x", block: 4}
	if _, err := New(dec, bytesTokenizer{}, 4).Generate(t.Context(), bytesTokenizer{}.Encode("abcdefg"), Options{MaxTokens: 1}, nil); err != nil {
		t.Fatal(err)
	}
	if got := string(bytesTokenizer{}.Decode(dec.resets[0])); got != "defg" {
		t.Errorf("fed %q, want the last 4 tokens", got)
	}
}

func TestEmptyPromptBeginsAfterAnEndOfText(t *testing.T) {
	dec := &scriptDecoder{script: "x", block: 4}
	if _, err := New(dec, bytesTokenizer{}, 4).Generate(t.Context(), nil, Options{MaxTokens: 1}, nil); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(dec.resets[0], []int32{256}) {
		t.Errorf("fed %v, want the end of text", dec.resets[0])
	}
	_, err := New(dec, bytesTokenizer{noEOT: true}, 4).Generate(t.Context(), nil, Options{MaxTokens: 1}, nil)
	if !errors.Is(err, ErrOptions) {
		t.Errorf("without an end of text: %v, want ErrOptions", err)
	}
}

func TestCancelEndsTheText(t *testing.T) {
	cause := errors.New("client went away")
	ctx, cancel := context.WithCancelCause(t.Context())
	res, err := New(&scriptDecoder{script: "abcdef", block: 64}, bytesTokenizer{}, 64).
		Generate(ctx, []int32{'?'}, Options{MaxTokens: 9}, func(s string) error {
			if s == "c" {
				cancel(cause)
			}
			return nil
		})
	if !errors.Is(err, cause) || len(res.Tokens) != 3 {
		t.Errorf("%d tokens and %v, want 3 and the cause", len(res.Tokens), err)
	}
}

func TestErrorOfEmitEndsTheText(t *testing.T) {
	broken := errors.New("broken pipe")
	res, err := New(&scriptDecoder{script: "abc", block: 64}, bytesTokenizer{}, 64).
		Generate(t.Context(), []int32{'?'}, Options{MaxTokens: 9}, func(string) error { return broken })
	if !errors.Is(err, broken) || len(res.Tokens) != 1 {
		t.Errorf("%d tokens and %v, want 1 and the error", len(res.Tokens), err)
	}
}

func TestLogitsOfADivergedModelAreAnError(t *testing.T) {
	for _, temp := range []float64{0, 1} {
		dec := &fixedDecoder{logits: []float32{1, float32(math.NaN()), 2}}
		if _, err := New(dec, bytesTokenizer{}, 8).Generate(t.Context(), []int32{1}, Options{MaxTokens: 1, Temperature: temp}, nil); !errors.Is(err, ErrLogits) {
			t.Errorf("temperature %v: %v, want ErrLogits", temp, err)
		}
	}
}

// FuzzTextStream: however bytes are cut into tokens, the text is that of Go's
// own conversion, and each piece is valid.
func FuzzTextStream(f *testing.F) {
	f.Add([]byte("é€🚀"), uint8(1))
	f.Add([]byte("a\xff\xe2\x82b\xf0\x9f\x9a"), uint8(2))
	f.Add([]byte("\xed\xa0\x80 surrogate"), uint8(3))
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		var ts textStream
		var got strings.Builder
		for piece := range slices.Chunk(b, int(n%7)+1) {
			s := ts.write(piece)
			if !utf8.ValidString(s) {
				t.Fatalf("invalid piece %q", s)
			}
			got.WriteString(s)
		}
		got.WriteString(ts.end())
		if want := string([]rune(string(b))); got.String() != want {
			t.Errorf("got %q, want %q", got.String(), want)
		}
	})
}
