package gpt

// operations are the session's parallel loops, bound once: a method value made
// at each call would allocate.
type operations struct {
	embed, norm, addNorm, attention, gelu, dropBranch func(worker, task int)
	gather, loss, scatter                             func(worker, task int)
	normBackward, geluBackward, attentionBackward     func(worker, task int)
	dropGrad, dropEmbedGrad, embedBackward            func(worker, task int)
}

func (s *Session) bind() {
	s.work = operations{
		embed: s.embed, norm: s.normRows, addNorm: s.addNormRows, attention: s.attention, gelu: s.gelu, dropBranch: s.dropBranch,
		gather: s.gather, loss: s.loss, scatter: s.scatter,
		normBackward: s.normBackwardRows, geluBackward: s.geluBackward, attentionBackward: s.attentionBackward,
		dropGrad: s.dropGrad, dropEmbedGrad: s.dropEmbedGrad, embedBackward: s.embedBackward,
	}
}

// rowChunks is the number of parts into which rows are cut. It is fixed, so
// that the order in which sums over rows are added does not depend on the
// workers.
const rowChunks = 16

// byRows runs an operation over the batch's rows in rowChunks parts.
func (s *Session) byRows(f func(worker, task int)) { s.pool.Run(rowChunks, f) }

// chunk returns the rows [from, to) of a part; a part may be empty.
func (s *Session) chunk(task int) (from, to int) { return part(s.now.rows, task) }

func part(rows, task int) (from, to int) {
	size := (rows + rowChunks - 1) / rowChunks
	return min(task*size, rows), min((task+1)*size, rows)
}

// matrix is rows of activations, ld floats apart.
type matrix struct {
	x  []float32
	ld int
}

// plain and wide are rows of C and of Inner floats.
func (s *Session) plain(x []float32) matrix { return matrix{x, s.cfg.Channels} }
func (s *Session) wide(x []float32) matrix  { return matrix{x, s.innerLD} }

// rowsOf cuts rows [from, to) of width n.
func rowsOf(x []float32, from, to, n int) []float32 { return x[from*n : to*n] }
