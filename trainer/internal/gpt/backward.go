package gpt

import "github.com/trainyard/trainyard/trainer/internal/kernel"

// backward runs from the gradient of the final norm's output, in s.head, to the
// gradients of all parameters. s.dres holds the residual stream's gradient.
func (s *Session) backward() {
	s.byRows(s.work.scatter)
	s.runNormBackward(s.firstNormOf(len(s.layers)))
	for l := len(s.layers) - 1; l >= 0; l-- {
		s.now.layer = l
		a, t := &s.layers[l], s.m.layer(l)

		d := s.branchGrad(siteInnerBranch)
		s.inputGrad(s.wide(s.inner), s.plain(d), t[fcProjW])
		s.byRows(s.work.geluBackward)
		s.weightGrad(t[fcProjW], t[fcProjB], s.wide(a.h), s.plain(d)) // a.h now holds GELU's output
		s.runNorm(s.secondNormOf(l))
		s.weightGrad(t[fcW], t[fcB], s.plain(s.norm), s.wide(s.inner))
		s.inputGrad(s.plain(s.norm), s.wide(s.inner), t[fcW])
		s.runNormBackward(s.secondNormOf(l))

		d = s.branchGrad(siteAttnBranch)
		s.weightGrad(t[projW], t[projB], s.plain(a.att), s.plain(d))
		s.inputGrad(s.plain(s.norm), s.plain(d), t[projW])
		s.branch, s.norm = s.norm, s.branch // attention reads its output's gradient from s.branch
		s.pool.Run(s.now.batch.B*s.cfg.Heads, s.work.attentionBackward)
		s.runNorm(s.firstNormOf(l))
		s.weightGrad(t[attnW], t[attnB], s.plain(s.norm), matrix{s.dqkv, 3 * s.cfg.Channels})
		s.inputGrad(s.plain(s.norm), matrix{s.dqkv, 3 * s.cfg.Channels}, t[attnW])
		s.runNormBackward(s.firstNormOf(l))
	}
	s.embedGrad()
	s.byRows(s.work.embedBackward)
}

// inputGrad sets dx = dy * w^T.
func (s *Session) inputGrad(dx, dy matrix, w Param) {
	in, width := w.Shape[0], w.Shape[1]
	s.mul.Run(kernel.Product{
		M: s.now.rows, N: in, K: width, A: dy.x, LDA: dy.ld, B: w.Data, LDB: width, TransB: true, C: dx.x, LDC: dx.ld,
	})
}

// weightGrad sets, or adds to, the gradients of w and b: x^T * dy and dy's sums.
func (s *Session) weightGrad(w, b Param, x, dy matrix) {
	in, width := w.Shape[0], w.Shape[1]
	s.mul.Run(kernel.Product{
		M: in, N: width, K: s.now.rows, A: x.x, LDA: x.ld, TransA: true, B: dy.x, LDB: dy.ld, C: w.Grad, LDC: width,
		ColumnSums: b.Grad, Accumulate: s.now.opts.Accumulate,
	})
}

func (s *Session) geluBackward(_, task int) {
	from, to := s.chunk(task)
	in := s.innerLD // what pads a row is zero, and stays so
	s.set.GELUBackward(rowsOf(s.layers[s.now.layer].h, from, to, in), rowsOf(s.inner, from, to, in), s.cfg.Activation == GELUErf)
}

// runNormBackward adds to s.dres the gradient of n's input, given that of its
// output in s.norm, and finishes the gradients of gain and bias.
func (s *Session) runNormBackward(n norm) {
	s.now.norm = n
	s.byRows(s.work.normBackward)
	c := s.cfg.Channels
	if !s.now.opts.Accumulate {
		clear(n.gain.Grad)
		clear(n.bias.Grad)
	}
	for i := range rowChunks {
		gain, bias := s.partial(i)
		s.set.Add(n.gain.Grad, n.gain.Grad, gain[:c])
		s.set.Add(n.bias.Grad, n.bias.Grad, bias[:c])
	}
}

// partial returns one chunk's sums of the gradients of gain and bias.
func (s *Session) partial(task int) (gain, bias []float32) {
	c := s.cfg.Channels
	return rowsOf(s.partials, 2*task, 2*task+1, c), rowsOf(s.partials, 2*task+1, 2*task+2, c)
}

func (s *Session) normBackwardRows(_, task int) {
	from, to := s.chunk(task)
	c, n := s.cfg.Channels, &s.now.norm
	gain, bias := s.partial(task)
	clear(gain)
	clear(bias)
	s.set.LayerNormBackward(rowsOf(s.dres, from, to, c), rowsOf(s.norm, from, to, c), rowsOf(n.x, from, to, c), n.gain.Data,
		rowsOf(n.stats, from, to, 2), gain, bias)
}

// embedBackward adds the residual stream's gradient to the embeddings', a part
// of the channels a task: a word that occurs often is then summed in the order
// of its rows, by one worker.
func (s *Session) embedBackward(_, task int) {
	from, to := part(s.cfg.Channels, task)
	if from == to {
		return
	}
	c := s.cfg.Channels
	words, positions := s.m.params[wte].Grad, s.m.params[wpe].Grad
	if !s.now.opts.Accumulate {
		for pos := range s.cfg.BlockSize {
			clear(positions[pos*c+from : pos*c+to])
		}
	}
	for r := range s.now.rows {
		id, pos := int(s.now.batch.Inputs[r]), r%s.now.batch.T
		grad := s.dres[r*c+from : r*c+to]
		s.set.Add(words[id*c+from:id*c+to], words[id*c+from:id*c+to], grad)
		s.set.Add(positions[pos*c+from:pos*c+to], positions[pos*c+from:pos*c+to], grad)
	}
}
