package safetensors

import (
	"math"
	"math/rand/v2"
	"testing"
)

// decodeSlowly computes the value of a small float from its definition in IEEE
// 754: sign, exponent and fraction as numbers, in float64, which holds all exactly.
func decodeSlowly(h uint16, expBits, fracBits int) float64 {
	bias := 1<<(expBits-1) - 1
	exp := int(h>>fracBits) & (1<<expBits - 1)
	frac := float64(h&(1<<fracBits-1)) / float64(int(1)<<fracBits)
	sign := 1.0
	if h>>15 != 0 {
		sign = -1
	}
	switch {
	case exp == 1<<expBits-1 && frac != 0:
		return math.NaN()
	case exp == 1<<expBits-1:
		return math.Inf(int(sign))
	case exp == 0:
		return sign * math.Ldexp(frac, 1-bias)
	}
	return sign * math.Ldexp(1+frac, exp-bias)
}

var halves = map[string]struct {
	expBits, fracBits int
	decode            func(uint16) float32
	encode            func(float32) uint16
}{
	"F16":  {5, 10, f16ToF32, f32ToF16},
	"BF16": {8, 7, bf16ToF32, f32ToBF16},
}

func TestDecodeAllValues(t *testing.T) {
	for name, c := range halves {
		t.Run(name, func(t *testing.T) {
			for i := range 1 << 16 {
				h := uint16(i)
				want, got := decodeSlowly(h, c.expBits, c.fracBits), float64(c.decode(h))
				if math.IsNaN(want) {
					if !math.IsNaN(got) || math.Signbit(got) != (h>>15 != 0) {
						t.Fatalf("%#04x decodes to %v, want NaN of its sign", h, got)
					}
					continue
				}
				if math.Float64bits(got) != math.Float64bits(want) {
					t.Fatalf("%#04x decodes to %v, want %v", h, got, want)
				}
			}
		})
	}
}

func TestEncodeReturnsAllValues(t *testing.T) {
	for name, c := range halves {
		t.Run(name, func(t *testing.T) {
			quiet := uint16(1) << (c.fracBits - 1)
			for i := range 1 << 16 {
				h := uint16(i)
				want := h
				if math.IsNaN(decodeSlowly(h, c.expBits, c.fracBits)) {
					want |= quiet
				}
				if got := c.encode(c.decode(h)); got != want {
					t.Fatalf("%#04x came back as %#04x, want %#04x", h, got, want)
				}
			}
		})
	}
}

// TestEncodeRoundsToNearestEven checks, between all neighbours lo < hi, the exact
// middle and the float32 values next to it.
func TestEncodeRoundsToNearestEven(t *testing.T) {
	for name, c := range halves {
		t.Run(name, func(t *testing.T) {
			infinity := uint16(1<<c.expBits-1) << c.fracBits
			for lo := uint16(0); lo < infinity; lo++ {
				a := decodeSlowly(lo, c.expBits, c.fracBits)
				b := decodeSlowly(lo+1, c.expBits, c.fracBits)
				if lo+1 == infinity { // the value that would come next
					b = 2*a - decodeSlowly(lo-1, c.expBits, c.fracBits)
				}
				even := lo + lo&1
				middle := float32((a + b) / 2) // exact: one more bit of fraction
				for _, p := range []struct {
					value float32
					want  uint16
				}{
					{math.Nextafter32(middle, 0), lo},
					{middle, even},
					{math.Nextafter32(middle, float32(math.Inf(1))), lo + 1},
				} {
					if math.IsInf(float64(p.value), 0) {
						continue
					}
					if got := c.encode(p.value); got != p.want {
						t.Fatalf("%g between %#04x and %#04x encodes to %#04x, want %#04x", p.value, lo, lo+1, got, p.want)
					}
					if got := c.encode(-p.value); got != p.want|0x8000 {
						t.Fatalf("%g encodes to %#04x, want %#04x", -p.value, got, p.want|0x8000)
					}
				}
			}
		})
	}
}

// TestEncodeIsNearest draws any float32 and looks whether a neighbour is nearer.
func TestEncodeIsNearest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, c := range halves {
		t.Run(name, func(t *testing.T) {
			infinity := uint16(1<<c.expBits-1) << c.fracBits
			for range 200_000 {
				f := math.Float32frombits(r.Uint32())
				got := c.encode(f)
				if f != f {
					if !math.IsNaN(decodeSlowly(got, c.expBits, c.fracBits)) {
						t.Fatalf("NaN %#08x encodes to %#04x", math.Float32bits(f), got)
					}
					continue
				}
				if got>>15 != uint16(math.Float32bits(f)>>31) {
					t.Fatalf("%g encodes to %#04x: wrong sign", f, got)
				}
				abs := got & 0x7fff
				if abs == infinity {
					continue // the limit is checked above
				}
				dist := func(h uint16) float64 {
					return math.Abs(decodeSlowly(h, c.expBits, c.fracBits) - math.Abs(float64(f)))
				}
				if abs > 0 && dist(abs-1) < dist(abs) || dist(abs+1) < dist(abs) {
					t.Fatalf("%g encodes to %#04x, a neighbour is nearer", f, got)
				}
			}
		})
	}
}
