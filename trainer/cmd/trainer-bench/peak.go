package main

import (
	"time"

	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/par"
)

// peakTime is how long each sample of the peak runs: what a product reaches is
// judged by the clock of that moment, so the peak is measured beside each.
const peakTime = 20 * time.Millisecond

// peakGFLOPS returns what the pool's workers reach together with independent
// multiply-adds in registers, or 0 for portable kernels.
func peakGFLOPS(set *kernel.Set, pool *par.Pool) float64 {
	const rounds = 1 << 17
	run := func(calls int) (flop float64, took time.Duration) {
		done := make([]float64, pool.Workers())
		start := time.Now()
		// One task for each worker; the pool hands them out to whoever is
		// free, and all are as long.
		pool.Run(pool.Workers(), func(_, task int) {
			for range calls {
				done[task] += set.PeakFLOP(rounds)
			}
		})
		took = time.Since(start)
		for _, f := range done {
			flop += f
		}
		return flop, took
	}
	best := 0.0
	calls := 1
	for range 16 {
		flop, took := run(calls)
		if took < peakTime {
			calls *= 2
			continue
		}
		best = max(best, flop/took.Seconds()/1e9)
		if best > 0 && took > 4*peakTime {
			break
		}
		calls *= 2
	}
	return best
}
