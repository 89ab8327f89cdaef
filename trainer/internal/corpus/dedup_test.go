package corpus

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestSumFoldsWhiteSpace(t *testing.T) {
	var h Hasher
	want := Sum256(sha256.Sum256([]byte("a b é c")))
	for _, text := range []string{"a b é c", "  a\tb\n\né \u00a0\u3000 c\r\n", "a b é c "} {
		if h.Sum([]byte(text)) != want {
			t.Errorf("%q has another identity", text)
		}
	}
	for _, text := range []string{"ab é c", "a b e c", ""} {
		if h.Sum([]byte(text)) == want {
			t.Errorf("%q has the same identity", text)
		}
	}
}

func TestExact(t *testing.T) {
	var h Hasher
	e := NewExact()
	for i, want := range []bool{false, false, true, true} {
		text := []string{"one", "two", " one ", "two"}[i]
		if got := e.Seen(h.Sum([]byte(text))); got != want {
			t.Errorf("document %d: seen is %v", i, got)
		}
	}
	if e.Len() != 2 {
		t.Errorf("%d distinct documents, want 2", e.Len())
	}
	if odds := FalsePositiveOdds(10_000_000); odds < 2.6e-6 || odds > 2.8e-6 {
		t.Errorf("odds for ten million documents: %v", odds)
	}
}

// shingles is the set that MinHash estimates with, from the definition.
func shingles(text string, k int) map[string]bool {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	set := map[string]bool{}
	for i := 0; i+k <= len(runes); i++ {
		set[string(runes[i:i+k])] = true
	}
	return set
}

func jaccard(a, b map[string]bool) float64 {
	both := 0
	for s := range a {
		if b[s] {
			both++
		}
	}
	return float64(both) / float64(len(a)+len(b)-both)
}

// words makes a text of n random words.
func words(r *rand.Rand, n int) []string {
	w := make([]string, n)
	for i := range w {
		for range 2 + r.IntN(7) {
			w[i] += string(rune('a' + r.IntN(26)))
		}
	}
	return w
}

// The estimate is without bias, and its error is that of 64 draws.
func TestSimilarityEstimatesJaccard(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	h, err := NewMinHasher(5)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{12, 60, 600} { // shingles fewer than the bins, about as many, many more
		for _, share := range []float64{0, 0.3, 0.6, 0.8, 0.95, 1} {
			var bias, square float64
			const pairs = 150
			for range pairs {
				a := words(r, n)
				b := append([]string(nil), a...)
				for i := range b {
					if r.Float64() >= share {
						b[i] = words(r, 1)[0]
					}
				}
				ta, tb := strings.Join(a, " "), strings.Join(b, "\n ")
				sa, sb := h.Sign([]byte(ta)), h.Sign([]byte(tb))
				d := sa.Similarity(&sb) - jaccard(shingles(ta, 5), shingles(tb, 5))
				bias += d / pairs
				square += d * d / pairs
			}
			if math.Abs(bias) > 0.025 || math.Sqrt(square) > 0.085 {
				t.Errorf("%d words, %v kept: bias %.3f, error %.3f", n, share, bias, math.Sqrt(square))
			}
		}
	}
}

func TestSignShortTexts(t *testing.T) {
	h, _ := NewMinHasher(5)
	same := func(a, b string) bool { return h.Sign([]byte(a)) == h.Sign([]byte(b)) }
	if !same("abc", " abc") || same("abc", "abd") || !same("", "  ") || !same("日本", "日本 ") == same("日本", "日本語") {
		t.Error("texts shorter than a shingle are told apart by all of their characters")
	}
	for _, n := range []int{0, -1, 33} {
		if _, err := NewMinHasher(n); err == nil {
			t.Errorf("a shingle of %d characters is accepted", n)
		}
	}
}

func TestNearFindsWhatResembles(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	h, _ := NewMinHasher(5)
	near := NewNear(DefaultNear())
	seen := func(w []string) bool {
		sig := h.Sign([]byte(strings.Join(w, " ")))
		return near.Seen(&sig)
	}
	missed, wrong := 0, 0
	for range 2000 {
		doc := words(r, 80)
		if seen(doc) {
			wrong++
		}
		doc[40], doc[7] = "changed", "words"
		if !seen(doc) {
			missed++
		}
	}
	if wrong > 0 || missed > 2 {
		t.Errorf("of 2000 documents %d were taken for another, and %d copies with 2 of 80 words changed were missed", wrong, missed)
	}
}

func TestNearForgetsBeyondItsWindow(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	h, _ := NewMinHasher(5)
	near := NewNear(NearOptions{Shingle: 5, Threshold: 0.6, Window: 100})
	sigs := make([]Signature, 250)
	for i := range sigs {
		sigs[i] = h.Sign([]byte(strings.Join(words(r, 50), " ")))
		if near.Seen(&sigs[i]) {
			t.Fatal("a random document was seen before")
		}
	}
	if near.Forgotten() != 150 {
		t.Errorf("%d forgotten, want 150", near.Forgotten())
	}
	if !near.Seen(&sigs[200]) || near.Seen(&sigs[0]) {
		t.Error("the last 50 documents must be remembered and the first forgotten")
	}
}

// The index finds what comparing with everything finds, given that a band agrees.
func TestNearIndexAgainstExhaustiveSearch(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	x := newNearIndex()
	var all []Signature
	hits := 0
	for range 1500 {
		var s Signature
		for i := range s {
			s[i] = uint8(r.IntN(256))
		}
		if len(all) > 0 && r.IntN(2) == 0 {
			s = all[r.IntN(len(all))]
			for range r.IntN(30) {
				s[r.IntN(len(s))] = uint8(r.IntN(256))
			}
		}
		want := map[uint32]bool{}
		for id := range all {
			for b := range Bands {
				if band(&all[id], b) == band(&s, b) && s.Similarity(&all[id]) >= 0.6 {
					want[uint32(id)] = true
				}
			}
		}
		got := map[uint32]bool{}
		x.each(&s, 0.6, func(id uint32) bool { got[id] = true; return true })
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("found %v, want %v", got, want)
		}
		hits += len(got)
		if id := x.add(&s); int(id) != len(all) {
			t.Fatalf("number %d, want %d", id, len(all))
		}
		all = append(all, s)
	}
	if hits < 300 {
		t.Errorf("only %d hits: the test shows nothing", hits)
	}
}

func TestSplitAssignsByDocumentAlone(t *testing.T) {
	f := DefaultFractions()
	var h Hasher
	var n [Splits]int
	moved := 0
	const docs = 20000
	for i := range docs {
		s := h.Sum(fmt.Appendf(nil, "document %d", i))
		n[f.Assign(s, 0)]++
		if f.Assign(s, 0) != f.Assign(s, 7) {
			moved++
		}
	}
	// Four standard deviations of a binomial.
	for s := Train; s < Splits; s++ {
		p := f.Of(s)
		if d := math.Abs(float64(n[s]) - docs*p); d > 4*math.Sqrt(docs*p*(1-p)) {
			t.Errorf("%s has %d of %d", s, n[s], docs)
		}
	}
	// Two independent draws differ with 1 - 0.64 - 0.01 - 0.01.
	if want := 0.34 * docs; math.Abs(float64(moved)-want) > 4*math.Sqrt(docs*0.34*0.66) {
		t.Errorf("another seed moves %d, want about %v", moved, want)
	}
	for _, tt := range []struct {
		f     Fractions
		never []Split
	}{
		{Fractions{Train: 1}, []Split{Val, Test}},
		{Fractions{Train: 0.5, Test: 0.5}, []Split{Val}},
		{Fractions{Train: 0.5, Val: 0.5}, []Split{Test}},
	} {
		if err := tt.f.Validate(); err != nil {
			t.Error(err)
		}
		for i := range 1000 {
			got := tt.f.Assign(h.Sum(fmt.Appendf(nil, "%d", i)), 0)
			for _, s := range tt.never {
				if got == s {
					t.Fatalf("%+v assigns %s", tt.f, s)
				}
			}
		}
	}
	for _, f := range []Fractions{{}, {Train: 0.8, Val: 0.1}, {Val: 1}, {Train: 1.2, Val: -0.2}, {Train: math.NaN()}} {
		if f.Validate() == nil {
			t.Errorf("%+v is valid", f)
		}
	}
}

func TestLeakCheck(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	h, _ := NewMinHasher(5)
	var hash Hasher
	near := DefaultNear()
	c := NewLeakCheck(&near)
	add := func(s Split, w []string) {
		text := []byte(strings.Join(w, " "))
		sig := h.Sign(text)
		c.Add(s, hash.Sum(text), &sig)
	}
	change := func(w []string) []string {
		w = append([]string(nil), w...)
		w[0] = "changed"
		return w
	}
	v, v2, te, own := words(r, 80), words(r, 80), words(r, 80), words(r, 80)
	add(Val, v)
	add(Val, v2)
	add(Test, te)
	add(Test, v2)         // exact and near in val
	add(Test, change(v))  // near in val
	add(Train, own)       // nothing
	add(Train, v)         // exact and near val; near test
	add(Train, v)         // counts once
	add(Train, change(v)) // exact test
	add(Train, change(te))
	exact, similar := c.Leaks()
	if want := (Leaks{ValInTrain: 1, TestInTrain: 1, TestInVal: 1}); exact != want {
		t.Errorf("exact %+v, want %+v", exact, want)
	}
	if want := (Leaks{ValInTrain: 1, TestInTrain: 2, TestInVal: 2}); similar != want {
		t.Errorf("near %+v, want %+v", similar, want)
	}
	if exact.Total() != 3 || c.Unchecked() != 0 {
		t.Errorf("total %d, unchecked %d", exact.Total(), c.Unchecked())
	}
}

func BenchmarkSign(b *testing.B) {
	text := []byte(strings.Join(words(rand.New(rand.NewPCG(1, 1)), 1000), " "))
	h, _ := NewMinHasher(5)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		h.Sign(text)
	}
}
