package gpt

import (
	"math"

	"github.com/trainyard/trainyard/trainer/internal/kernel"
)

// attentionRows are the operands of one head of one sequence; task counts heads
// within sequences.
func (s *Session) attentionRows(task int) (rows kernel.AttentionRows, first, column int) {
	a, t, c, hs := &s.layers[s.now.layer], s.now.batch.T, s.cfg.Channels, s.cfg.HeadSize()
	b, h := task/s.cfg.Heads, task%s.cfg.Heads
	first, column = b*t, h*hs
	qkv := a.qkv[first*3*c : (first+t)*3*c]
	rows = kernel.AttentionRows{
		Q: qkv[column:], K: qkv[c+column:], V: qkv[2*c+column:], LD: 3 * c, T: t,
		Scale: float32(1 / math.Sqrt(float64(hs))),
		Stats: a.soft[task*2*t : (task+1)*2*t],
	}
	if s.now.training && s.cfg.AttnDropout > 0 {
		rows.Dropout = s.cfg.AttnDropout
		rows.Key = s.dropKey(s.now.layer, siteWeights+h, b)
	}
	return rows, first, column
}

func (s *Session) attention(worker, task int) {
	rows, first, column := s.attentionRows(task)
	c := s.cfg.Channels
	s.heads[worker].Forward(s.layers[s.now.layer].att[first*c+column:], c, &rows)
}

func (s *Session) attentionBackward(worker, task int) {
	rows, first, column := s.attentionRows(task)
	c := s.cfg.Channels
	grad := s.dqkv[first*3*c:]
	s.heads[worker].Backward(grad[column:], grad[c+column:], grad[2*c+column:], 3*c, s.branch[first*c+column:], c, &rows)
}
