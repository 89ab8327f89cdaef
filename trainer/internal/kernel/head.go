package kernel

// queryRows is how many rows of probabilities backward keeps at a time: a
// multiple of every tile height, so that blocks of queries and tiles of keys
// lie on one grid.
const queryRows = 252

// Head computes causal attention for one head of one sequence, in blocks: no
// T x T matrix outlives a call. Backward recomputes the probabilities from each
// row's largest score and sum, bit for bit, which measures faster than storing
// and reading them back. A Head is scratch memory for one worker.
type Head struct {
	set      *Set
	t        tile
	maxT, hs int
	ld       int       // floats from one row of scores to the next
	zero     []float32 // (width)
	p, d, q  []float32 // (rows, ld): probabilities, their gradient, probabilities after dropout
	byKey    panels    // K^T: columns are keys
	byKeyV   panels    // V^T
	values   panels    // V, or K in backward: columns are channels
	queries  panels    // rows of Q in a block
	outs     panels    // rows of dOut in a block
}

// panels is a packed matrix: panel i is (depth, width) at data[i*depth*width].
type panels struct {
	data  []float32
	depth int
}

func (p panels) at(panel, width, row int) []float32 {
	return p.data[(panel*p.depth+row)*width:]
}

// NewHead returns scratch for sequences of up to maxT tokens and heads of hs
// channels; backward tells whether Backward will be called.
func NewHead(set *Set, maxT, hs int, backward bool) *Head {
	h := &Head{set: set, maxT: maxT, hs: hs, zero: make([]float32, set.width)}
	// An odd number of lines between rows keeps columns out of one cache set.
	h.ld = ceil(maxT, 32)*32 + 16
	rows := set.rows
	keys, channels := ceil(maxT, set.width)*set.width, ceil(hs, set.width)*set.width
	h.byKey.data = Alloc(keys * hs)
	h.values.data = Alloc(channels * maxT)
	if backward {
		rows = min(queryRows, ceil(maxT, set.rows)*set.rows)
		h.d = Alloc(rows * h.ld)
		h.q = Alloc(rows * h.ld)
		h.byKeyV.data = Alloc(keys * hs)
		h.queries.data = Alloc(channels * rows)
		h.outs.data = Alloc(channels * rows)
	}
	h.p = Alloc(rows * h.ld)
	return h
}

// AttentionRows are the operands of a head: T rows of hs floats, LD apart.
type AttentionRows struct {
	Q, K, V []float32
	LD      int
	T       int
	Scale   float32   // of the scores: 1/sqrt(hs)
	Stats   []float32 // (T, 2): each row's largest scaled score and 1/sum
	Dropout float32   // probability of dropping a weight
	Key     uint64    // selects the masks, one for each row
}

func (h *Head) validate(a *AttentionRows) {
	need := (a.T-1)*a.LD + h.hs
	check(a.T > 0 && a.T <= h.maxT && a.LD >= h.hs && len(a.Q) >= need && len(a.K) >= need && len(a.V) >= need &&
		len(a.Stats) >= 2*a.T, "attention: lengths differ")
}

// packAll packs op(b) of the given depth and columns into panels.
func (h *Head) packAll(p *panels, b []float32, ldb int, trans bool, cols, depth int) {
	w := h.set.width
	p.depth = depth
	for j := 0; j < cols; j += w {
		h.set.pack(p.at(j/w, w, 0), b, ldb, trans, j, min(w, cols-j), 0, depth)
	}
}

// multiply computes rows x cols elements at c from A (strides in floats) and
// packed panels, starting at row kFrom of the panels.
func (h *Head) multiply(c []float32, ldc int, a []float32, rs, cs int, b *panels, rows, cols, kFrom, depth int, accumulate bool) {
	w, t := h.set.width, &h.t
	for j := 0; j < cols; j += w {
		t.a, t.rs, t.cs = at(a, 0), 4*rs, 4*cs
		t.b, t.k = at(b.at(j/w, w, kFrom), 0), depth
		t.c, t.ldc = at(c, j), 4*ldc
		t.init, t.initLD = at(h.zero, 0), 0
		if accumulate {
			t.init, t.initLD = t.c, t.ldc
		}
		t.n = min(w, cols-j)
		h.set.run(t, rows)
	}
}

// Forward writes softmax(Q K^T * Scale, causal) V to T rows of out, ldOut apart.
func (h *Head) Forward(out []float32, ldOut int, a *AttentionRows) {
	h.validate(a)
	check(len(out) >= (a.T-1)*ldOut+h.hs, "attention: output too short")
	h.packAll(&h.byKey, a.K, a.LD, true, a.T, h.hs)
	h.packAll(&h.values, a.V, a.LD, false, h.hs, a.T)
	for i0 := 0; i0 < a.T; i0 += h.set.rows {
		rows := min(h.set.rows, a.T-i0)
		end := i0 + rows
		h.multiply(h.p, h.ld, a.Q[i0*a.LD:], a.LD, 1, &h.byKey, rows, end, 0, h.hs, false)
		for r := range rows {
			i := i0 + r
			row := h.p[r*h.ld:]
			peak, sum := h.set.Softmax(row[:i+1], row[:i+1], a.Scale, 1)
			a.Stats[2*i], a.Stats[2*i+1] = peak, 1/sum
			if a.Dropout > 0 {
				h.set.Dropout(row[:i+1], row[:i+1], MixKey(a.Key, uint64(i)), a.Dropout)
			}
			clear(row[i+1 : end])
		}
		h.multiply(out[i0*ldOut:], ldOut, h.p, h.ld, 1, &h.values, rows, h.hs, 0, end, false)
	}
}

// Backward writes the gradients of Q, K and V, rows ldGrad apart, from that of
// the output, rows ldOut apart. a holds what Forward left in Stats.
func (h *Head) Backward(dq, dk, dv []float32, ldGrad int, dout []float32, ldOut int, a *AttentionRows) {
	h.validate(a)
	need := (a.T-1)*ldGrad + h.hs
	check(len(dq) >= need && len(dk) >= need && len(dv) >= need && len(dout) >= (a.T-1)*ldOut+h.hs && h.d != nil, "attention backward: lengths differ")
	h.packAll(&h.byKey, a.K, a.LD, true, a.T, h.hs)
	h.packAll(&h.byKeyV, a.V, a.LD, true, a.T, h.hs)
	h.packAll(&h.values, a.K, a.LD, false, h.hs, a.T)
	for b0 := 0; b0 < a.T; b0 += queryRows {
		b1 := min(b0+queryRows, a.T)
		h.packAll(&h.queries, a.Q[b0*a.LD:], a.LD, false, h.hs, b1-b0)
		h.packAll(&h.outs, dout[b0*ldOut:], ldOut, false, h.hs, b1-b0)
		dropped := h.p
		if a.Dropout > 0 {
			dropped = h.q
		}
		for i0 := b0; i0 < b1; i0 += h.set.rows {
			h.backwardRows(dq, ldGrad, dout, ldOut, a, b0, i0, min(h.set.rows, b1-i0))
		}
		// Columns of keys: only queries at or behind a key have weight on it.
		for j0 := 0; j0 < b1; j0 += h.set.rows {
			rows := min(h.set.rows, b1-j0)
			from := max(j0-b0, 0)
			later := j0 < b0 // an earlier block of queries has begun this sum
			h.multiply(dv[j0*ldGrad:], ldGrad, dropped[from*h.ld+j0:], 1, h.ld, &h.outs, rows, h.hs, from, b1-b0-from, later)
			h.multiply(dk[j0*ldGrad:], ldGrad, h.d[from*h.ld+j0:], 1, h.ld, &h.queries, rows, h.hs, from, b1-b0-from, later)
		}
	}
}

// backwardRows fills rows of the block's probabilities and of the scores'
// gradients, and writes the gradient of these queries.
func (h *Head) backwardRows(dq []float32, ldGrad int, dout []float32, ldOut int, a *AttentionRows, b0, i0, rows int) {
	end := i0 + rows
	p, d := h.p[(i0-b0)*h.ld:], h.d[(i0-b0)*h.ld:]
	h.multiply(p, h.ld, a.Q[i0*a.LD:], a.LD, 1, &h.byKey, rows, end, 0, h.hs, false)
	h.multiply(d, h.ld, dout[i0*ldOut:], ldOut, 1, &h.byKeyV, rows, end, 0, h.hs, false)
	for r := range rows {
		i := i0 + r
		prow, drow := p[r*h.ld:], d[r*h.ld:]
		h.set.SoftmaxAgain(prow[:i+1], prow[:i+1], a.Scale, a.Stats[2*i], a.Stats[2*i+1])
		clear(prow[i+1 : end])
		if a.Dropout > 0 {
			key := MixKey(a.Key, uint64(i))
			qrow := h.q[(i-b0)*h.ld:]
			h.set.Dropout(qrow[:i+1], prow[:i+1], key, a.Dropout)
			clear(qrow[i+1 : end])
			h.set.Dropout(drow[:i+1], drow[:i+1], key, a.Dropout)
		}
		h.set.SoftmaxBackward(drow[:i+1], prow[:i+1], a.Scale)
		clear(drow[i+1 : end])
	}
	h.multiply(dq[i0*ldGrad:], ldGrad, d, h.ld, 1, &h.values, rows, h.hs, 0, end, false)
}
