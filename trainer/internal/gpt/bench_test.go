package gpt_test

import (
	"os"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/optim"
	"github.com/trainyard/trainyard/trainer/internal/par"
	"github.com/trainyard/trainyard/trainer/internal/rng"
)

// BenchmarkStep is one training step of the workloads in bench/, for profiles:
//
//	go test -run - -bench Step/small -cpuprofile cpu.prof ./internal/gpt
func BenchmarkStep(b *testing.B) {
	for _, w := range []struct {
		name                               string
		layers, heads, channels, vocab, bb int
		t                                  int
	}{
		{"small", 4, 4, 160, 1024, 8, 128},
		{"small-b32", 4, 4, 160, 1024, 32, 128},
		{"gpt2", 12, 12, 768, 50257, 4, 64},
	} {
		b.Run(w.name, func(b *testing.B) {
			m, err := gpt.New(gpt.Config{
				VocabSize: w.vocab, BlockSize: w.t, Layers: w.layers, Heads: w.heads, Channels: w.channels, Inner: 4 * w.channels,
				Activation: gpt.GELUTanh, Epsilon: 1e-5,
			})
			if err != nil {
				b.Fatal(err)
			}
			m.Init(rng.New(1, rng.Init))
			pool := par.NewPool(2)
			defer pool.Close()
			set, err := kernel.Choose(os.Getenv(kernel.EnvISA))
			if err != nil {
				b.Fatal(err)
			}
			s, err := gpt.NewSession(m, pool, gpt.SessionOptions{MaxB: w.bb, MaxT: w.t, Train: true, Kernels: set})
			if err != nil {
				b.Fatal(err)
			}
			o, err := optim.New(m.Params(), pool, optim.Config{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, Clip: 1, Kernels: set})
			if err != nil {
				b.Fatal(err)
			}
			batch := randomBatch(m.Config(), w.bb, w.t)
			for i := range batch.Targets {
				batch.Targets[i] = max(batch.Targets[i], 0)
			}
			for b.Loop() {
				if _, _, err := s.Train(batch, gpt.TrainOptions{GradScale: 1e-3}); err != nil {
					b.Fatal(err)
				}
				if _, err := o.Step(1e-4); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDecode is one token of GPT-2 124M behind a short prompt.
func BenchmarkDecode(b *testing.B) {
	cfg, err := gpt.Preset("gpt2")
	if err != nil {
		b.Fatal(err)
	}
	m, err := gpt.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	m.Init(rng.New(1, rng.Init))
	pool := par.NewPool(2)
	defer pool.Close()
	set, err := kernel.Choose(os.Getenv(kernel.EnvISA))
	if err != nil {
		b.Fatal(err)
	}
	d := gpt.NewDecoder(m, pool, set)
	for b.Loop() {
		if d.Len() == 64 {
			d.Reset()
		}
		if _, err := d.Feed([]int32{int32(d.Len())}); err != nil {
			b.Fatal(err)
		}
	}
}
