package bpe

import (
	"bytes"
	"slices"
	"testing"
)

func FuzzRoundTrip(f *testing.F) {
	tokenizer := gpt2(f)
	naive := naiveEncoder(tokenizer)
	for _, c := range hardList(f).Cases {
		f.Add(c.text(f))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ids := tokenizer.AppendEncode(nil, text)
		if got := tokenizer.Decode(ids); !bytes.Equal(got, text) {
			t.Errorf("%q came back as %q", text, got)
		}
		if want := naive(text); !slices.Equal(ids, want) {
			t.Errorf("%q: ids %v, want %v", text, ids, want)
		}
		special := tokenizer.EncodeWithSpecial(string(text))
		if got := tokenizer.Decode(special); !bytes.Equal(got, text) {
			t.Errorf("%q with special tokens came back as %q", text, got)
		}
	})
}

// checkAccepted saves and loads a tokenizer that a parser accepted, and encodes with it.
func checkAccepted(t *testing.T, tokenizer *Tokenizer) {
	t.Helper()
	var out bytes.Buffer
	if err := tokenizer.SaveTokenizerJSON(&out); err != nil {
		t.Fatal(err)
	}
	again, err := Parse(out.Bytes())
	if err != nil {
		t.Fatalf("own file is refused: %v", err)
	}
	if again.Digest() != tokenizer.Digest() {
		t.Error("digest changed in saving and loading")
	}
	for _, text := range fragments {
		if got := string(tokenizer.Decode(tokenizer.Encode(text))); got != text {
			t.Errorf("%q came back as %q", text, got)
		}
	}
}

func FuzzTokenizerJSON(f *testing.F) {
	good := smallJSON()
	f.Add([]byte(good))
	for _, c := range badFiles {
		f.Add(bytes.Replace([]byte(good), []byte(c.old), []byte(c.new), 1))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tokenizer, err := Parse(data)
		if err != nil {
			return
		}
		checkAccepted(t, tokenizer)
	})
}

func FuzzMergesFile(f *testing.F) {
	for _, text := range []string{"", "#version: 0.2\n", "a b\nab c\n", "a b\r\nĠ a\r\n", "a a\naa aa\naaaa a", "# v\n", "\n\n", "a  b", "\xff a"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		merges, err := parseMerges(data)
		if err != nil {
			return
		}
		// The vocabulary that makes as many merges right as can be.
		vocab := make(map[string]int32)
		for _, b := range byteOrder {
			vocab[spell([]byte{b})] = int32(len(vocab))
		}
		for _, m := range merges {
			if _, ok := vocab[m[0]+m[1]]; !ok {
				vocab[m[0]+m[1]] = int32(len(vocab))
			}
		}
		tokenizer, err := assembleUnmarked(vocab, merges)
		if err != nil {
			return
		}
		checkAccepted(t, tokenizer)
		var out bytes.Buffer
		if err := tokenizer.SaveMerges(&out); err != nil {
			t.Fatal(err)
		}
		again, err := parseMerges(out.Bytes())
		if err != nil || !slices.Equal(again, merges) {
			t.Errorf("merges %q became %q (%v)", merges, again, err)
		}
	})
}

func FuzzVocabFile(f *testing.F) {
	f.Add([]byte("{" + byteVocab() + `"<|endoftext|>":256}`))
	f.Add([]byte(`{"a":0}`))
	f.Add([]byte(`{"a":0,"a":1}`))
	f.Add([]byte(`{"<|a|>":0`))
	f.Fuzz(func(t *testing.T, data []byte) {
		vocab, err := parseVocab(data)
		if err != nil {
			return
		}
		tokenizer, err := assembleUnmarked(vocab, nil)
		if err != nil {
			return
		}
		checkAccepted(t, tokenizer)
	})
}
