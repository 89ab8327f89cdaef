package evaluate

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
)

// bigram is a model whose loss of a token depends on the token before it only,
// so that a test can add up by hand what a walk must give.
type bigram struct {
	batches []gpt.Batch
	fail    error
	loss    func(in, target int32) float32
}

func (m *bigram) Loss(b gpt.Batch, perToken []float32) (float64, int, error) {
	if m.fail != nil {
		return 0, 0, m.fail
	}
	m.batches = append(m.batches, gpt.Batch{B: b.B, T: b.T, Inputs: slices.Clone(b.Inputs), Targets: slices.Clone(b.Targets)})
	for i, target := range b.Targets {
		perToken[i] = 99 // what is ignored must not be added
		if target != gpt.Ignore {
			perToken[i] = m.at(b.Inputs[i], target)
		}
	}
	return 0, 0, nil
}

func (m *bigram) at(in, target int32) float32 {
	if m.loss != nil {
		return m.loss(in, target)
	}
	return float32(100*in + target)
}

const eot = 9

var byteSizes = []int32{1, 1, 2, 3, 1, 1, 1, 1, 1, 0} // token 9 ends documents

func score(t *testing.T, m Scorer, s Slice, docs []Document, p Plan) []Sums {
	t.Helper()
	p.Bytes = byteSizes
	sums, err := Score(context.Background(), m, s, docs, p)
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// documents ends a document after each eot, and with the stream.
func documents(s Slice) []Document {
	var docs []Document
	var start int64
	for i, id := range s {
		if id == eot || i == len(s)-1 {
			docs = append(docs, Document{start, start, int64(i) + 1})
			start = int64(i) + 1
		}
	}
	return docs
}

func isBar(id int32) bool { return id == 8 }

type bounds []int64

func (b bounds) Len() int                    { return len(b) - 1 }
func (b bounds) Tokens(i int) (int64, int64) { return b[i], b[i+1] }

func TestDocumentsOfAnIndex(t *testing.T) {
	if got, want := Documents(bounds{0, 3, 5}), []Document{{0, 0, 3}, {3, 3, 5}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Every token counts exactly once, in its own document, whatever the shape of
// the batches.
func TestScoreCountsEachTokenOnce(t *testing.T) {
	s := Slice{1, 2, eot, 3, 4, 5, eot, 6, eot}
	docs := documents(s)
	want := []Sums{
		{Loss: 901 + 102 + 209, Tokens: 3, Bytes: 1 + 2},
		{Loss: 903 + 304 + 405 + 509, Tokens: 4, Bytes: 3 + 1 + 1},
		{Loss: 906 + 609, Tokens: 2, Bytes: 1},
	}
	for _, p := range []Plan{
		{Rows: 1, Block: 1, First: eot}, {Rows: 1, Block: 4, First: eot}, {Rows: 2, Block: 3, First: eot},
		{Rows: 3, Block: 3, First: eot}, {Rows: 4, Block: 100, First: eot},
	} {
		if got := score(t, &bigram{}, s, docs, p); !slices.Equal(got, want) {
			t.Errorf("%d rows of %d: got %v, want %v", p.Rows, p.Block, got, want)
		}
	}
}

func TestScoreWithoutATokenBeforeTheFirst(t *testing.T) {
	s := Slice{1, 2, 3}
	got := score(t, &bigram{}, s, []Document{{0, 0, 3}}, Plan{Rows: 2, Block: 2, First: -1})
	if want := []Sums{{Loss: 102 + 203, Tokens: 2, Bytes: 2 + 3}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Pairs are put before the model as in training: each in rows of its own, only
// the answer and its end counted.
func TestScoreCountsAnswersOnly(t *testing.T) {
	s := Slice{1, 2, 8, 3, 4, eot, 5, 8, 6, eot}
	docs := documents(s)
	if err := CountAfter(s, docs, isBar); err != nil {
		t.Fatal(err)
	}
	m := &bigram{}
	got := score(t, m, s, docs, Plan{Rows: 2, Block: 5, First: eot, Apart: true})
	want := []Sums{{Loss: 803 + 304 + 409, Tokens: 3, Bytes: 3 + 1}, {Loss: 806 + 609, Tokens: 2, Bytes: 1}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if in := m.batches[0].Inputs; !slices.Equal(in, []int32{1, 2, 8, 3, 4, 5, 8, 6, 0, 0}) {
		t.Errorf("inputs %v: a pair does not begin its own row", in)
	}
	got = score(t, &bigram{}, s, docs, Plan{Rows: 2, Block: 2, First: eot, Apart: true})
	if !slices.Equal(got, want) {
		t.Errorf("rows shorter than a pair: got %v, want %v", got, want)
	}
}

func TestCountAfterRefusesPairsWithoutAnAnswer(t *testing.T) {
	for name, s := range map[string]Slice{"no bar": {1, 2, eot}, "nothing behind it": {1, 8}} {
		if err := CountAfter(s, documents(s), isBar); !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), "pair 1") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestCountAfterInAPairLongerThanAChunk(t *testing.T) {
	s := make(Slice, 2*scanChunk)
	s[scanChunk+7] = 8
	docs := documents(s)
	if err := CountAfter(s, docs, isBar); err != nil || docs[0].Count != scanChunk+8 {
		t.Errorf("counts from %d, %v, want %d", docs[0].Count, err, scanChunk+8)
	}
}

// A sample reads as if the documents left out had not been there.
func TestScoreOfASample(t *testing.T) {
	s := Slice{1, 2, eot, 3, 4, 5, eot, 6, eot}
	docs := documents(s)
	m := &bigram{}
	got := score(t, m, s, []Document{docs[0], docs[2]}, Plan{Rows: 1, Block: 100, First: eot})
	want := []Sums{{Loss: 901 + 102 + 209, Tokens: 3, Bytes: 3}, {Loss: 906 + 609, Tokens: 2, Bytes: 1}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if in := m.batches[0].Inputs[:5]; !slices.Equal(in, []int32{eot, 1, 2, eot, 6}) {
		t.Errorf("inputs %v: the sample is not laid end to end", in)
	}
}

// Windows have no end between them, so a gap starts a row.
func TestScoreOfSampledWindowsStartsARowAtAGap(t *testing.T) {
	s := Slice{1, 2, 3, 4, 5, 6}
	docs := Windows(6, 2)
	m := &bigram{}
	got := score(t, m, s, []Document{docs[0], docs[2]}, Plan{Rows: 4, Block: 3, First: -1})
	want := []Sums{{Loss: 102, Tokens: 1, Bytes: 2}, {Loss: 405 + 506, Tokens: 2, Bytes: 2}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if in := m.batches[0].Inputs; !slices.Equal(in, []int32{1, 0, 0, 4, 5, 0}) {
		t.Errorf("inputs %v", in)
	}
}

func TestScoreErrors(t *testing.T) {
	s := Slice{1, 2, 3}
	docs := []Document{{0, 0, 3}}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		ctx  context.Context
		m    *bigram
		s    Slice
		p    Plan
		want string
		is   error
	}{
		"no rows":             {context.Background(), &bigram{}, s, Plan{Rows: 0, Block: 2}, "plan of 0 rows", nil},
		"no block":            {context.Background(), &bigram{}, s, Plan{Rows: 1, Block: 0}, "of 0 tokens", nil},
		"a larger vocabulary": {context.Background(), &bigram{}, Slice{1, 70, 3}, Plan{Rows: 1, Block: 2}, "position 1 holds token 70, the vocabulary has 10", nil},
		"a negative token":    {context.Background(), &bigram{}, Slice{1, -7, 3}, Plan{Rows: 1, Block: 2}, "token -7", nil},
		"the model fails":     {context.Background(), &bigram{fail: boom}, s, Plan{Rows: 1, Block: 2}, "boom", boom},
		"interrupted":         {canceled, &bigram{}, s, Plan{Rows: 1, Block: 2}, "canceled", context.Canceled},
		"NaN": {context.Background(), &bigram{loss: func(in, target int32) float32 {
			if target == 3 {
				return float32(math.NaN())
			}
			return 1
		}}, s, Plan{Rows: 1, Block: 2, First: -1}, "token 1 of document 0 has NaN", ErrNotFinite},
	} {
		t.Run(name, func(t *testing.T) {
			c.p.Bytes = byteSizes
			_, err := Score(c.ctx, c.m, c.s, docs, c.p)
			if err == nil || !strings.Contains(err.Error(), c.want) || (c.is != nil && !errors.Is(err, c.is)) {
				t.Errorf("error %v, want it to say %q", err, c.want)
			}
		})
	}
}

func TestSampleIsSeededAndOrdered(t *testing.T) {
	docs := Windows(1000, 1)
	a, err := Sample(docs, 100, 7)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := Sample(docs, 100, 7)
	other, _ := Sample(docs, 100, 8)
	if !slices.Equal(a, b) {
		t.Error("the same seed drew other documents")
	}
	if slices.Equal(a, other) {
		t.Error("another seed drew the same documents")
	}
	for i := 1; i < len(a); i++ {
		if a[i].Start <= a[i-1].Start {
			t.Fatalf("document %d is out of order or drawn twice", i)
		}
	}
	if all, _ := Sample(docs, 5000, 7); len(all) != 1000 {
		t.Errorf("asked for more than there are: got %d, want all 1000", len(all))
	}
	if _, err := Sample(docs, 0, 7); !errors.Is(err, ErrSample) {
		t.Errorf("0 documents: %v", err)
	}
}

// letters is a tokenizer with one token per byte below 9; pairs joins every two
// bytes that it can, so it has other tokens for the same text.
type letters struct{}

func (letters) AppendEncode(dst []int32, text []byte) []int32 {
	for _, b := range text {
		dst = append(dst, int32(b))
	}
	return dst
}

func (letters) Decode(ids []int32) []byte {
	var out []byte
	for _, id := range ids {
		if id != eot {
			out = append(out, byte(id))
		}
	}
	return out
}
func (letters) VocabSize() int           { return 10 }
func (letters) EndOfText() (int32, bool) { return eot, true }

type pairs struct{}

func (pairs) AppendEncode(dst []int32, text []byte) []int32 {
	for ; len(text) >= 2; text = text[2:] {
		dst = append(dst, 10+int32(text[0])*10+int32(text[1]))
	}
	for _, b := range text {
		dst = append(dst, int32(b))
	}
	return dst
}

func (pairs) Decode(ids []int32) []byte {
	var out []byte
	for _, id := range ids {
		switch {
		case id == 200:
		case id >= 10:
			out = append(out, byte((id-10)/10), byte((id-10)%10))
		default:
			out = append(out, byte(id))
		}
	}
	return out
}
func (pairs) VocabSize() int           { return 201 }
func (pairs) EndOfText() (int32, bool) { return 200, true }

// Two tokenizers count different tokens but the same bytes of each document.
func TestRetokenizeKeepsTheBytes(t *testing.T) {
	s := Slice{1, 2, 3, eot, 4, 5, 8, 6, 7, 1, eot, 2}
	docs := documents(s)
	docs[1].Count = 7 // behind the bar
	out, moved, err := Retokenize(context.Background(), s, docs, letters{}, pairs{})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Slice{22, 3, 200, 55, 8, 77, 1, 200, 2}); !slices.Equal(out, want) {
		t.Fatalf("tokens %v, want %v", out, want)
	}
	if want := []Document{{0, 0, 3}, {3, 5, 8}, {8, 8, 9}}; !slices.Equal(moved, want) {
		t.Fatalf("documents %v, want %v", moved, want)
	}
	flat := &bigram{loss: func(_, _ int32) float32 { return 1 }}
	a, err := Score(context.Background(), flat, s, docs, Plan{Rows: 2, Block: 3, First: eot, Bytes: TokenBytes(letters{}, 10)})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Score(context.Background(), flat, out, moved, Plan{Rows: 2, Block: 3, First: 200, Bytes: TokenBytes(pairs{}, 201)})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{3, 3, 1} {
		if a[i].Bytes != want || b[i].Bytes != want {
			t.Errorf("document %d: %d and %d bytes, want %d of both", i, a[i].Bytes, b[i].Bytes, want)
		}
	}
	if _, err := Compare(a, b, BitsPerByteU); err != nil {
		t.Error(err)
	}
}

func TestTokenBytes(t *testing.T) {
	got := TokenBytes(pairs{}, 203) // padded beyond the tokenizer
	for id, want := range map[int]int32{0: 1, 9: 1, 10: 2, 109: 2, 200: 0, 201: 0, 202: 0} {
		if got[id] != want {
			t.Errorf("token %d stands for %d bytes, want %d", id, got[id], want)
		}
	}
}
