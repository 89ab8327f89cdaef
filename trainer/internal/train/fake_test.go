package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/rng"
)

// fakeModel is a table with one weight a token, under gradient descent with
// momentum. All that the loop hands over moves its weights: tokens, targets,
// scale, accumulation, dropout key, learning rate, and the order of the calls.
type fakeModel struct {
	W, M [8]float64
	grad [8]float64
	keys []uint64

	lossAt map[int]float64 // loss to pretend at a call of Train, counted from 1
	normAt map[int]float64 // norm to pretend at a call of Step
	heldAt map[int]float64 // loss to pretend at a call of Loss
	trains int
	steps  int
	losses int
}

func (m *fakeModel) Train(b gpt.Batch, o gpt.TrainOptions) (float64, int, error) {
	m.trains++
	if !o.Accumulate {
		m.grad = [8]float64{}
	}
	m.keys = append(m.keys, o.DropoutKey)
	drop := float64(o.DropoutKey>>40) / (1 << 24) // in [0, 1)
	sum, n := 0.0, 0
	for i, in := range b.Inputs {
		if b.Targets[i] == gpt.Ignore {
			continue
		}
		d := m.W[in] - float64(b.Targets[i])
		sum += d * d
		n++
		m.grad[in] += float64(o.GradScale) * (2*d + 0.01*drop)
	}
	if l, ok := m.lossAt[m.trains]; ok {
		sum = l
	}
	return sum, n, nil
}

func (m *fakeModel) Loss(b gpt.Batch, _ []float32) (float64, int, error) {
	m.losses++
	sum, n := 0.0, 0
	for i, in := range b.Inputs {
		if b.Targets[i] != gpt.Ignore {
			d := m.W[in] - float64(b.Targets[i])
			sum += d * d
			n++
		}
	}
	if l, ok := m.heldAt[m.losses]; ok {
		sum = l * float64(n)
	}
	return sum, n, nil
}

func (m *fakeModel) Step(lr float64) (float64, error) {
	m.steps++
	norm := 0.0
	for _, g := range m.grad {
		norm += g * g
	}
	norm = math.Sqrt(norm)
	if x, ok := m.normAt[m.steps]; ok {
		return x, errors.New("norm is no number")
	}
	for i, g := range m.grad {
		m.M[i] = 0.9*m.M[i] + g
		m.W[i] -= lr * m.M[i]
	}
	return norm, nil
}

// fakeSource draws sequence by sequence, so the cut into batches does not matter.
type fakeSource struct {
	*rng.Stream
	b, t    int
	padding bool // a random tail of each sequence does not count
}

func (s *fakeSource) Next(b *gpt.Batch) error {
	*b = gpt.Batch{B: s.b, T: s.t, Inputs: make([]int32, s.b*s.t), Targets: make([]int32, s.b*s.t)}
	for i := range s.b {
		count := s.t
		if s.padding {
			count = 1 + s.Intn(s.t)
		}
		for j := range s.t {
			k := i*s.t + j
			b.Inputs[k], b.Targets[k] = int32(s.Intn(8)), int32(s.Intn(4))
			if j >= count {
				b.Targets[k] = gpt.Ignore
			}
		}
	}
	return nil
}

type heldOut []gpt.Batch

func (h heldOut) Batches() iter.Seq2[gpt.Batch, error] {
	return func(yield func(gpt.Batch, error) bool) {
		for _, b := range h {
			if !yield(b, nil) {
				return
			}
		}
	}
}

// fakeClock moves on by step at each look.
type fakeClock struct {
	t    time.Time
	step time.Duration
}

func (c *fakeClock) now() time.Time { c.t = c.t.Add(c.step); return c.t }

// rig is a run on fakes in a directory.
type rig struct {
	cfg   Config
	run   string
	model *fakeModel
	data  *fakeSource
	held  Evaluation
	loop  *Loop
	saver *Checkpointer
	clock *fakeClock
	hist  *History
}

func testConfig() Config {
	c := Default()
	c.MaxIters, c.BatchSize, c.BlockSize, c.Warmup, c.LearningRate, c.EvalInterval = 20, 2, 4, 3, 0.05, 5
	return c
}

// newRig opens the run in dir, resuming it where a checkpoint is found.
func newRig(t *testing.T, dir string, cfg Config) *rig {
	t.Helper()
	r := &rig{cfg: cfg, run: dir, model: &fakeModel{}, clock: &fakeClock{step: time.Millisecond}}
	r.data = &fakeSource{Stream: rng.New(cfg.Seed, rng.Data), b: cfg.BatchSize, t: cfg.BlockSize, padding: true}
	eval := fakeSource{Stream: rng.New(cfg.Seed, rng.Eval), b: 4, t: cfg.BlockSize}
	b := gpt.Batch{}
	if err := eval.Next(&b); err != nil {
		t.Fatal(err)
	}
	r.held = heldOut{b}
	r.saver = &Checkpointer{
		Run:      dir,
		Model:    func(d string) error { return writeFake(filepath.Join(d, "model.safetensors"), r.model.W) },
		Moments:  func(d string) error { return writeFake(filepath.Join(d, "state.safetensors"), r.model.M) },
		Data:     r.data,
		Identity: append(cfg.Identity(), fact("tokenizer", "sha256:1"), fact("train.bin", "sha256:2")),
		Host:     []Fact{fact("isa", "none")},
	}
	var err error
	if r.loop, err = New(cfg, r.model, r.data, r.held, r.clock.now); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) open(t *testing.T) *rig {
	t.Helper()
	if err := Recover(r.run); err != nil {
		t.Fatal(err)
	}
	rec, found, err := OpenCheckpoint(r.run, r.saver.Identity)
	if err != nil {
		t.Fatal(err)
	}
	if found {
		readFake(t, filepath.Join(r.run, LastDir, "model.safetensors"), &r.model.W)
		readFake(t, filepath.Join(r.run, LastDir, "state.safetensors"), &r.model.M)
		if err := r.loop.Resume(rec); err != nil {
			t.Fatal(err)
		}
	}
	if r.hist, err = OpenHistory(filepath.Join(r.run, HistoryName), rec.Step); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.hist.Close() })
	r.hist.Attach(r.loop, 2)
	return r
}

func (r *rig) train(ctx context.Context, saveInterval int) (State, error) {
	r.saver.Attach(r.loop, saveInterval)
	return r.loop.Run(ctx)
}

func writeFake(path string, w [8]float64) error {
	b, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}

func readFake(t *testing.T, path string, w *[8]float64) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, w)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// killAt makes the loop fail as if the process ended right after a step.
func (r *rig) killAt(step int) {
	r.loop.OnStep("kill", 0, func(_ context.Context, s *State) error {
		if s.Step == step {
			return errKilled
		}
		return nil
	})
}

var errKilled = errors.New("killed")

func mustRun(t *testing.T, r *rig) State {
	t.Helper()
	s, err := r.train(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fileText(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func ExampleConfig_Validate() {
	c := Default()
	c.BatchSize, c.Workers, c.Accumulation, c.Global = 8, 2, 1, 32
	fmt.Println(c.Validate())
	// Output: invalid training configuration: global-batch is 32, but batch-size 8 x workers 2 x accumulation 1 is 16
}
