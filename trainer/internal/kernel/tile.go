package kernel

import "unsafe"

// tile is what a tile kernel computes: up to rows x width elements of C, each
// started at its element of init and continued over k. Strides are in bytes.
// The assembly reads the fields by offset; TestTileLayout holds both together.
type tile struct {
	a      unsafe.Pointer
	rs, cs int            // from A(i, k) to A(i+1, k) and to A(i, k+1)
	b      unsafe.Pointer // packed panel
	k      int
	c      unsafe.Pointer
	ldc    int
	init   unsafe.Pointer // may be c itself
	initLD int            // 0 repeats one row
	n      int            // valid columns
}

// run computes rows x n elements, rows at least 1. Rows beyond the largest tile
// take several.
func (s *Set) run(t *tile, rows int) {
	for {
		r := min(rows, s.rows)
		s.runTile(t, r)
		if rows -= r; rows == 0 {
			return // before a pointer leaves its matrix, which the collector would not bear
		}
		t.a = unsafe.Add(t.a, r*t.rs)
		t.c = unsafe.Add(t.c, r*t.ldc)
		t.init = unsafe.Add(t.init, r*t.initLD)
	}
}

// runTile computes rows x n elements, rows at most s.rows.
func (s *Set) runTile(t *tile, rows int) {
	kernels := s.tiles[1]
	if t.n <= s.half {
		kernels = s.tiles[0]
	}
	kernels[rows]((*byte)(unsafe.Pointer(t)))
}

// at returns the address of x[i]; i may be len(x) only where nothing is read.
func at(x []float32, i int) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(x)), 4*i)
}
