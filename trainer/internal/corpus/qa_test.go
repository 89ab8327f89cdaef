package corpus

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestParseQA(t *testing.T) {
	for _, tt := range []struct{ name, in, text, prompt string }{
		{"plain", "How far is the sun? | 150 million kilometers away.", "How far is the sun? | 150 million kilometers away.", "How far is the sun? |"},
		{"no space", "a|b", "a | b", "a |"},
		{"much space", "\n a  |\tb \n", "a | b", "a |"},
		{"a bar in the answer", "a | b | c", "a | b | c", "a |"},
		{"an answer of two lines", "a | b\nc", "a | b\nc", "a |"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, prompt, err := ParseQA([]byte(tt.in))
			if err != nil || string(text) != tt.text || string(text[:prompt]) != tt.prompt {
				t.Errorf("%q, %d, %v: want %q and %q", text, prompt, err, tt.text, tt.prompt)
			}
		})
	}
	for name, in := range map[string]string{
		"no bar": "what?", "no question": " | a", "no answer": "q | ", "empty": "",
		"record without its end": "a | b\nc | d",
	} {
		t.Run(name, func(t *testing.T) {
			if text, _, err := ParseQA([]byte(in)); !errors.Is(err, ErrQA) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q, %v: want one line with %v", text, err, ErrQA)
			}
		})
	}
}

func FuzzParseQA(f *testing.F) {
	f.Add([]byte("a | b"))
	f.Add([]byte("|"))
	f.Add([]byte("q|\u00a0|\n|"))
	f.Fuzz(func(t *testing.T, in []byte) {
		text, prompt, err := ParseQA(in)
		if err != nil {
			return
		}
		if !bytes.HasSuffix(text[:prompt], []byte(" |")) || prompt >= len(text) {
			t.Fatalf("%q has prompt %q", text, text[:prompt])
		}
		again, prompt2, err := ParseQA(text)
		if err != nil || prompt2 != prompt || !bytes.Equal(again, text) {
			t.Errorf("%q reads back as %q, %d, %v", text, again, prompt2, err)
		}
	})
}
