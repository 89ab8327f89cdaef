package bpe

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// randomTokenizer has merges in no sensible order over a small alphabet, with results
// that several pairs make: harder than any trained vocabulary.
func randomTokenizer(t testing.TB, rand *rand.Rand, merges int) *Tokenizer {
	t.Helper()
	var tokens [][]byte
	known := make(map[string]int32)
	for id, b := range byteOrder {
		tokens = append(tokens, []byte{b})
		known[string([]byte{b})] = int32(id)
	}
	pick := func() int32 {
		if n := len(tokens) - 256; n > 0 && rand.IntN(2) == 0 {
			return int32(256 + rand.IntN(n))
		}
		return known[string("abc"[rand.IntN(3)])]
	}
	seen := make(map[[2]int32]bool)
	var list []merge
	for range merges {
		left, right := pick(), pick()
		joined := string(tokens[left]) + string(tokens[right])
		if seen[[2]int32{left, right}] || len(joined) > 20 {
			continue
		}
		seen[[2]int32{left, right}] = true
		id, ok := known[joined]
		if !ok {
			id = int32(len(tokens))
			tokens = append(tokens, []byte(joined))
			known[joined] = id
		}
		list = append(list, merge{left, right, id})
	}
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	tokenizer, err := newTokenizer(tokens, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

func TestMergingAgreesWithNaiveSearch(t *testing.T) {
	rand := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		tokenizer := randomTokenizer(t, rand, 1+rand.IntN(60))
		naive := naiveEncoder(tokenizer)
		for range 10 {
			word := make([]byte, 1+rand.IntN(3*shortWord))
			for i := range word {
				word[i] = "abc"[rand.IntN(3)]
			}
			want := naive(word)
			if got := tokenizer.AppendEncode(nil, word); !slices.Equal(got, want) {
				t.Fatalf("%s: %v, want %v", word, got, want)
			}
			s := tokenizer.acquire()
			if got := tokenizer.mergeLong(nil, word, s); !slices.Equal(got, want) {
				t.Fatalf("%s with the heap: %v, want %v", word, got, want)
			}
			if got := tokenizer.mergeShort(word, s); !slices.Equal(got, want) {
				t.Fatalf("%s by scanning: %v, want %v", word, got, want)
			}
			tokenizer.release(s)
		}
	}
}

// A quadratic encoder would need minutes for this.
func TestVeryLongWordIsNotQuadratic(t *testing.T) {
	tokenizer := gpt2(t)
	for _, unit := range []string{"a", "abcdefghij", "ACGT"} {
		word := []byte(strings.Repeat(unit, 500_000/len(unit)))
		ids := tokenizer.AppendEncode(nil, word)
		if !bytes.Equal(tokenizer.Decode(ids), word) {
			t.Errorf("500 kB of %q do not come back", unit)
		}
	}
	tokenizer.mu.Lock()
	defer tokenizer.mu.Unlock()
	for _, s := range tokenizer.free {
		if cap(s.ids) > 1<<16 || cap(s.heap) > 1<<16 {
			t.Errorf("a very long word's memory is kept: %d ids, %d in the heap", cap(s.ids), cap(s.heap))
		}
	}
}

// The cache is small for a small vocabulary, so that words push each other out of it.
func TestCacheChangesNothing(t *testing.T) {
	rand := rand.New(rand.NewPCG(5, 6))
	tokenizer := randomTokenizer(t, rand, 40)
	var text []byte
	for i := range 5000 {
		text = fmt.Appendf(text, " %c%d", "abc"[i%3], rand.IntN(3000))
		for range rand.IntN(30) {
			text = append(text, "abc"[rand.IntN(3)])
		}
	}
	if got, want := tokenizer.AppendEncode(nil, text), naiveEncoder(tokenizer)(text); !slices.Equal(got, want) {
		t.Error("ids differ from those of the naive search")
	}
}

// Words are padded with zeros in the cache: those that end in zeros must not be mixed up.
func TestCacheTellsTrailingZerosApart(t *testing.T) {
	tokenizer := gpt2(t)
	for range 2 {
		for n := 1; n < 60; n++ {
			word := make([]byte, n)
			if got := tokenizer.Decode(tokenizer.AppendEncode(nil, word)); !bytes.Equal(got, word) {
				t.Fatalf("%d zeros come back as %d bytes", n, len(got))
			}
		}
	}
}

func TestRankHeapSorts(t *testing.T) {
	rand := rand.New(rand.NewPCG(12, 13))
	for range 500 {
		var h rankHeap
		var want [][2]int32
		for range rand.IntN(40) {
			v := [2]int32{rand.Int32N(3), rand.Int32N(50)}
			h.push(v[0], v[1])
			want = append(want, v)
		}
		slices.SortFunc(want, func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
		for _, w := range want {
			if rank, at := h.pop(); rank != w[0] || at != w[1] {
				t.Fatalf("popped rank %d at %d, want %v of %v", rank, at, w, want)
			}
		}
		if len(h) != 0 {
			t.Fatalf("%d left", len(h))
		}
	}
}
