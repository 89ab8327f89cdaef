package kernel

import (
	"unsafe"

	"github.com/trainyard/trainyard/trainer/internal/par"
)

// Blocks of the products' loops. None of them changes a bit of the result.
const (
	blockK     = 256     // k per packed panel: a panel of 32 columns is 32 KiB
	chunkRows  = 528     // most rows of A in a task when A is read in place: 528 KiB of a block
	stripRows  = 192     // most rows of A in a task when A is packed
	prefetchOf = 1 << 18 // least elements of B, 1 MiB, for which reading ahead pays
)

// Multiplier runs products over a pool. It is not safe for concurrent use.
type Multiplier struct {
	set     *Set
	pool    *par.Pool
	workers []scratch
	zero    []float32

	p       Product
	plan    plan
	fetch   bool // B is large: ask for the next panel while this one is used
	runTask func(worker, task int)
}

type scratch struct {
	t      tile
	panel  []float32 // (blockK, width)
	strips []float32 // (stripRows/rows, stripSize(blockK))
	ahead  ahead
}

// NewMultiplier returns a multiplier over the pool's workers.
func NewMultiplier(set *Set, pool *par.Pool) *Multiplier {
	m := &Multiplier{set: set, pool: pool, zero: make([]float32, set.width)}
	for range pool.Workers() {
		m.workers = append(m.workers, scratch{
			panel:  Alloc(blockK * set.width),
			strips: Alloc(stripRows / set.rows * set.stripSize(blockK)),
		})
	}
	m.runTask = m.task
	return m
}

// stripSize is the floats from one strip of A to the next: depth rows of the
// tile's height, and slack for a whole vector behind the last.
func (s *Set) stripSize(depth int) int { return depth*s.rows + 16 }

// Set returns the multiplier's kernels.
func (m *Multiplier) Set() *Set { return m.set }

// Run computes a product.
func (m *Multiplier) Run(p Product) {
	p.validate()
	m.p = p
	m.plan = m.set.plan(&p, m.pool.Workers())
	m.fetch = m.set.prefetch != nil && p.N*p.K >= prefetchOf
	m.pool.Run(m.plan.chunks*m.plan.groups, m.runTask)
}

// task computes one chunk of rows times one group of panels.
func (m *Multiplier) task(worker, task int) {
	w, p, s := &m.workers[worker], &m.p, m.set
	// Neighbouring tasks share panels of B.
	i0 := task % m.plan.chunks * m.plan.chunk
	rows := min(m.plan.chunk, p.M-i0)
	first, last := m.plan.panels(task / m.plan.chunks)
	t := &w.t
	for k0 := 0; k0 < p.K; k0 += blockK {
		depth := min(blockK, p.K-k0)
		if p.TransA {
			strips := ceil(rows, s.rows)
			s.packStrips(ptr(w.strips), (*float32)(at(p.A, k0*p.LDA+i0)), depth, 4*p.LDA, strips, 4*s.stripSize(depth), rows-(strips-1)*s.rows)
		}
		for panel := first; panel < last; panel++ {
			j0 := panel * s.width
			cols := min(s.width, p.N-j0)
			s.pack(w.panel, p.B, p.LDB, p.TransB, j0, cols, k0, depth)
			if i0 == 0 {
				m.columnSums(w.panel, j0, cols, k0, depth)
			}
			if m.fetch {
				w.ahead = m.next(k0, panel, first, last, ceil(rows, s.rows))
			}
			t.b, t.k, t.n = at(w.panel, 0), depth, cols
			m.rows(w, i0, rows, j0, k0, depth)
		}
	}
}

// rows multiplies a chunk of rows with the packed panel.
func (m *Multiplier) rows(w *scratch, i0, rows, j0, k0, depth int) {
	p, s, t := &m.p, m.set, &w.t
	if p.TransA {
		t.rs, t.cs = 4, 4*s.rows
	} else {
		t.rs, t.cs = 4*p.LDA, 4
	}
	for i := 0; i < rows; i += s.rows {
		if p.TransA {
			t.a = at(w.strips, i/s.rows*s.stripSize(depth))
		} else {
			t.a = at(p.A, (i0+i)*p.LDA+k0)
		}
		m.start(t, i0+i, j0, k0)
		if m.fetch {
			w.ahead.fetch(s)
		}
		s.runTile(t, min(s.rows, rows-i))
	}
}

// start sets where C lies and where the accumulators of block k0 begin.
func (m *Multiplier) start(t *tile, i0, j0, k0 int) {
	p := &m.p
	t.c, t.ldc = at(p.C, i0*p.LDC+j0), 4*p.LDC
	switch {
	case k0 > 0 || p.Accumulate:
		t.init, t.initLD = t.c, t.ldc
	case p.Bias != nil:
		t.init, t.initLD = at(p.Bias, j0), 0
	default:
		t.init, t.initLD = at(m.zero, 0), 0
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

// ahead is the part of B that the next panel will be packed from, fetched a few
// rows with each tile: rows lie in pages of their own, where the processor does
// not foresee them.
type ahead struct {
	p             unsafe.Pointer
	rows, perTile int
	stride, lines int
}

// next returns what will be packed after this panel, to be fetched over tiles.
func (m *Multiplier) next(k0, panel, first, last, tiles int) ahead {
	p, w := &m.p, m.set.width
	if panel++; panel == last {
		panel, k0 = first, k0+blockK
	}
	if k0 >= p.K {
		return ahead{}
	}
	j0, depth := panel*w, min(blockK, p.K-k0)
	cols := min(w, p.N-j0)
	a := ahead{p: at(p.B, k0*p.LDB+j0), rows: depth, stride: 4 * p.LDB, lines: ceil(cols, 16)}
	if p.TransB {
		a = ahead{p: at(p.B, j0*p.LDB+k0), rows: cols, stride: 4 * p.LDB, lines: ceil(depth, 16)}
	}
	a.perTile = ceil(a.rows, tiles)
	return a
}

func (a *ahead) fetch(s *Set) {
	n := min(a.perTile, a.rows)
	if n == 0 {
		return
	}
	s.prefetch((*float32)(a.p), n, a.stride, a.lines)
	if a.rows -= n; a.rows > 0 { // a pointer must not leave its matrix
		a.p = unsafe.Add(a.p, n*a.stride)
	}
}
