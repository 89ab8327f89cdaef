package dataset

import (
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/rng"
)

const (
	bar  = 50 // the token that ends a question
	over = 51 // end of text
)

// newQA makes pairs from the tokens of documents.
func newQA(t *testing.T, opts QAOptions, docs ...[]int32) (*QA, error) {
	t.Helper()
	dir, sm := writeSplit(t, "train", Uint16, docs...)
	f, x, err := Meta{TokenDType: Uint16, Splits: map[string]SplitMeta{"train": sm}}.OpenSplit(dir, "train")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	opts.EndOfText, opts.IsSeparator = over, func(id int32) bool { return id == bar }
	return NewQA(f, x, "run/train.bin", opts)
}

// pairs makes n pairs: i, bar, i+1, end.
func pairs(t *testing.T, opts QAOptions, n int) *QA {
	t.Helper()
	docs := make([][]int32, n)
	for i := range docs {
		docs[i] = []int32{int32(i), bar, int32(i + 1), over}
	}
	q, err := newQA(t, opts, docs...)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestQARows(t *testing.T) {
	const no = gpt.Ignore
	for _, tt := range []struct {
		name            string
		opts            QAOptions
		docs            [][]int32
		inputs, targets []int32
		truncated       int
	}{
		{"only the answer and its end count", QAOptions{Block: 8}, [][]int32{{1, 2, bar, 3, 4, over}},
			[]int32{1, 2, bar, 3, 4}, []int32{no, no, 3, 4, over}, 0},
		{"the question counts too", QAOptions{Block: 8, CountQuestion: true}, [][]int32{{1, 2, bar, 3, 4, over}},
			[]int32{1, 2, bar, 3, 4}, []int32{2, bar, 3, 4, over}, 0},
		{"the shorter row is filled up", QAOptions{Block: 8}, [][]int32{{1, bar, 2, over}, {1, 2, bar, 3, 4, over}},
			[]int32{1, bar, 2, over, over, 1, 2, bar, 3, 4}, []int32{no, 2, over, no, no, no, no, 3, 4, over}, 0},
		{"the second bar is part of the answer", QAOptions{Block: 8}, [][]int32{{1, bar, 2, bar, 3, over}},
			[]int32{1, bar, 2, bar, 3}, []int32{no, 2, bar, 3, over}, 0},
		{"a long question loses its beginning", QAOptions{Block: 4}, [][]int32{{1, 2, 3, 4, bar, 5, over}},
			[]int32{3, 4, bar, 5}, []int32{no, no, 5, over}, 1},
		{"a long answer loses its end", QAOptions{Block: 3}, [][]int32{{1, 2, bar, 5, 6, 7, over}},
			[]int32{bar, 5, 6}, []int32{5, 6, 7}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q, err := newQA(t, tt.opts, tt.docs...)
			if err != nil {
				t.Fatal(err)
			}
			var b gpt.Batch
			if err := q.Fill(&b, 0, q.Len()); err != nil {
				t.Fatal(err)
			}
			if b.T != q.T() || !slices.Equal(b.Inputs, tt.inputs) || !slices.Equal(b.Targets, tt.targets) || q.Truncated() != tt.truncated {
				t.Errorf("T %d, %d truncated\ninputs  %v, want %v\ntargets %v, want %v", b.T, q.Truncated(), b.Inputs, tt.inputs, b.Targets, tt.targets)
			}
		})
	}
}

func TestQAEpochsHoldEveryPairOnce(t *testing.T) {
	q := pairs(t, QAOptions{Block: 16}, 7)
	x, err := q.Batches(3, rng.New(1, rng.Data))
	if err != nil {
		t.Fatal(err)
	}
	var order []int32
	var b gpt.Batch
	for range 7 { // three epochs of seven in seven batches of three
		if err := x.Next(&b); err != nil {
			t.Fatal(err)
		}
		for r := range b.B {
			order = append(order, b.Inputs[r*b.T])
		}
	}
	epochs := [][]int32{order[:7], order[7:14], order[14:]}
	if slices.Equal(epochs[0], epochs[1]) && slices.Equal(epochs[1], epochs[2]) {
		t.Error("all epochs have the same order")
	}
	for i, e := range epochs {
		sorted := slices.Clone(e)
		slices.Sort(sorted)
		if !slices.Equal(sorted, []int32{0, 1, 2, 3, 4, 5, 6}) {
			t.Errorf("epoch %d holds %v", i, e)
		}
	}
}

func TestQAStateOfOtherData(t *testing.T) {
	x, _ := pairs(t, QAOptions{Block: 16}, 7).Batches(3, rng.New(1, rng.Data))
	y, _ := pairs(t, QAOptions{Block: 16}, 8).Batches(3, rng.New(1, rng.Data))
	state, err := x.State()
	if err != nil {
		t.Fatal(err)
	}
	if err := y.SetState(state); err == nil || !strings.Contains(err.Error(), "7") || !strings.Contains(err.Error(), "8") {
		t.Errorf("error %v, want one with both numbers of pairs", err)
	}
}

func TestQAErrors(t *testing.T) {
	for _, docs := range [][][]int32{{{1, 2, over}}, {{1, 2, bar}}, {}} {
		if _, err := newQA(t, QAOptions{Block: 8}, docs...); err == nil || !strings.Contains(err.Error(), "run/train.bin") {
			t.Errorf("%v: error %v", docs, err)
		}
	}
}
