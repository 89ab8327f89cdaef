package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/trainyard/trainyard/trainer/internal/par"
)

func TestTileLayout(t *testing.T) {
	var x tile
	for i, offset := range []uintptr{
		unsafe.Offsetof(x.a), unsafe.Offsetof(x.rs), unsafe.Offsetof(x.cs), unsafe.Offsetof(x.b), unsafe.Offsetof(x.k),
		unsafe.Offsetof(x.c), unsafe.Offsetof(x.ldc), unsafe.Offsetof(x.init), unsafe.Offsetof(x.initLD), unsafe.Offsetof(x.n),
	} {
		if offset != uintptr(8*i) {
			t.Errorf("field %d of tile is at %d, the assembly reads it at %d", i, offset, 8*i)
		}
	}
}

// everySet runs a test for each instruction set of this machine.
func everySet(t *testing.T, f func(t *testing.T, s *Set)) {
	for _, isa := range Available() {
		t.Run(string(isa), func(t *testing.T) { f(t, newSet(isa)) })
	}
}

func random(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// randomProduct makes operands with rows longer than needed, so that a kernel
// which ignores a leading dimension, or writes beside its matrix, is seen.
func randomProduct(r *rand.Rand, m, n, k int, transA, transB, bias, accumulate, sums bool) Product {
	p := Product{M: m, N: n, K: k, TransA: transA, TransB: transB, Accumulate: accumulate}
	dims := func(rows, cols int) ([]float32, int) {
		ld := cols + r.IntN(4)
		return random(r, (rows-1)*ld+cols), ld
	}
	if transA {
		p.A, p.LDA = dims(k, m)
	} else {
		p.A, p.LDA = dims(m, k)
	}
	if transB {
		p.B, p.LDB = dims(n, k)
	} else {
		p.B, p.LDB = dims(k, n)
	}
	p.C, p.LDC = dims(m, n)
	if bias && !accumulate {
		p.Bias = random(r, n)
	}
	if sums {
		p.ColumnSums = random(r, n)
	}
	return p
}

// reference computes a product in float64, with the sum of magnitudes that
// bounds its rounding error.
func reference(p Product) (c, bound, sums []float64) {
	c, bound = make([]float64, p.M*p.N), make([]float64, p.M*p.N)
	sums = make([]float64, p.N)
	b := func(k, j int) float64 {
		if p.TransB {
			return float64(p.B[j*p.LDB+k])
		}
		return float64(p.B[k*p.LDB+j])
	}
	for i := range p.M {
		for j := range p.N {
			var sum, mag float64
			switch {
			case p.Accumulate:
				sum = float64(p.C[i*p.LDC+j])
			case p.Bias != nil:
				sum = float64(p.Bias[j])
			}
			mag = math.Abs(sum)
			for k := range p.K {
				a := float64(p.A[min(i*p.LDA+k, len(p.A)-1)])
				if p.TransA {
					a = float64(p.A[k*p.LDA+i])
				}
				sum += a * b(k, j)
				mag += math.Abs(a * b(k, j))
			}
			c[i*p.N+j], bound[i*p.N+j] = sum, mag
		}
	}
	for j := range p.N {
		if p.Accumulate && p.ColumnSums != nil {
			sums[j] = float64(p.ColumnSums[j])
		}
		for k := range p.K {
			sums[j] += b(k, j)
		}
	}
	return c, bound, sums
}

func checkProduct(t *testing.T, mul *Multiplier, p Product) {
	t.Helper()
	before := slices.Clone(p.C)
	want, bound, sums := reference(p)
	mul.Run(p)
	for i := range p.M {
		for j := range p.N {
			got := float64(p.C[i*p.LDC+j])
			if diff := math.Abs(got - want[i*p.N+j]); !(diff <= 1e-5*bound[i*p.N+j]+1e-30) {
				t.Fatalf("%dx%dx%d transA=%v transB=%v bias=%v accumulate=%v: C(%d,%d) = %v, want %v",
					p.M, p.N, p.K, p.TransA, p.TransB, p.Bias != nil, p.Accumulate, i, j, got, want[i*p.N+j])
			}
		}
		for j := p.N; j < p.LDC && i < p.M-1; j++ {
			if p.C[i*p.LDC+j] != before[i*p.LDC+j] {
				t.Fatalf("%dx%dx%d: wrote beside C at (%d,%d)", p.M, p.N, p.K, i, j)
			}
		}
	}
	for j, got := range p.ColumnSums {
		if math.Abs(float64(got)-sums[j]) > 1e-4*float64(p.K) {
			t.Fatalf("column sum %d = %v, want %v", j, got, sums[j])
		}
	}
}

func TestProductsOfAllFormsMatchFloat64(t *testing.T) {
	everySet(t, func(t *testing.T, s *Set) {
		pool := par.NewPool(3)
		defer pool.Close()
		mul := NewMultiplier(s, pool)
		r := rand.New(rand.NewPCG(1, 2))
		dims := []int{1, 2, 5, 6, 7, 11, 12, 13, 16, 17, 31, 32, 33, 48, 64, 65}
		for _, form := range []struct{ transA, transB bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
			for range 300 {
				m, n, k := dims[r.IntN(len(dims))], dims[r.IntN(len(dims))], dims[r.IntN(len(dims))]
				checkProduct(t, mul, randomProduct(r, m, n, k, form.transA, form.transB, r.IntN(2) == 0, r.IntN(3) == 0, r.IntN(2) == 0))
			}
			// Several blocks of k, chunks of rows, groups of panels.
			checkProduct(t, mul, randomProduct(r, 700, 70, 300, form.transA, form.transB, true, false, true))
			checkProduct(t, mul, randomProduct(r, 40, 300, 600, form.transA, form.transB, false, true, true))
		}
	})
}

func TestProductBitsAreEqualForAnyWorkersAndVectorWidth(t *testing.T) {
	sets := Available()
	if len(sets) < 2 {
		t.Logf("only %v here: comparing worker counts alone", sets)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, form := range []struct{ transA, transB bool }{{false, false}, {false, true}, {true, false}} {
		p := randomProduct(r, 130, 75, 515, form.transA, form.transB, true, false, true)
		var want []float32
		for _, isa := range sets[min(1, len(sets)-1):] {
			for _, workers := range []int{1, 2, 3} {
				pool := par.NewPool(workers)
				q := p
				q.C, q.ColumnSums = make([]float32, len(p.C)), make([]float32, p.N)
				NewMultiplier(newSet(isa), pool).Run(q)
				pool.Close()
				got := append(q.C, q.ColumnSums...)
				if want == nil {
					want = got
				} else if !slices.Equal(want, got) {
					t.Errorf("transA=%v transB=%v: %s with %d workers gives other bits", form.transA, form.transB, isa, workers)
				}
			}
		}
	}
}

func TestProductDoesNotAllocate(t *testing.T) {
	pool := par.NewPool(2)
	defer pool.Close()
	set, err := Choose("auto")
	if err != nil {
		t.Fatal(err)
	}
	mul := NewMultiplier(set, pool)
	p := randomProduct(rand.New(rand.NewPCG(5, 6)), 64, 64, 64, true, false, false, false, true)
	if n := testing.AllocsPerRun(20, func() { mul.Run(p) }); n != 0 {
		t.Errorf("a product allocates %v times", n)
	}
}

func FuzzProduct(f *testing.F) {
	f.Add(uint64(1), uint8(12), uint8(32), uint8(8), uint8(0))
	f.Add(uint64(2), uint8(13), uint8(33), uint8(255), uint8(31))
	pool := par.NewPool(2)
	var muls []*Multiplier
	for _, isa := range Available() {
		muls = append(muls, NewMultiplier(newSet(isa), pool))
	}
	f.Fuzz(func(t *testing.T, seed uint64, m, n, k, flags uint8) {
		for _, mul := range muls {
			r := rand.New(rand.NewPCG(seed, 7))
			checkProduct(t, mul, randomProduct(r, int(m)+1, int(n)+1, int(k)+1,
				flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0, flags&16 != 0))
		}
	})
}

// BenchmarkProduct prints GFLOP/s of the shapes that training uses; bench/ sets
// them beside the machine's peak and OpenBLAS.
func BenchmarkProduct(b *testing.B) {
	for _, isa := range Available() {
		for _, workers := range []int{1, 2} {
			for _, s := range []struct {
				name           string
				m, n, k        int
				transA, transB bool
			}{
				{"a-qkv", 1024, 480, 160, false, false}, {"a-proj", 1024, 160, 160, false, false},
				{"a-fcproj", 1024, 160, 640, false, false}, {"a-head", 1024, 1024, 160, false, true},
				{"a-fc-dX", 1024, 160, 640, false, true}, {"a-fc-dW", 160, 640, 1024, true, false},
				{"a-head-dW", 1024, 160, 1024, true, false}, {"a-head-dX", 1024, 160, 1024, false, false},
				{"b-fc", 256, 3072, 768, false, false}, {"b-fcproj", 256, 768, 3072, false, false},
				{"b-fc-dX", 256, 768, 3072, false, true}, {"b-fc-dW", 768, 3072, 256, true, false},
				{"b-head", 128, 50257, 768, false, true}, {"b-head-dX", 128, 768, 50257, false, false},
				{"b-head-dW", 50257, 768, 128, true, false},
			} {
				b.Run(fmt.Sprintf("%s/%d/%s", isa, workers, s.name), func(b *testing.B) {
					pool := par.NewPool(workers)
					defer pool.Close()
					mul := NewMultiplier(newSet(isa), pool)
					p := randomProduct(rand.New(rand.NewPCG(1, 2)), s.m, s.n, s.k, s.transA, s.transB, false, false, s.transA)
					for b.Loop() {
						mul.Run(p)
					}
					b.ReportMetric(2*float64(s.m)*float64(s.n)*float64(s.k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
	}
}
