package main

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/optim"
	"github.com/trainyard/trainyard/trainer/internal/par"
	"github.com/trainyard/trainyard/trainer/internal/rng"
)

// timeSteps trains on one random batch and times each step as the PyTorch
// contender does: forward, backward, clipping, AdamW, and reading the loss.
func timeSteps(w workload, set *kernel.Set, threads int) (result, error) {
	pool := par.NewPool(threads)
	defer pool.Close()
	model, err := gpt.New(w.config())
	if err != nil {
		return result{}, err
	}
	model.Init(rng.New(1, rng.Init))
	model.EnableGrad()
	session, err := gpt.NewSession(model, pool, gpt.SessionOptions{MaxB: w.Batch, MaxT: w.Tokens, Train: true, Kernels: set})
	if err != nil {
		return result{}, err
	}
	adamw, err := optim.New(model.Params(), pool, optim.Config{
		Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.1, Clip: 1, Kernels: set,
	})
	if err != nil {
		return result{}, err
	}
	batch := randomBatch(w)
	peak := peakGFLOPS(session.Kernels(), pool)

	r := result{
		Contender: "trainyard",
		Version:   runtime.Version(),
		Workload:  w.Name,
		Threads:   threads,
		Params:    model.Config().ParamCount(),
	}
	for step := range w.Warmup + w.Steps {
		start := time.Now()
		sum, n, err := session.Train(batch, gpt.TrainOptions{GradScale: 1 / float32(w.Batch*w.Tokens)})
		if err != nil {
			return result{}, fmt.Errorf("step %d: %w", step, err)
		}
		if _, err := adamw.Step(1e-4); err != nil {
			return result{}, fmt.Errorf("step %d: %w", step, err)
		}
		loss := sum / float64(n)
		took := time.Since(start)
		if step == 0 {
			r.FirstLoss = loss
		}
		r.LastLoss = loss
		if step >= w.Warmup {
			r.StepMS = append(r.StepMS, float64(took.Microseconds())/1e3)
		}
	}
	r.MedianMS = median(r.StepMS)
	r.PeakGFLOPS = max(peak, peakGFLOPS(session.Kernels(), pool))
	r.PeakRSSBytes, err = peakRSS()
	return r, err
}

// randomBatch returns the same tokens on every call.
func randomBatch(w workload) gpt.Batch {
	s := rng.New(1, rng.Data)
	b := gpt.Batch{B: w.Batch, T: w.Tokens,
		Inputs: make([]int32, w.Batch*w.Tokens), Targets: make([]int32, w.Batch*w.Tokens)}
	for i := range w.Batch {
		next := int32(s.Intn(w.Vocab))
		for t := range w.Tokens {
			b.Inputs[i*w.Tokens+t] = next
			next = int32(s.Intn(w.Vocab))
			b.Targets[i*w.Tokens+t] = next
		}
	}
	return b
}

// median returns the middle of values, the mean of the middle two when even.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}
