package train

import (
	"errors"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
)

// numbered windows hold their own number.
type numbered int

func (n numbered) Len() int { return int(n) }

func (n numbered) Fill(b *gpt.Batch, first, k int) error {
	if first < 0 || k < 1 || first+k > int(n) {
		return errors.New("out of range")
	}
	*b = gpt.Batch{B: k, T: 1}
	for i := range k {
		b.Inputs = append(b.Inputs, int32(first+i))
	}
	return nil
}

func seen(t *testing.T, h *HeldOut) (windows []int32, batches int) {
	t.Helper()
	for b, err := range h.Batches() {
		if err != nil {
			t.Fatal(err)
		}
		windows = append(windows, b.Inputs...)
		batches++
	}
	return windows, batches
}

func TestHeldOutSeesEachWindowOnce(t *testing.T) {
	for _, size := range []int{1, 4, 10, 11} {
		got, _ := seen(t, NewHeldOut(numbered(10), size, 0, 1))
		if !slices.Equal(got, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
			t.Errorf("batches of %d: %v", size, got)
		}
	}
}

func TestLimitedHeldOutIsTheSameEachTime(t *testing.T) {
	h := NewHeldOut(numbered(1000), 4, 5, 1)
	first, n := seen(t, h)
	again, _ := seen(t, h)
	other, _ := seen(t, NewHeldOut(numbered(1000), 4, 5, 2))
	if n != 5 || !slices.Equal(first, again) || slices.Equal(first, other) {
		t.Errorf("%d batches; %v, again %v, with another seed %v", n, first, again, other)
	}
}
