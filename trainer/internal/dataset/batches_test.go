package dataset

import (
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/rng"
)

// ramp is a source whose tokens are their positions.
func ramp(n int) Slice {
	s := make(Slice, n)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}

func TestBatchesAreWindowsOfTheSource(t *testing.T) {
	const n, b, T = 50, 4, 8
	x, err := NewBatches(ramp(n), "train.bin", b, T, rng.New(1, rng.Data))
	if err != nil {
		t.Fatal(err)
	}
	var starts [n]int
	var batch gpt.Batch
	for range 2000 {
		if err := x.Next(&batch); err != nil {
			t.Fatal(err)
		}
		if batch.B != b || batch.T != T || len(batch.Inputs) != b*T || len(batch.Targets) != b*T {
			t.Fatalf("batch of %d x %d with %d inputs", batch.B, batch.T, len(batch.Inputs))
		}
		for r := range b {
			first := batch.Inputs[r*T]
			starts[first]++
			for p := range T {
				if batch.Inputs[r*T+p] != first+int32(p) || batch.Targets[r*T+p] != first+int32(p)+1 {
					t.Fatalf("row %d is %v -> %v", r, batch.Inputs[r*T:(r+1)*T], batch.Targets[r*T:(r+1)*T])
				}
			}
		}
	}
	// Each of the 42 places at which a window and its last target fit: 190 times,
	// give or take five standard deviations of 13.6.
	for pos, got := range starts {
		if fits := pos < n-T; fits && (got < 122 || got > 258) || !fits && got > 0 {
			t.Errorf("a window begins at %d %d times", pos, got)
		}
	}
}

func TestBatchesDependOnTheStreamAlone(t *testing.T) {
	draw := func(x Feed, n int) (out []int32) {
		var b gpt.Batch
		for range n {
			if err := x.Next(&b); err != nil {
				t.Fatal(err)
			}
			out = append(out, b.Inputs...)
		}
		return out
	}
	feeds := map[string]func(seed uint64) Feed{
		"text": func(seed uint64) Feed {
			x, err := NewBatches(ramp(1000), "train.bin", 3, 5, rng.New(seed, rng.Data))
			if err != nil {
				t.Fatal(err)
			}
			return x
		},
		"questions": func(seed uint64) Feed {
			x, err := pairs(t, QAOptions{Block: 16}, 7).Batches(3, rng.New(seed, rng.Data))
			if err != nil {
				t.Fatal(err)
			}
			return x
		},
	}
	for name, feed := range feeds {
		t.Run(name, func(t *testing.T) {
			whole := draw(feed(1), 20)
			if !slices.Equal(draw(feed(1), 20), whole) {
				t.Error("the same seed draws other batches")
			}
			if slices.Equal(draw(feed(2), 20), whole) {
				t.Error("another seed draws the same batches")
			}
			for _, stop := range []int{0, 1, 6, 7, 13, 19} {
				first := feed(1)
				head := draw(first, stop)
				state, err := first.State()
				if err != nil {
					t.Fatal(err)
				}
				resumed := feed(99)
				draw(resumed, 4)
				if err := resumed.SetState(state); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(append(head, draw(resumed, 20-stop)...), whole) {
					t.Errorf("resumed after %d batches it goes on otherwise", stop)
				}
			}
			if feed(1).SetState([]byte("nonsense")) == nil {
				t.Error("a state that is none is taken")
			}
		})
	}
}

func TestTooSmallForABlock(t *testing.T) {
	_, err := NewBatches(ramp(8), "run/train.bin", 1, 8, rng.New(1, rng.Data))
	if err == nil || !strings.Contains(err.Error(), "run/train.bin: 8 tokens") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
	if _, err := NewBatches(ramp(9), "train.bin", 1, 8, rng.New(1, rng.Data)); err != nil {
		t.Errorf("a block and its target: %v", err)
	}
}

func TestTextWindowsCoverEveryTokenOnce(t *testing.T) {
	const eot = 999
	for _, n := range []int{1, 7, 8, 9, 24, 25} {
		for _, per := range []int{1, 2, 5} {
			w, err := NewTextWindows(ramp(n), "val.bin", 8, eot)
			if err != nil {
				t.Fatal(err)
			}
			var b gpt.Batch
			var targets []int32
			for first := 0; first < w.Len(); first += per {
				k := min(per, w.Len()-first)
				if err := w.Fill(&b, first, k); err != nil {
					t.Fatal(err)
				}
				if b.B != k || b.T != 8 {
					t.Fatalf("batch of %d x %d", b.B, b.T)
				}
				for i, target := range b.Targets {
					if target == gpt.Ignore {
						if b.Inputs[i] < 0 {
							t.Fatal("an ignored position has no input")
						}
						continue
					}
					before := int32(eot)
					if target > 0 {
						before = target - 1
					}
					if b.Inputs[i] != before {
						t.Errorf("token %d is predicted from %d", target, b.Inputs[i])
					}
					if want := int64(target); w.Start(first+i/8)+int64(i%8) != want {
						t.Errorf("token %d is at window %d, place %d", target, first+i/8, i%8)
					}
					targets = append(targets, target)
				}
			}
			if !slices.Equal(targets, ramp(n)) {
				t.Errorf("%d tokens, %d windows at a time: targets %v", n, per, targets)
			}
		}
	}
	if _, err := NewTextWindows(Slice{}, "run/val.bin", 8, eot); err == nil || !strings.Contains(err.Error(), "run/val.bin") {
		t.Errorf("an empty split: %v", err)
	}
	w, _ := NewTextWindows(ramp(9), "val.bin", 8, eot)
	for _, r := range [][2]int{{-1, 1}, {0, 3}, {2, 1}, {0, 0}} {
		if w.Fill(&gpt.Batch{}, r[0], r[1]) == nil {
			t.Errorf("windows %v can be filled", r)
		}
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	x, _ := NewBatches(ramp(1000), "train.bin", 8, 16, rng.New(1, rng.Data))
	var b gpt.Batch
	if n := testing.AllocsPerRun(50, func() { _ = x.Next(&b) }); n > 0 {
		t.Errorf("%v allocations for a batch", n)
	}
}
