package corpus

import (
	"context"
	"errors"
	"testing"
)

func numbers(n int) func(context.Context, func(int) error) error {
	return func(_ context.Context, emit func(int) error) error {
		for i := range n {
			if err := emit(i); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestOrderedKeepsOrder(t *testing.T) {
	for _, workers := range []int{0, 1, 2, 3, 8} {
		next := 0
		err := Ordered(t.Context(), workers, numbers(1000),
			func(_, i int) (int, error) { return i * i, nil },
			func(v int) error {
				if v != next*next {
					t.Fatalf("%d workers: result %d came as number %d", workers, v, next)
				}
				next++
				return nil
			})
		if err != nil || next != 1000 {
			t.Errorf("%d workers: %d results, %v", workers, next, err)
		}
	}
}

func TestOrderedReturnsTheFirstError(t *testing.T) {
	bad, late, full := errors.New("item 17"), errors.New("source broke at 30"), errors.New("sink is full")
	for _, tt := range []struct {
		name             string
		work, make, sink int // number at which a part fails; -1 never
		want             error
		results          int
	}{
		{"work", 17, -1, -1, bad, 17},
		{"work before a later source error", 17, 30, -1, bad, 17},
		{"source, after what it gave", -1, 30, -1, late, 30},
		{"sink", -1, -1, 5, full, 5},
		{"none", -1, -1, -1, nil, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := 0
			err := Ordered(t.Context(), 3,
				func(_ context.Context, emit func(int) error) error {
					for i := range 100 {
						if i == tt.make {
							return late
						}
						if err := emit(i); err != nil {
							return err
						}
					}
					return nil
				},
				func(_, i int) (int, error) {
					if i >= tt.work && tt.work >= 0 {
						return 0, bad
					}
					return i, nil
				},
				func(int) error {
					if got == tt.sink {
						return full
					}
					got++
					return nil
				})
			if !errors.Is(err, tt.want) || got != tt.results {
				t.Errorf("%d results, %v: want %d, %v", got, err, tt.results, tt.want)
			}
		})
	}
}

func TestOrderedStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	n := 0
	err := Ordered(ctx, 2, numbers(1<<40),
		func(_, i int) (int, error) { return i, nil },
		func(int) error {
			if n++; n == 100 {
				cancel(stop)
			}
			return nil
		})
	if !errors.Is(err, stop) {
		t.Errorf("error %v, want %v", err, stop)
	}
}
