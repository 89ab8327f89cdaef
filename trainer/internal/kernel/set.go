package kernel

import "unsafe"

type tileFunc func(t *byte)

// Set is the table of kernels for one instruction set. Its methods check the
// lengths of their slices, since assembly would not notice, and panic when a
// caller breaks them: that is a fault of the program, never of its input.
type Set struct {
	isa   ISA
	rows  int           // rows of the largest tile
	width int           // columns of a packed panel
	half  int           // columns that the narrow tiles take
	tiles [2][]tileFunc // [narrow or full][rows]

	// Strides are in bytes. packPanel copies rows of up to width floats;
	// packStrips cuts rows into strips of the tile's height, the last of which
	// takes fewer columns. Both store whole vectors.
	packPanel      func(dst, src *float32, rows, srcStride, dstStride, cols int)
	packStrips     func(dst, src *float32, rows, srcStride, strips, stripStride, last int)
	packTransposed func(dst, src *float32, blocks, srcStride, dstStride int) // nil: there is none
	prefetch       func(p *float32, rows, stride, lines int)                 // nil: there is none

	add               func(dst, a, b *float32, n int)
	layerNorm         func(dst, x, gain, bias, stats *float32, rows, n int, eps, invN float32)
	addLayerNorm      func(dst, sum, x, y, gain, bias, stats *float32, rows, n int, eps, invN float32)
	layerNormBackward func(dx, dy, x, gain, stats, dgain, dbias *float32, rows, n int, invN float32)
	geluTanh          func(dst, x *float32, n int)
	geluTanhBackward  func(x, d *float32, n int)
	geluErf           func(dst, x *float32, n int)
	geluErfBackward   func(x, d *float32, n int)
	softmax           func(dst, src *float32, n int, scale, post float32) (peak, sum float32)
	softmaxAgain      func(dst, src *float32, n int, scale, peak, inv float32)
	softmaxBackward   func(d, p *float32, n int, scale float32)
	adamW             func(p, g, m, v *float32, n int, a *float32)
	sumSquares        func(x *float32, n int) float32
	dropout           func(dst, src *float32, n int, key0, key1, threshold uint32, scale float32)
	columnSums        func(dst, src *float32, rows, cols, stride int)
	dot               func(a, b *float32, n int) float32
	axpy              func(dst, x *float32, n int, a float32)

	peak func(rounds int) // 12 multiply-adds of half floats a round; nil where not measured
}

// ISA returns the instruction set that the kernels use.
func (s *Set) ISA() ISA { return s.isa }

func check(ok bool, what string) {
	if !ok {
		panic("kernel: " + what)
	}
}

func ptr(x []float32) *float32 { return unsafe.SliceData(x) }

// PeakFLOP keeps one processor's multiply-add units busy for a number of rounds
// and returns the floating-point operations that were done: over the time that
// it took, the peak beside which a product is judged. It returns 0 for portable
// kernels.
func (s *Set) PeakFLOP(rounds int) float64 {
	if s.peak == nil || rounds < 1 {
		return 0
	}
	s.peak(rounds)
	return float64(rounds) * 12 * 2 * float64(s.half)
}
