package kernel

import "math"

// Add sets dst = a + b; all have equal lengths and may be the same slice.
func (s *Set) Add(dst, a, b []float32) {
	check(len(a) == len(dst) && len(b) == len(dst), "add: lengths differ")
	if len(dst) > 0 {
		s.add(ptr(dst), ptr(a), ptr(b), len(dst))
	}
}

// AXPY adds a*x to dst.
func (s *Set) AXPY(dst, x []float32, a float32) {
	check(len(x) == len(dst), "axpy: lengths differ")
	if len(dst) > 0 {
		s.axpy(ptr(dst), ptr(x), len(dst), a)
	}
}

// Dot returns the inner product of two vectors.
func (s *Set) Dot(a, b []float32) float32 {
	check(len(a) == len(b), "dot: lengths differ")
	if len(a) == 0 {
		return 0
	}
	return s.dot(ptr(a), ptr(b), len(a))
}

// SumSquares returns the sum of squares of x.
func (s *Set) SumSquares(x []float32) float32 {
	if len(x) == 0 {
		return 0
	}
	return s.sumSquares(ptr(x), len(x))
}

// ColumnSums adds to dst, of length C, the sums over the rows of src (rows, C)
// whose rows begin ld floats apart, in ascending order of rows.
func (s *Set) ColumnSums(dst, src []float32, rows, ld int) {
	cols := len(dst)
	check(rows >= 0 && ld >= cols && (rows == 0 || len(src) >= (rows-1)*ld+cols), "column sums: source too short")
	if rows > 0 && cols > 0 {
		s.columnSums(ptr(dst), ptr(src), rows, cols, 4*ld)
	}
}

// LayerNorm writes to dst the rows of x, both (rows, C), normalised and scaled
// by gain and bias (C), and to stats (rows, 2) each row's mean and reciprocal
// standard deviation.
func (s *Set) LayerNorm(dst, x, gain, bias, stats []float32, eps float32) {
	n := len(gain)
	rows := len(stats) / 2
	check(n > 0 && len(bias) == n && len(x) == rows*n && len(dst) == rows*n, "layer norm: lengths differ")
	if rows > 0 {
		s.layerNorm(ptr(dst), ptr(x), ptr(gain), ptr(bias), ptr(stats), rows, n, eps, 1/float32(n))
	}
}

// AddLayerNorm writes x + y to sum and its layer norm to dst.
func (s *Set) AddLayerNorm(dst, sum, x, y, gain, bias, stats []float32, eps float32) {
	n := len(gain)
	rows := len(stats) / 2
	check(n > 0 && len(bias) == n && len(x) == rows*n && len(y) == rows*n && len(sum) == rows*n && len(dst) == rows*n, "add layer norm: lengths differ")
	if rows > 0 {
		s.addLayerNorm(ptr(dst), ptr(sum), ptr(x), ptr(y), ptr(gain), ptr(bias), ptr(stats), rows, n, eps, 1/float32(n))
	}
}

// LayerNormBackward adds to dx the gradient of the inputs x of a layer norm whose
// outputs have the gradient dy, and to dgain and dbias those of its parameters.
func (s *Set) LayerNormBackward(dx, dy, x, gain, stats, dgain, dbias []float32) {
	n := len(gain)
	rows := len(stats) / 2
	check(n > 0 && len(dgain) == n && len(dbias) == n && len(x) == rows*n && len(dy) == rows*n && len(dx) == rows*n, "layer norm backward: lengths differ")
	if rows > 0 {
		s.layerNormBackward(ptr(dx), ptr(dy), ptr(x), ptr(gain), ptr(stats), ptr(dgain), ptr(dbias), rows, n, 1/float32(n))
	}
}

// GELU sets dst to GELU of x, in the tanh form or the erf form.
func (s *Set) GELU(dst, x []float32, erf bool) {
	check(len(x) == len(dst), "gelu: lengths differ")
	switch {
	case len(x) == 0:
	case erf:
		s.geluErf(ptr(dst), ptr(x), len(x))
	default:
		s.geluTanh(ptr(dst), ptr(x), len(x))
	}
}

// GELUBackward replaces x by its GELU, and d, the gradient of that, by the
// gradient of x.
func (s *Set) GELUBackward(x, d []float32, erf bool) {
	check(len(x) == len(d), "gelu backward: lengths differ")
	switch {
	case len(x) == 0:
	case erf:
		s.geluErfBackward(ptr(x), ptr(d), len(x))
	default:
		s.geluTanhBackward(ptr(x), ptr(d), len(x))
	}
}

// Softmax sets dst = post * softmax(scale*src). It returns the largest scaled
// input and the sum of e^(scaled input - largest): their logarithm sum is
// peak + ln(sum).
func (s *Set) Softmax(dst, src []float32, scale, post float32) (peak, sum float32) {
	check(len(src) == len(dst) && len(dst) > 0, "softmax: lengths differ")
	return s.softmax(ptr(dst), ptr(src), len(dst), scale, post)
}

// SoftmaxAgain repeats Softmax bit for bit from peak and post/sum.
func (s *Set) SoftmaxAgain(dst, src []float32, scale, peak, inv float32) {
	check(len(src) == len(dst) && len(dst) > 0, "softmax again: lengths differ")
	s.softmaxAgain(ptr(dst), ptr(src), len(dst), scale, peak, inv)
}

// SoftmaxBackward replaces d, the gradient of the probabilities p =
// softmax(scale*x), by the gradient of x.
func (s *Set) SoftmaxBackward(d, p []float32, scale float32) {
	check(len(p) == len(d), "softmax backward: lengths differ")
	if len(d) > 0 {
		s.softmaxBackward(ptr(d), ptr(p), len(d), scale)
	}
}

// AdamW holds the constants of one update; see package optim.
type AdamW struct {
	Beta1, OneMinusBeta1 float32
	Beta2, OneMinusBeta2 float32
	GradScale            float32 // multiplies gradients: clipping
	Decay                float32 // multiplies parameters: 1 - rate*decay
	Step                 float32 // rate / (1 - Beta1^t)
	InvSqrt              float32 // 1 / sqrt(1 - Beta2^t)
	Epsilon              float32
}

// Fields returns the constants in the order that Update takes.
func (a *AdamW) Fields() [9]float32 {
	return [9]float32{a.Beta1, a.OneMinusBeta1, a.Beta2, a.OneMinusBeta2, a.GradScale, a.Decay, a.Step, a.InvSqrt, a.Epsilon}
}

// Update applies one AdamW step to parameters p with gradients g and moments m, v.
func (s *Set) Update(p, g, m, v []float32, a *[9]float32) {
	check(len(g) == len(p) && len(m) == len(p) && len(v) == len(p), "adamw: lengths differ")
	if len(p) > 0 {
		s.adamW(ptr(p), ptr(g), ptr(m), ptr(v), len(p), &a[0])
	}
}

// Dropout copies src to dst, zeroing each element with probability p and
// dividing the others by 1-p. Which ones is a function of key and position
// alone; dst and src may be the same slice. At most 2^32 elements.
func (s *Set) Dropout(dst, src []float32, key uint64, p float32) {
	check(len(src) == len(dst), "dropout: lengths differ")
	if len(dst) > 0 {
		s.dropout(ptr(dst), ptr(src), len(dst), uint32(key), uint32(key>>32), uint32(math.Round(float64(p)*(1<<24))), 1/(1-p))
	}
}

// MixKey derives the key of part n from a key, with the finalizer of SplitMix64
// (Steele, Lea and Flood, 2014). Neighbouring keys or parts share nothing.
func MixKey(key, n uint64) uint64 {
	x := key + (n+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
