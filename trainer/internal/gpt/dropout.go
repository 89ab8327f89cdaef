package gpt

import "github.com/trainyard/trainyard/trainer/internal/kernel"

// Sites of dropout, which with the pass's key, the layer and the row select a
// mask.
const (
	siteEmbed = iota
	siteAttnBranch
	siteInnerBranch
	siteWeights // plus the head
)

// dropKey derives the key of a mask from the pass's key, layer, site and row.
func (s *Session) dropKey(layer, site, row int) uint64 {
	return kernel.MixKey(kernel.MixKey(s.now.opts.DropoutKey, uint64(layer)<<32|uint64(site)), uint64(row))
}

// drop writes rows [from, to) of src, of width C, with dropout to dst.
func (s *Session) drop(dst, src []float32, from, to int, p float32) {
	c := s.cfg.Channels
	for r := from; r < to; r++ {
		s.set.Dropout(rowsOf(dst, r, r+1, c), rowsOf(src, r, r+1, c), s.dropKey(s.now.layer, s.now.site, r), p)
	}
}

// dropOut applies dropout to s.branch where the pass trains with some.
func (s *Session) dropOut(site int) {
	if s.now.training && s.cfg.ResidDropout > 0 {
		s.now.site = site
		s.byRows(s.work.dropBranch)
	}
}

func (s *Session) dropBranch(_, task int) {
	from, to := s.chunk(task)
	s.drop(s.branch, s.branch, from, to, s.cfg.ResidDropout)
}

// branchGrad returns the gradient of a branch's output: that of the residual
// stream, through the branch's dropout.
func (s *Session) branchGrad(site int) []float32 {
	if s.cfg.ResidDropout == 0 {
		return s.dres
	}
	s.now.site = site
	s.byRows(s.work.dropGrad)
	return s.branch
}

func (s *Session) dropGrad(_, task int) {
	from, to := s.chunk(task)
	s.drop(s.branch, s.dres, from, to, s.cfg.ResidDropout)
}

// embedGrad takes the residual stream's gradient through the embeddings' dropout.
func (s *Session) embedGrad() {
	s.now.layer, s.now.site = 0, siteEmbed
	if s.cfg.EmbdDropout > 0 {
		s.byRows(s.work.dropEmbedGrad)
	}
}

func (s *Session) dropEmbedGrad(_, task int) {
	from, to := s.chunk(task)
	s.drop(s.dres, s.dres, from, to, s.cfg.EmbdDropout)
}
