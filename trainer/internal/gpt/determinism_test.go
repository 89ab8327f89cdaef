package gpt_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/optim"
	"github.com/trainyard/trainyard/trainer/internal/par"
	"github.com/trainyard/trainyard/trainer/internal/rng"
)

// digest is the SHA-256 of all weights.
func digest(m *gpt.Model) string {
	h := sha256.New()
	for _, p := range m.Params() {
		for _, v := range p.Data {
			var b [4]byte
			binary.LittleEndian.PutUint32(b[:], math.Float32bits(v))
			h.Write(b[:])
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// trainFifty trains with dropout, accumulation, clipping and ignored targets.
func trainFifty(t *testing.T, isa kernel.ISA, workers int) string {
	t.Helper()
	set, err := kernel.Choose(string(isa))
	if err != nil {
		t.Fatal(err)
	}
	m, err := gpt.New(gpt.Config{
		VocabSize: 203, BlockSize: 40, Layers: 2, Heads: 3, Channels: 51, Inner: 130, Activation: gpt.GELUTanh, Epsilon: 1e-5,
		EmbdDropout: 0.1, AttnDropout: 0.1, ResidDropout: 0.1,
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Init(rng.New(1, rng.Init))
	pool := par.NewPool(workers)
	defer pool.Close()
	s, err := gpt.NewSession(m, pool, gpt.SessionOptions{MaxB: 3, MaxT: 37, Train: true, Kernels: set})
	if err != nil {
		t.Fatal(err)
	}
	o, err := optim.New(m.Params(), pool, optim.Config{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.1, Clip: 1, Kernels: set})
	if err != nil {
		t.Fatal(err)
	}
	b := randomBatch(m.Config(), 3, 37)
	for step := range 50 {
		for micro := range 2 {
			if _, _, err := s.Train(b, gpt.TrainOptions{
				GradScale: 1.0 / 200, Accumulate: micro > 0, DropoutKey: kernel.MixKey(uint64(step), uint64(micro)),
			}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := o.Step(3e-3); err != nil {
			t.Fatal(err)
		}
	}
	return digest(m)
}

func TestFiftyStepsGiveTheSameWeights(t *testing.T) {
	for _, group := range [][]kernel.ISA{{kernel.Portable}, {kernel.AVX2, kernel.AVX512}} {
		want := ""
		for _, isa := range group {
			if _, err := kernel.Choose(string(isa)); err != nil {
				t.Logf("this machine has no %s", isa)
				continue
			}
			for _, workers := range workersOf(isa) {
				got := trainFifty(t, isa, workers)
				if want == "" {
					want = got
				}
				if got != want {
					t.Errorf("%s with %d workers: weights %s, want %s", isa, workers, got, want)
				}
			}
			t.Logf("weights %s %s", isa, want) // scripts/same-bits.sh compares builds by this line
		}
	}
}

func TestTrainingDoesNotAllocate(t *testing.T) {
	m := smallModel(t, gpt.GELUTanh)
	if err := m.SetDropout(0.1, 0.1, 0.1); err != nil {
		t.Fatal(err)
	}
	set, err := kernel.Choose("auto")
	if err != nil {
		t.Fatal(err)
	}
	s := session(t, m, set, 2, 2, 7)
	pool := par.NewPool(2)
	defer pool.Close()
	o, err := optim.New(m.Params(), pool, optim.Config{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, Clip: 1, Kernels: set})
	if err != nil {
		t.Fatal(err)
	}
	b := randomBatch(m.Config(), 2, 7)
	if n := testing.AllocsPerRun(10, func() {
		if _, _, err := s.Train(b, gpt.TrainOptions{GradScale: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Step(1e-3); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Loss(b, nil); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a step allocates %v times", n)
	}
}

func TestUntrainedLossIsLogOfVocabulary(t *testing.T) {
	cfg, err := gpt.Preset("nano")
	if err != nil {
		t.Fatal(err)
	}
	if n := cfg.ParamCount(); math.Abs(float64(n)-1.38e6) > 5e3 {
		t.Errorf("nano has %d parameters, want about 1.38 million", n)
	}
	m, err := gpt.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m.Init(rng.New(1, rng.Init))
	pool := par.NewPool(2)
	defer pool.Close()
	set, err := kernel.Choose("")
	if err != nil {
		t.Fatal(err)
	}
	s, err := gpt.NewSession(m, pool, gpt.SessionOptions{MaxB: 2, MaxT: 128, Kernels: set})
	if err != nil {
		t.Fatal(err)
	}
	sum, n, err := s.Loss(randomBatch(cfg, 2, 128), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := math.Log(float64(cfg.VocabSize)); math.Abs(sum/float64(n)-want) > 0.01*want {
		t.Errorf("untrained loss is %v, want within 1 %% of ln V = %v", sum/float64(n), want)
	}
}

// workersOf spares the slow portable kernels two of the runs.
func workersOf(isa kernel.ISA) []int {
	if isa == kernel.Portable {
		return []int{1, 3}
	}
	return []int{1, 2, 3, 1}
}
