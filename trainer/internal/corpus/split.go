package corpus

import (
	"fmt"
	"math"
)

// Split is the part of a data set to which a document belongs.
type Split uint8

// The splits, in the order of their files.
const (
	Train Split = iota
	Val
	Test
	Splits // how many there are
)

// String returns "train", "val" or "test".
func (s Split) String() string {
	return [...]string{"train", "val", "test", "?"}[min(s, Splits)]
}

// Fractions are the shares of documents of the splits. They add up to 1.
type Fractions struct {
	Train float64 `json:"train"`
	Val   float64 `json:"val"`
	Test  float64 `json:"test"`
}

// DefaultFractions is 80/10/10.
func DefaultFractions() Fractions { return Fractions{Train: 0.8, Val: 0.1, Test: 0.1} }

// Of returns the share of a split.
func (f Fractions) Of(s Split) float64 { return [...]float64{f.Train, f.Val, f.Test}[s] }

// Validate reports shares that are no partition. Train cannot be empty.
func (f Fractions) Validate() error {
	for s := Train; s < Splits; s++ {
		if x := f.Of(s); !(x >= 0 && x <= 1) || (s == Train && x == 0) {
			return fmt.Errorf("split: the share of %s is %v: want more than 0 for train and 0 to 1 for the others", s, x)
		}
	}
	if sum := f.Train + f.Val + f.Test; math.Abs(sum-1) > 1e-9 {
		return fmt.Errorf("split: train %v, val %v and test %v add up to %v: want 1", f.Train, f.Val, f.Test, sum)
	}
	return nil
}

// Assign draws the split of a document from its identity and the seed alone: no
// other document has a say, so that adding some moves none.
func (f Fractions) Assign(s Sum256, seed uint64) Split {
	x := s.point()
	if seed != 0 {
		x = mix(x ^ mix(seed))
	}
	u := float64(x>>11) / (1 << 53) // uniform in [0, 1)
	switch {
	case u < f.Train:
		return Train
	case f.Test == 0 || u < f.Train+f.Val:
		return Val
	}
	return Test
}
