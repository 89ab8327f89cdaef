package gpt

import (
	"math"

	"github.com/trainyard/trainyard/trainer/internal/kernel"
)

// lossAndBackward finishes the pass behind s.norm, the final layer norm's
// output. Only rows with a target reach the output layer, which is most of the
// work of a small model and of padded data.
func (s *Session) lossAndBackward(perToken []float32) (sum float64, n int) {
	s.rows = s.rows[:0]
	for r, target := range s.now.batch.Targets {
		if target != Ignore {
			s.rows = append(s.rows, r)
		}
	}
	c, v, head := s.cfg.Channels, s.cfg.VocabSize, &s.m.params[wte]
	s.byRows(s.work.gather)
	ld := s.logitLD
	limit := len(s.logits) / ld
	for first := 0; first < len(s.rows); first += limit {
		count := min(limit, len(s.rows)-first)
		s.now.first, s.now.count = first, count
		x := rowsOf(s.head, first, first+count, c)
		s.mul.Run(kernel.Product{
			M: count, N: v, K: c, A: x, LDA: c, B: head.Data, LDB: c, TransB: true, C: s.logits, LDC: ld,
		})
		s.byRows(s.work.loss)
		if s.now.training {
			// The tied weights' gradient first: the rows' own gradient
			// then takes their place.
			s.mul.Run(kernel.Product{
				M: v, N: c, K: count, A: s.logits, LDA: ld, TransA: true, B: x, LDB: c, C: head.Grad, LDC: c,
				Accumulate: s.now.opts.Accumulate || first > 0,
			})
			s.mul.Run(kernel.Product{M: count, N: c, K: v, A: s.logits, LDA: ld, B: head.Data, LDB: c, C: x, LDC: c})
		}
	}
	if s.now.training {
		if len(s.rows) == 0 && !s.now.opts.Accumulate {
			clear(head.Grad)
		}
		s.backward()
	}
	clear(perToken)
	for i, r := range s.rows {
		sum += s.rowLoss[i]
		if perToken != nil {
			perToken[r] = float32(s.rowLoss[i])
		}
	}
	return sum, len(s.rows)
}

// gather copies the rows that have a target from s.norm to s.head.
func (s *Session) gather(_, task int) {
	from, to := part(len(s.rows), task)
	c := s.cfg.Channels
	for i := from; i < to; i++ {
		copy(rowsOf(s.head, i, i+1, c), rowsOf(s.norm, s.rows[i], s.rows[i]+1, c))
	}
}

// loss replaces rows of logits by their gradient and records each row's loss.
func (s *Session) loss(_, task int) {
	from, to := part(s.now.count, task)
	v, scale := s.cfg.VocabSize, float32(1)
	if s.now.training {
		scale = s.now.opts.GradScale
	}
	for i := from; i < to; i++ {
		row := s.logits[i*s.logitLD:][:v]
		target := s.now.batch.Targets[s.rows[s.now.first+i]]
		logit := row[target]
		peak, total := s.set.Softmax(row, row, 1, scale)
		row[target] -= scale
		s.rowLoss[s.now.first+i] = float64(peak) + math.Log(float64(total)) - float64(logit)
	}
}

// scatter writes the gradient of the final norm's output to s.norm: rows
// without a target get zero.
func (s *Session) scatter(_, task int) {
	from, to := s.chunk(task)
	c := s.cfg.Channels
	clear(rowsOf(s.norm, from, to, c))
	clear(rowsOf(s.dres, from, to, c))
	for i, r := range s.rows {
		if r >= from && r < to {
			copy(rowsOf(s.norm, r, r+1, c), rowsOf(s.head, i, i+1, c))
		}
	}
}
