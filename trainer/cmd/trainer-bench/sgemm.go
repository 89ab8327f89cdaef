package main

import (
	"encoding/json"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/par"
)

// A sample is as many calls as fill sampleTime, long against the clock's and
// the scheduler's grain. The OpenBLAS contender takes the same.
const (
	samples    = 5
	sampleTime = 20 * time.Millisecond
)

// sgemmResult is a line that every contender prints for one shape.
type sgemmResult struct {
	Contender    string  `json:"contender"`
	Version      string  `json:"version"`
	Shape        string  `json:"shape"`
	Form         string  `json:"form"`
	M            int     `json:"m"`
	N            int     `json:"n"`
	K            int     `json:"k"`
	Threads      int     `json:"threads"`
	GFLOPSBest   float64 `json:"gflops_best"`
	GFLOPSMedian float64 `json:"gflops_median"`
	// PeakGFLOPS is the multiply-add units' peak, measured beside this shape.
	PeakGFLOPS float64 `json:"peak_gflops"`
}

// timeProducts times every shape and writes a line for each.
func timeProducts(shapes []shape, set *kernel.Set, threads int, out io.Writer) error {
	pool := par.NewPool(threads)
	defer pool.Close()
	multiplier := kernel.NewMultiplier(set, pool)
	enc := json.NewEncoder(out)
	for _, s := range shapes {
		peak := peakGFLOPS(set, pool)
		seconds := timeProduct(multiplier, s)
		flop := 2 * float64(s.m) * float64(s.n) * float64(s.k)
		if err := enc.Encode(sgemmResult{
			Contender: "trainyard",
			Version:   runtime.Version() + " " + string(set.ISA()),
			Shape:     s.name, Form: s.form, M: s.m, N: s.n, K: s.k,
			Threads:      threads,
			GFLOPSBest:   flop / slices.Min(seconds) / 1e9,
			GFLOPSMedian: flop / median(seconds) / 1e9,
			PeakGFLOPS:   max(peak, peakGFLOPS(set, pool)),
		}); err != nil {
			return err
		}
	}
	return nil
}

// timeProduct returns the seconds of one call, in each sample.
func timeProduct(multiplier *kernel.Multiplier, s shape) []float64 {
	// As in training: rows of activations lie kernel.Stride apart, weights dense.
	p := kernel.Product{
		M: s.m, N: s.n, K: s.k, TransA: s.form == "TN", TransB: s.form == "NT",
		LDA: kernel.Stride(s.k), LDB: s.n, LDC: kernel.Stride(s.n),
	}
	rowsA, rowsB := s.m, s.k
	switch s.form {
	case "TN": // a weight's gradient, of two activations
		rowsA, p.LDA, p.LDB, p.LDC = s.k, kernel.Stride(s.m), kernel.Stride(s.n), s.n
	case "NT":
		rowsB, p.LDB = s.n, s.k
	}
	p.A, p.B, p.C = filled(rowsA*p.LDA), filled(rowsB*p.LDB), kernel.Alloc(s.m*p.LDC)
	sample := func(calls int) time.Duration {
		start := time.Now()
		for range calls {
			multiplier.Run(p)
		}
		return time.Since(start)
	}
	calls := 1
	for sample(calls) < sampleTime { // warms up too
		calls *= 2
	}
	seconds := make([]float64, samples)
	for i := range seconds {
		seconds[i] = sample(calls).Seconds() / float64(calls)
	}
	return seconds
}

// filled returns n numbers in [-0.5, 0.5).
func filled(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(uint32(i)*2654435761%1000)/1000 - 0.5
	}
	return x
}
