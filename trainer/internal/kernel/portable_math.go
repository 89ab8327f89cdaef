package kernel

import "math"

// exp32 is Cephes' expf (Moshier) with every operation rounded; arguments are
// held to [-87, 88] and NaN stays NaN.
func exp32(x float32) float32 {
	x = min(max(x, -87), 88)
	n := float32(math.RoundToEven(float64(float32(x * math.Log2E))))
	x -= float32(n * 0.693359375)
	x -= float32(n * -2.12194440e-4)
	p := float32(1.9875691500e-4)
	for _, c := range [...]float32{1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1} {
		p = float32(p*x) + c
	}
	p = float32(p*x) + 1
	if n != n {
		return n
	}
	return math.Float32frombits(math.Float32bits(p) + uint32(int32(n))<<23)
}

// geluTanhScalar returns GELU in the tanh form and its derivative.
func geluTanhScalar(x float32) (y, dy float32) {
	const k0, k1 = 0.7978845608028654, 0.044715
	sq := x * x
	s := 1 / (1 + exp32(-2*k0*float32(x+float32(k1*float32(x*sq)))))
	du := 2*k0 + float32(6*k0*k1*sq)
	y = x * s
	return y, s + float32(y*float32(float32(1-s)*du))
}

// geluErfScalar returns GELU in the erf form and its derivative.
func geluErfScalar(x float32) (y, dy float32) {
	phi := float32(0.5 * math.Erfc(-float64(x)/math.Sqrt2))
	density := exp32(float32(x*x)*-0.5) * float32(1/math.Sqrt(2*math.Pi))
	return x * phi, phi + float32(x*density)
}

func portableGELU(f func(float32) (y, dy float32)) func(dst, x *float32, n int) {
	return func(dst, x *float32, n int) {
		d := view(dst, n)
		for i, v := range view(x, n) {
			d[i], _ = f(v)
		}
	}
}

func portableGELUBackward(f func(float32) (y, dy float32)) func(x, d *float32, n int) {
	return func(x, d *float32, n int) {
		in, grad := view(x, n), view(d, n)
		for i, v := range in {
			y, dy := f(v)
			in[i], grad[i] = y, dy*grad[i]
		}
	}
}
