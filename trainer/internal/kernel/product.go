package kernel

// Product describes C = init + op(A)*op(B): M x N elements over K. All matrices
// are row-major with rows LD floats apart.
type Product struct {
	M, N, K int
	A       []float32 // A(i, k) = A[i*LDA+k], or A[k*LDA+i] with TransA
	B       []float32 // B(k, j) = B[k*LDB+j], or B[j*LDB+k] with TransB
	C       []float32

	LDA, LDB, LDC  int
	TransA, TransB bool

	Bias       []float32 // (N): where rows of C start; nil for zero
	Accumulate bool      // C continues from what it holds; excludes Bias
	ColumnSums []float32 // (N): gets the sums of op(B) over k, or adds to them with Accumulate; nil for none
}

func ceil(a, b int) int { return (a + b - 1) / b }

func (p *Product) validate() {
	need := func(x []float32, rows, cols, ld int) bool {
		return ld >= cols && len(x) >= (rows-1)*ld+cols
	}
	ok := p.M > 0 && p.N > 0 && p.K > 0 && need(p.C, p.M, p.N, p.LDC)
	if p.TransA {
		ok = ok && need(p.A, p.K, p.M, p.LDA)
	} else {
		ok = ok && need(p.A, p.M, p.K, p.LDA)
	}
	if p.TransB {
		ok = ok && need(p.B, p.N, p.K, p.LDB)
	} else {
		ok = ok && need(p.B, p.K, p.N, p.LDB)
	}
	check(ok, "product: a matrix is shorter than its shape")
	check(p.Bias == nil || len(p.Bias) == p.N && !p.Accumulate, "product: bias has another length, or accumulates")
	check(p.ColumnSums == nil || len(p.ColumnSums) == p.N, "product: column sums have another length")
}

// Stride returns how far apart rows of n floats should lie: n, or a little more
// where a tile's rows would fall into one set of the first-level cache, which is
// addressed modulo 4 KiB, and push each other out.
func Stride(n int) int {
	const line, alias = 16, 512 // floats: 64 bytes, 2 KiB
	if n%alias != 0 {
		return n
	}
	return n + line
}
