package rng

import (
	"slices"
	"testing"
)

func draw(s *Stream, n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = s.Uint64()
	}
	return out
}

func TestStreamsOfOneRunAreApartAndRepeat(t *testing.T) {
	seen := map[uint64]string{}
	for _, seed := range []uint64{0, 1, 1337} {
		for _, name := range []string{Data, Dropout, Eval, Init, Sample} {
			first := draw(New(seed, name), 100)
			if !slices.Equal(first, draw(New(seed, name), 100)) {
				t.Errorf("stream %q of seed %d does not repeat", name, seed)
			}
			for _, x := range first {
				if other, ok := seen[x]; ok {
					t.Fatalf("stream %q of seed %d draws what %s drew", name, seed, other)
				}
				seen[x] = name
			}
		}
	}
}

func TestAStreamGoesOnWhereItsStateWasTaken(t *testing.T) {
	s := New(7, Data)
	s.Shuffle(10, func(_, _ int) {})
	s.NormFloat64()
	state, err := s.State()
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{s.Float64(), s.NormFloat64(), float64(s.Intn(1000)), float64(s.Uint32())}
	r := New(8, Eval) // another stream altogether
	if err := r.SetState(state); err != nil {
		t.Fatal(err)
	}
	got := []float64{r.Float64(), r.NormFloat64(), float64(r.Intn(1000)), float64(r.Uint32())}
	if !slices.Equal(got, want) {
		t.Errorf("drew %v, want %v", got, want)
	}
	for _, bad := range [][]byte{nil, []byte("x"), state[:len(state)-1]} {
		if err := r.SetState(bad); err == nil {
			t.Errorf("took %d bytes for a state", len(bad))
		}
	}
}

// The first numbers of the generator, from its specification: the example of
// math/rand/v2's PCG with seeds 1 and 2, which Go promises not to change.
func TestTheGeneratorIsThePublishedOne(t *testing.T) {
	s := New(0, "")
	if err := s.SetState(append([]byte("pcg:"), 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2)); err != nil {
		t.Fatal(err)
	}
	want := []uint64{0xc4f5a58656eef510, 0x9dcec3ad077dec6c}
	if got := draw(s, 2); !slices.Equal(got, want) {
		t.Errorf("drew %#x, want %#x", got, want)
	}
}
