package gpt

import "github.com/trainyard/trainyard/trainer/internal/kernel"

// forward runs the batch up to the final layer norm, whose output it leaves in
// s.norm, (M, C).
func (s *Session) forward() {
	s.now.layer = 0
	s.now.site = siteEmbed
	s.byRows(s.work.embed)
	s.runNorm(s.firstNormOf(0))
	for l := range s.layers {
		s.now.layer = l
		a, t := &s.layers[l], s.m.layer(l)
		s.linear(matrix{a.qkv, 3 * s.cfg.Channels}, s.plain(s.norm), t[attnW], t[attnB])
		s.pool.Run(s.now.batch.B*s.cfg.Heads, s.work.attention)
		s.linear(s.plain(s.branch), s.plain(a.att), t[projW], t[projB])
		s.dropOut(siteAttnBranch)
		s.runAddNorm(s.secondNormOf(l), a.x)
		s.linear(s.wide(a.h), s.plain(s.norm), t[fcW], t[fcB])
		s.byRows(s.work.gelu)
		s.linear(s.plain(s.branch), s.wide(s.inner), t[fcProjW], t[fcProjB])
		s.dropOut(siteInnerBranch)
		s.runAddNorm(s.firstNormOf(l+1), a.mid)
	}
}

// linear sets out = x*w + b for all rows; w is (in, out).
func (s *Session) linear(out, x matrix, w, b Param) {
	in, width := w.Shape[0], w.Shape[1]
	s.mul.Run(kernel.Product{
		M: s.now.rows, N: width, K: in, A: x.x, LDA: x.ld, B: w.Data, LDB: width, C: out.x, LDC: out.ld, Bias: b.Data,
	})
}

// embed writes token plus position embeddings, with dropout, to the first
// layer's residual stream.
func (s *Session) embed(_, task int) {
	from, to := s.chunk(task)
	c := s.cfg.Channels
	words, positions, x := s.m.params[wte].Data, s.m.params[wpe].Data, s.layers[0].x
	for r := from; r < to; r++ {
		id, pos := int(s.now.batch.Inputs[r]), r%s.now.batch.T
		s.set.Add(rowsOf(x, r, r+1, c), rowsOf(words, id, id+1, c), rowsOf(positions, pos, pos+1, c))
	}
	if s.now.training && s.cfg.EmbdDropout > 0 {
		s.drop(x, x, from, to, s.cfg.EmbdDropout)
	}
}

// runNorm normalises n's input into s.norm.
func (s *Session) runNorm(n norm) {
	s.now.norm = n
	s.byRows(s.work.norm)
}

func (s *Session) normRows(_, task int) {
	from, to := s.chunk(task)
	c, n := s.cfg.Channels, &s.now.norm
	s.set.LayerNorm(rowsOf(s.norm, from, to, c), rowsOf(n.x, from, to, c), n.gain.Data, n.bias.Data, rowsOf(n.stats, from, to, 2), s.cfg.Epsilon)
}

// runAddNorm adds s.branch to the residual stream x; the sum is n's input, and
// its normalised rows go to s.norm.
func (s *Session) runAddNorm(n norm, x []float32) {
	s.now.norm, s.now.add = n, x
	s.byRows(s.work.addNorm)
}

func (s *Session) addNormRows(_, task int) {
	from, to := s.chunk(task)
	c, n := s.cfg.Channels, &s.now.norm
	s.set.AddLayerNorm(rowsOf(s.norm, from, to, c), rowsOf(n.x, from, to, c), rowsOf(s.now.add, from, to, c), rowsOf(s.branch, from, to, c),
		n.gain.Data, n.bias.Data, rowsOf(n.stats, from, to, 2), s.cfg.Epsilon)
}

func (s *Session) gelu(_, task int) {
	from, to := s.chunk(task)
	in := s.innerLD // what pads a row is zero, and stays so
	s.set.GELU(rowsOf(s.inner, from, to, in), rowsOf(s.layers[s.now.layer].h, from, to, in), s.cfg.Activation == GELUErf)
}
