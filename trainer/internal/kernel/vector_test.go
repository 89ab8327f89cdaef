package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// lengths meet every tail: below, at and above one and two logical vectors.
var lengths = []int{1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 64, 100, 257}

// guard returns a copy of x with sentinels behind it that a kernel must not touch.
func guard(x []float32) []float32 {
	return append(slices.Clone(x), 12345, 12345)[:len(x)]
}

func checkGuard(t *testing.T, xs ...[]float32) {
	t.Helper()
	for i, x := range xs {
		if tail := x[len(x) : len(x)+2]; tail[0] != 12345 || tail[1] != 12345 {
			t.Fatalf("wrote behind operand %d of length %d", i, len(x))
		}
	}
}

func near(t *testing.T, what string, got []float32, want []float64, tolerance float64) {
	t.Helper()
	for i, w := range want {
		if d := math.Abs(float64(got[i]) - w); !(d <= tolerance*(1+math.Abs(w))) {
			t.Fatalf("%s of %d elements: element %d is %v, want %v", what, len(want), i, got[i], w)
		}
	}
}

func to64(f func(float64) float64, x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = f(float64(v))
	}
	return y
}

func geluTanh64(x float64) float64 {
	return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

func geluErf64(x float64) float64 { return 0.5 * x * (1 + math.Erf(x/math.Sqrt2)) }

// slope is the derivative by central differences.
func slope(f func(float64) float64) func(float64) float64 {
	return func(x float64) float64 { const h = 1e-5; return (f(x+h) - f(x-h)) / (2 * h) }
}

// vectorCase runs one kernel on operands of n elements, checks it against
// float64, and returns everything that it wrote.
type vectorCase struct {
	name string
	run  func(t *testing.T, s *Set, r *rand.Rand, n int) []float32
}

func vectorCases() []vectorCase {
	gelu := func(erf bool, f func(float64) float64) func(t *testing.T, s *Set, r *rand.Rand, n int) []float32 {
		return func(t *testing.T, s *Set, r *rand.Rand, n int) []float32 {
			x, dst := guard(random(r, n)), guard(make([]float32, n))
			for i := range x {
				x[i] *= 4
			}
			want, wantSlope := to64(f, x), to64(slope(f), x)
			s.GELU(dst, x, erf)
			near(t, "gelu", dst, want, 1e-6)
			d := guard(random(r, n))
			for i := range wantSlope {
				wantSlope[i] *= float64(d[i])
			}
			s.GELUBackward(x, d, erf)
			near(t, "gelu in backward", x, want, 1e-6)
			near(t, "gelu's gradient", d, wantSlope, 3e-6)
			checkGuard(t, x, dst, d)
			return slices.Concat(x, dst, d)
		}
	}
	return []vectorCase{
		{"add", func(t *testing.T, s *Set, r *rand.Rand, n int) []float32 {
			a, b, dst := guard(random(r, n)), guard(random(r, n)), guard(make([]float32, n))
			s.Add(dst, a, b)
			want := make([]float64, n)
			for i := range want {
				want[i] = float64(a[i]) + float64(b[i])
			}
			near(t, "sum", dst, want, 1e-6)
			checkGuard(t, dst)
			return dst
		}},
		{"axpy", func(t *testing.T, s *Set, r *rand.Rand, n int) []float32 {
			x, dst := guard(random(r, n)), guard(random(r, n))
			want := make([]float64, n)
			for i := range want {
				want[i] = float64(dst[i]) - 1.5*float64(x[i])
			}
			s.AXPY(dst, x, -1.5)
			near(t, "axpy", dst, want, 1e-6)
			checkGuard(t, dst)
			return dst
		}},
		{"dot and sum of squares", func(t *testing.T, s *Set, r *rand.Rand, n int) []float32 {
			a, b := random(r, n), random(r, n)
			var dot, sq float64
			for i := range a {
				dot += float64(a[i]) * float64(b[i])
				sq += float64(a[i]) * float64(a[i])
			}
			got := []float32{s.Dot(a, b), s.SumSquares(a)}
			near(t, "dot and squares", got, []float64{dot, sq}, 1e-5)
			return got
		}},
		{"column sums", func(t *testing.T, s *Set, r *rand.Rand, n int) []float32 {
			rows, ld := 1+n%5, n+3
			src, dst := random(r, rows*ld), guard(random(r, n))
			want := make([]float64, n)
			for j := range want {
				want[j] = float64(dst[j])
				for i := range rows {
					want[j] += float64(src[i*ld+j])
				}
			}
			s.ColumnSums(dst, src, rows, ld)
			near(t, "column sums", dst, want, 1e-6)
			checkGuard(t, dst)
			return dst
		}},
		{"layer norm", layerNormCase},
		{"tanh gelu", gelu(false, geluTanh64)},
		{"erf gelu", gelu(true, geluErf64)},
		{"softmax", softmaxCase},
		{"adamw", adamWCase},
		{"dropout", func(t *testing.T, s *Set, r *rand.Rand, n int) []float32 {
			x, dst := guard(random(r, n)), guard(make([]float32, n))
			s.Dropout(dst, x, 42, 0.25)
			for i, v := range dst {
				if v != 0 && math.Abs(float64(v-x[i]/0.75)) > 1e-6 {
					t.Fatalf("element %d of %d: %v from %v", i, n, v, x[i])
				}
			}
			checkGuard(t, dst)
			return dst
		}},
	}
}

func layerNormCase(t *testing.T, s *Set, r *rand.Rand, n int) []float32 {
	const rows, eps = 3, 1e-5
	x, y := random(r, rows*n), random(r, rows*n)
	gain, bias, dy := random(r, n), random(r, n), random(r, rows*n)
	sum, dst, same := guard(make([]float32, rows*n)), guard(make([]float32, rows*n)), guard(make([]float32, rows*n))
	stats, again := guard(make([]float32, 2*rows)), make([]float32, 2*rows)
	s.AddLayerNorm(dst, sum, x, y, gain, bias, stats, eps)
	s.LayerNorm(same, sum, gain, bias, again, eps)
	if !slices.Equal(dst, same) || !slices.Equal(stats, again) {
		t.Fatalf("n=%d: the norm of a sum differs from the norm of the sum", n)
	}
	norm := func(in []float64) []float64 {
		var mean, variance float64
		for _, v := range in {
			mean += v / float64(n)
		}
		for _, v := range in {
			variance += (v - mean) * (v - mean) / float64(n)
		}
		out := make([]float64, n)
		for i, v := range in {
			out[i] = (v-mean)/math.Sqrt(variance+eps)*float64(gain[i]) + float64(bias[i])
		}
		return out
	}
	dx, dgain, dbias := guard(random(r, rows*n)), guard(random(r, n)), guard(random(r, n))
	wantDX := make([]float64, rows*n)
	wantGain, wantBias := to64(func(v float64) float64 { return v }, dgain), to64(func(v float64) float64 { return v }, dbias)
	for row := range rows {
		in := to64(func(v float64) float64 { return v }, sum[row*n:(row+1)*n])
		out := norm(in)
		near(t, "layer norm", dst[row*n:(row+1)*n], out, 2e-5)
		// Gradient of sum(dy * norm(x)) by central differences.
		loss := func() (l float64) {
			for i, v := range norm(in) {
				l += v * float64(dy[row*n+i])
			}
			return l
		}
		for i := range in {
			const h = 1e-5
			at := in[i]
			in[i] = at + h
			up := loss()
			in[i] = at - h
			wantDX[row*n+i] = float64(dx[row*n+i]) + (up-loss())/(2*h)
			in[i] = at
			wantBias[i] += float64(dy[row*n+i])
			wantGain[i] += float64(dy[row*n+i]) * (out[i] - float64(bias[i])) / float64(gain[i])
		}
	}
	s.LayerNormBackward(dx, dy, sum, gain, stats, dgain, dbias)
	if n > 2 { // of one or two elements the deviation may vanish and the slope explode
		near(t, "layer norm's input gradient", dx, wantDX, 2e-3)
	}
	near(t, "gain's gradient", dgain, wantGain, 1e-3)
	near(t, "bias' gradient", dbias, wantBias, 1e-5)
	checkGuard(t, sum, dst, same, dx, dgain, dbias, stats)
	return slices.Concat(sum, dst, stats, dx, dgain, dbias)
}

func softmaxCase(t *testing.T, s *Set, r *rand.Rand, n int) []float32 {
	const scale, post = 0.3, 2
	x := random(r, n)
	for i := range x {
		x[i] *= 20
	}
	dst := guard(make([]float32, n))
	peak, sum := s.Softmax(dst, x, scale, post)
	var total float64
	top := math.Inf(-1)
	for _, v := range x {
		top = math.Max(top, scale*float64(v))
	}
	want := to64(func(v float64) float64 { return math.Exp(scale*v - top) }, x)
	for _, v := range want {
		total += v
	}
	near(t, "peak and sum", []float32{peak, sum}, []float64{top, total}, 1e-5)
	for i := range want {
		want[i] *= post / total
	}
	near(t, "softmax", dst, want, 1e-6)

	again := guard(make([]float32, n))
	s.SoftmaxAgain(again, x, scale, peak, post/sum)
	if !slices.Equal(dst, again) {
		t.Fatalf("n=%d: softmax is not repeated to the bit", n)
	}

	p, d := random(r, n), guard(random(r, n))
	s.Softmax(p, p, 1, 1)
	var inner float64
	for i := range p {
		inner += float64(p[i]) * float64(d[i])
	}
	for i := range want {
		want[i] = scale * float64(p[i]) * (float64(d[i]) - inner)
	}
	s.SoftmaxBackward(d, p, scale)
	near(t, "softmax's gradient", d, want, 1e-6)
	checkGuard(t, dst, again, d)
	return slices.Concat(dst, again, d, []float32{peak, sum})
}

func adamWCase(t *testing.T, s *Set, r *rand.Rand, n int) []float32 {
	p, g, m, v := guard(random(r, n)), random(r, n), guard(random(r, n)), guard(random(r, n))
	a := AdamW{
		Beta1: 0.9, OneMinusBeta1: 0.1, Beta2: 0.95, OneMinusBeta2: 0.05,
		GradScale: 0.5, Decay: 0.99, Step: 0.01, InvSqrt: 3, Epsilon: 1e-8,
	}
	wantP, wantM, wantV := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range v {
		v[i] *= v[i]
		grad := float64(g[i]) * 0.5
		wantM[i] = 0.9*float64(m[i]) + 0.1*grad
		wantV[i] = 0.95*float64(v[i]) + 0.05*grad*grad
		wantP[i] = float64(p[i])*0.99 - 0.01*wantM[i]/(math.Sqrt(wantV[i])*3+1e-8)
	}
	fields := a.Fields()
	s.Update(p, g, m, v, &fields)
	near(t, "parameters", p, wantP, 1e-5)
	near(t, "first moments", m, wantM, 1e-6)
	near(t, "second moments", v, wantV, 1e-6)
	checkGuard(t, p, m, v)
	return slices.Concat(p, m, v)
}

func TestVectorKernelsMatchFloat64AndEachOther(t *testing.T) {
	for _, c := range vectorCases() {
		t.Run(c.name, func(t *testing.T) {
			for _, n := range lengths {
				var first []float32
				for _, isa := range Available() {
					got := c.run(t, newSet(isa), rand.New(rand.NewPCG(uint64(n), 9)), n)
					switch {
					case isa == Portable:
					case first == nil:
						first = got
					case !slices.Equal(first, got):
						t.Errorf("n=%d: %s gives other bits than %s", n, isa, AVX2)
					}
				}
			}
		})
	}
}

func FuzzVectorKernels(f *testing.F) {
	f.Add(uint64(1), uint16(16), uint8(0))
	f.Add(uint64(2), uint16(33), uint8(4))
	cases := vectorCases()
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, which uint8) {
		c := cases[int(which)%len(cases)]
		var first []float32
		for _, isa := range Available() {
			got := c.run(t, newSet(isa), rand.New(rand.NewPCG(seed, 9)), 3+int(n)%600)
			switch {
			case isa == Portable:
			case first == nil:
				first = got
			case !slices.Equal(first, got):
				t.Errorf("%s, n=%d: %s gives other bits", c.name, n, isa)
			}
		}
	})
}

func TestDropoutIsOneMaskOnEveryISA(t *testing.T) {
	const n, p = 1 << 16, 0.1
	ones := make([]float32, n)
	for i := range ones {
		ones[i] = 1
	}
	var first []float32
	for _, isa := range Available() {
		got := make([]float32, n)
		newSet(isa).Dropout(got, ones, MixKey(7, 3), p)
		if first == nil {
			first = got
		} else if !slices.Equal(first, got) {
			t.Errorf("%s drops other elements", isa)
		}
	}
	kept := 0
	for _, v := range first {
		if v != 0 {
			kept++
		}
	}
	// Five standard deviations of a binomial count.
	if sd := math.Sqrt(n * p * (1 - p)); math.Abs(float64(kept)-n*(1-p)) > 5*sd {
		t.Errorf("kept %d of %d with p=%v", kept, n, p)
	}
	other := make([]float32, n)
	newSet(Portable).Dropout(other, ones, MixKey(7, 4), p)
	both := 0
	for i := range other {
		if other[i] != 0 && first[i] != 0 {
			both++
		}
	}
	if want := n * (1 - p) * (1 - p); math.Abs(float64(both)-want) > 5*math.Sqrt(want) {
		t.Errorf("neighbouring keys share %d kept elements, want about %.0f", both, want)
	}
}

func TestNaNIsNotHidden(t *testing.T) {
	nan := float32(math.NaN())
	everySet(t, func(t *testing.T, s *Set) {
		x := make([]float32, 20)
		x[18] = nan
		y := make([]float32, 20)
		for _, erf := range []bool{false, true} {
			s.GELU(y, x, erf)
			if y[18] == y[18] {
				t.Errorf("gelu (erf %v) of NaN is %v", erf, y[18])
			}
		}
		if _, sum := s.Softmax(y, x, 1, 1); sum == sum {
			t.Errorf("softmax over NaN sums to %v", sum)
		}
	})
}

func TestChooseRefusesWhatTheMachineLacks(t *testing.T) {
	for _, name := range []string{"sse9", "avx-512"} {
		if _, err := Choose(name); err == nil {
			t.Errorf("chose %q", name)
		}
	}
	for _, isa := range Available() {
		if s, err := Choose(string(isa)); err != nil || s.ISA() != isa {
			t.Errorf("asked for %s, got %v, %v", isa, s, err)
		}
	}
}
