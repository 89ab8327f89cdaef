package main

import (
	"bytes"
	"strings"
	"testing"
)

func text(t *testing.T, size int64, seed uint64) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, size, 30, seed); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestEqualSeedsGiveEqualBytes(t *testing.T) {
	a := text(t, 1e6, 1)
	if a != text(t, 1e6, 1) || a == text(t, 1e6, 2) {
		t.Error("the text does not follow from the seed")
	}
	if n := len(a); n < 1e6 || n > 1.1e6 {
		t.Errorf("%d bytes, want a million", n)
	}
}

func TestNoTwoDocumentsAreAlike(t *testing.T) {
	seen := map[string]bool{}
	docs := strings.Split(strings.TrimSpace(text(t, 1e6, 1)), "\n\n\n")
	for _, d := range docs {
		if seen[d] || strings.TrimSpace(d) != d {
			t.Fatalf("document %q is there twice, or badly cut", d)
		}
		seen[d] = true
	}
	if len(docs) < 500 {
		t.Errorf("%d documents", len(docs))
	}
}
