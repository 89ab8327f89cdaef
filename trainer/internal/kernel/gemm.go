package kernel

import (
	"github.com/trainyard/trainyard/trainer/internal/par"
)

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

// Blocks of the products' loops. None of them changes a bit of the result.
const (
	blockK    = 256 // k per packed panel: a panel of 32 columns is 32 KiB
	blockRows = 528 // rows per task when A is read in place, a multiple of all tile heights
	stripRows = 192 // rows per task when A is packed (TransA)
)

// Multiplier runs products over a pool. It is not safe for concurrent use.
type Multiplier struct {
	set     *Set
	pool    *par.Pool
	workers []scratch
	zero    []float32

	p                      Product
	panels, group, chunk   int // panels of B in all and per task, rows of A per task
	runInPlace, runStripes func(worker, task int)
}

type scratch struct {
	t      tile
	panel  []float32 // (blockK, width)
	strips []float32 // (stripRows/rows, blockK, rows) and slack for whole vectors
}

// NewMultiplier returns a multiplier over the pool's workers.
func NewMultiplier(set *Set, pool *par.Pool) *Multiplier {
	m := &Multiplier{set: set, pool: pool, zero: make([]float32, set.width)}
	for range pool.Workers() {
		m.workers = append(m.workers, scratch{
			panel:  Alloc(blockK * set.width),
			strips: Alloc(stripRows*blockK + 16),
		})
	}
	m.runInPlace, m.runStripes = m.inPlace, m.stripes
	return m
}

// Set returns the multiplier's kernels.
func (m *Multiplier) Set() *Set { return m.set }

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

// Run computes a product.
func (m *Multiplier) Run(p Product) {
	p.validate()
	m.p = p
	m.panels = ceil(p.N, m.set.width)
	n := m.pool.Workers()
	if !p.TransA {
		// A is read in place: a task is one panel of B and a chunk of rows.
		m.chunk = chunkOf(p.M, blockRows, m.set.rows)
		m.pool.Run(m.panels*ceil(p.M, m.chunk), m.runInPlace)
		return
	}
	// A is packed: a task is a chunk of rows and a group of panels, as few
	// groups as keep the workers busy, since each packs the chunk again.
	m.chunk = chunkOf(p.M, stripRows, m.set.rows)
	chunks := ceil(p.M, m.chunk)
	groups := min(m.panels, max(1, ceil(4*n, chunks)))
	if n == 1 {
		groups = 1
	}
	m.group = ceil(m.panels, groups)
	m.pool.Run(chunks*ceil(m.panels, m.group), m.runStripes)
}

// chunkOf splits rows into even chunks of at most limit, multiples of step.
func chunkOf(rows, limit, step int) int {
	chunks := ceil(rows, limit)
	return ceil(ceil(rows, chunks), step) * step
}

// pack brings rows [k0, k0+depth) of one panel of op(B) into order.
func (s *Set) pack(dst, b []float32, ldb int, trans bool, j0, cols, k0, depth int) {
	w := s.width
	if !trans {
		s.packPanel(ptr(dst), (*float32)(at(b, k0*ldb+j0)), depth, 4*ldb, 4*w, cols)
		return
	}
	if s.packTransposed != nil {
		blocks := depth / 8
		for j := 0; j < w; j += 8 {
			if blocks == 0 {
				break
			}
			if j+8 <= cols {
				s.packTransposed((*float32)(at(dst, j)), (*float32)(at(b, (j0+j)*ldb+k0)), blocks, 4*ldb, 4*w)
				continue
			}
			packScalar(dst, b, ldb, j0, j, min(j+8, w), cols, k0, 0, 8*blocks, w)
		}
		packScalar(dst, b, ldb, j0, 0, w, cols, k0, 8*blocks, depth, w)
		return
	}
	packScalar(dst, b, ldb, j0, 0, w, cols, k0, 0, depth, w)
}

// packScalar transposes columns [jFrom, jTo) and k in [kFrom, kTo), zero beyond cols.
func packScalar(dst, b []float32, ldb, j0, jFrom, jTo, cols, k0, kFrom, kTo, w int) {
	if kFrom >= kTo {
		return
	}
	for j := jFrom; j < jTo; j++ {
		if j >= cols {
			for k := kFrom; k < kTo; k++ {
				dst[k*w+j] = 0
			}
			continue
		}
		row := b[(j0+j)*ldb+k0:]
		for k := kFrom; k < kTo; k++ {
			dst[k*w+j] = row[k]
		}
	}
}

// start sets where the accumulators of block k0 begin.
func (m *Multiplier) start(t *tile, i0, j0, k0 int) {
	p := &m.p
	switch {
	case k0 > 0 || p.Accumulate:
		t.init, t.initLD = at(p.C, i0*p.LDC+j0), 4*p.LDC
	case p.Bias != nil:
		t.init, t.initLD = at(p.Bias, j0), 0
	default:
		t.init, t.initLD = at(m.zero, 0), 0
	}
	t.c, t.ldc = at(p.C, i0*p.LDC+j0), 4*p.LDC
}

func (m *Multiplier) inPlace(worker, task int) {
	w, p, s := &m.workers[worker], &m.p, m.set
	panel := task % m.panels
	i0 := task / m.panels * m.chunk
	rows := min(m.chunk, p.M-i0)
	j0 := panel * s.width
	cols := min(s.width, p.N-j0)
	t := &w.t
	t.n = cols
	for k0 := 0; k0 < p.K; k0 += blockK {
		depth := min(blockK, p.K-k0)
		s.pack(w.panel, p.B, p.LDB, p.TransB, j0, cols, k0, depth)
		if i0 == 0 {
			m.columnSums(w.panel, j0, cols, k0, depth)
		}
		t.a, t.rs, t.cs = at(p.A, i0*p.LDA+k0), 4*p.LDA, 4
		t.b, t.k = at(w.panel, 0), depth
		m.start(t, i0, j0, k0)
		s.run(t, rows)
	}
}

func (m *Multiplier) stripes(worker, task int) {
	w, p, s := &m.workers[worker], &m.p, m.set
	groups := ceil(m.panels, m.group)
	i0 := task / groups * m.chunk
	rows := min(m.chunk, p.M-i0)
	first := task % groups * m.group
	last := min(first+m.group, m.panels)
	t := &w.t
	for k0 := 0; k0 < p.K; k0 += blockK {
		depth := min(blockK, p.K-k0)
		for i := 0; i < rows; i += s.rows {
			s.packStrip(ptr(w.strips[i*depth:]), (*float32)(at(p.A, k0*p.LDA+i0+i)), depth, 4*p.LDA, 4*s.rows, min(s.rows, rows-i))
		}
		for panel := first; panel < last; panel++ {
			j0 := panel * s.width
			cols := min(s.width, p.N-j0)
			s.pack(w.panel, p.B, p.LDB, p.TransB, j0, cols, k0, depth)
			if i0 == 0 {
				m.columnSums(w.panel, j0, cols, k0, depth)
			}
			t.n, t.k = cols, depth
			for i := 0; i < rows; i += s.rows {
				t.a, t.rs, t.cs = at(w.strips, i*depth), 4, 4*s.rows
				t.b = at(w.panel, 0)
				m.start(t, i0+i, j0, k0)
				s.run(t, min(s.rows, rows-i))
			}
		}
	}
}

func (m *Multiplier) columnSums(panel []float32, j0, cols, k0, depth int) {
	if m.p.ColumnSums == nil {
		return
	}
	dst := m.p.ColumnSums[j0 : j0+cols]
	if k0 == 0 && !m.p.Accumulate {
		clear(dst)
	}
	m.set.ColumnSums(dst, panel, depth, m.set.width)
}
