package train

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
)

func TestEvaluationIntervalChangesNoWeight(t *testing.T) {
	var want [8]float64
	for i, interval := range []int{5, 1, 7, 1000} {
		cfg := testConfig()
		cfg.EvalInterval = interval
		r := newRig(t, t.TempDir(), cfg)
		s := mustRun(t, r)
		if i == 0 {
			want = r.model.W
		}
		if r.model.W != want {
			t.Errorf("eval-interval %d: other weights", interval)
		}
		if last := s.Evals[len(s.Evals)-1]; last.Step != cfg.MaxIters {
			t.Errorf("eval-interval %d: last evaluation at step %d, want %d", interval, last.Step, cfg.MaxIters)
		}
	}
}

func TestLastStepIsEvaluatedAndSavedOffTheGrid(t *testing.T) {
	cfg := testConfig()
	cfg.MaxIters, cfg.EvalInterval = 300, 200
	if w := cfg.Warnings(); len(w) != 1 || !strings.Contains(w[0], "max-iters 300 is not a multiple of eval-interval 200") {
		t.Errorf("warnings %q", w)
	}
	r := newRig(t, t.TempDir(), cfg)
	s := mustRun(t, r)
	var steps []int
	for _, e := range s.Evals {
		steps = append(steps, e.Step)
	}
	if !slices.Equal(steps, []int{0, 200, 300}) {
		t.Errorf("evaluated at %v, want 0, 200, 300", steps)
	}
	rec, found, err := OpenCheckpoint(r.run, r.saver.Identity)
	if err != nil || !found || rec.Step != 300 || !rec.Finished {
		t.Errorf("checkpoint found %v at step %d, finished %v, error %v", found, rec.Step, rec.Finished, err)
	}
}

func TestAccumulationEqualsOneBigBatch(t *testing.T) {
	weights := func(batch, accumulation int) [8]float64 {
		cfg := testConfig()
		cfg.BatchSize, cfg.Accumulation, cfg.Global = batch, accumulation, 4
		r := newRig(t, t.TempDir(), cfg)
		r.loop.dropoutKey = 0
		mustRun(t, r)
		return r.model.W
	}
	// The dropout keys differ by micro-batch; the fake's masks weigh 1 % of a unit.
	one, four := weights(4, 1), weights(1, 4)
	for i := range one {
		if math.Abs(one[i]-four[i]) > 2e-3 {
			t.Errorf("weight %d: %v in one batch, %v in four", i, one[i], four[i])
		}
	}
}

func TestGradientScaleCountsTargetsOfTheWholeStep(t *testing.T) {
	cfg := testConfig()
	cfg.Accumulation, cfg.MaxIters, cfg.Warmup = 2, 1, 0
	model := &recordScale{}
	loop, err := New(cfg, model, &listSource{batches: []gpt.Batch{
		{B: 1, T: 4, Inputs: make([]int32, 4), Targets: []int32{1, 1, 1, gpt.Ignore}},
		{B: 1, T: 4, Inputs: make([]int32, 4), Targets: []int32{gpt.Ignore, gpt.Ignore, 1, 1}},
	}}, nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	s, err := loop.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(model.scales, []float32{.2, .2}) || !slices.Equal(model.adds, []bool{false, true}) {
		t.Errorf("scales %v, accumulate %v; want 1/5 twice, false then true", model.scales, model.adds)
	}
	// 3 targets at 2 nats and 2 at 2 nats are 2 nats a target.
	if s.Loss != 2 {
		t.Errorf("mean loss %v, want 2", s.Loss)
	}
}

type recordScale struct {
	scales []float32
	adds   []bool
}

func (m *recordScale) Train(b gpt.Batch, o gpt.TrainOptions) (float64, int, error) {
	m.scales, m.adds = append(m.scales, o.GradScale), append(m.adds, o.Accumulate)
	return 2 * float64(countTargets(b)), countTargets(b), nil
}
func (m *recordScale) Loss(gpt.Batch, []float32) (float64, int, error) { return 0, 1, nil }
func (m *recordScale) Step(float64) (float64, error)                   { return 1, nil }

type listSource struct{ batches []gpt.Batch }

func (s *listSource) Next(b *gpt.Batch) error {
	*b = s.batches[0]
	s.batches = s.batches[1:]
	return nil
}
func (s *listSource) State() ([]byte, error) { return nil, nil }
func (s *listSource) SetState([]byte) error  { return nil }

func TestStepWithoutTargetsIsAnError(t *testing.T) {
	cfg := testConfig()
	loop, err := New(cfg, &fakeModel{}, &listSource{batches: []gpt.Batch{
		{B: 1, T: 1, Inputs: []int32{0}, Targets: []int32{gpt.Ignore}}}}, nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loop.Run(t.Context()); !errors.Is(err, ErrData) {
		t.Errorf("%v, want ErrData", err)
	}
}

func TestDropoutKeysNeverRepeat(t *testing.T) {
	cfg := testConfig()
	cfg.Accumulation, cfg.MaxIters = 3, 50
	r := newRig(t, t.TempDir(), cfg)
	mustRun(t, r)
	seen := map[uint64]bool{}
	for _, k := range r.model.keys {
		seen[k] = true
	}
	if len(seen) != 150 {
		t.Errorf("%d keys in 150 micro-batches", len(seen))
	}
}

func TestDivergence(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*fakeModel)
		want  string
		saved int // step of the last good checkpoint
	}{
		"NaN loss":           {func(m *fakeModel) { m.lossAt = map[int]float64{8: math.NaN()} }, "at step 8: loss is NaN", 5},
		"infinite loss":      {func(m *fakeModel) { m.lossAt = map[int]float64{13: math.Inf(1)} }, "at step 13: loss is +Inf", 10},
		"NaN gradient":       {func(m *fakeModel) { m.normAt = map[int]float64{8: math.NaN()} }, "at step 8: gradient norm is NaN", 5},
		"infinite gradient":  {func(m *fakeModel) { m.normAt = map[int]float64{8: math.Inf(1)} }, "at step 8: gradient norm is +Inf", 5},
		"NaN held-out loss":  {func(m *fakeModel) { m.heldAt = map[int]float64{3: math.NaN()} }, "at step 10: held-out loss is NaN", 5},
		"NaN in the weights": {func(m *fakeModel) { m.heldAt = map[int]float64{3: 99} }, "not saved: weight is NaN", 5},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, t.TempDir(), testConfig())
			c.spoil(r.model)
			r.saver.Finite = func() error {
				if name == "NaN in the weights" && r.model.losses == 3 {
					return errors.New("weight is NaN")
				}
				return nil
			}
			_, err := r.train(t.Context(), 0)
			if !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want ErrDiverged with %q", err, c.want)
			}
			rec, found, err := OpenCheckpoint(r.run, r.saver.Identity)
			if err != nil || !found || rec.Step != c.saved || rec.Finished {
				t.Errorf("checkpoint found %v at step %d, finished %v, error %v; want step %d", found, rec.Step, rec.Finished, err, c.saved)
			}
		})
	}
}

func TestInterruptFinishesTheStepAndSaves(t *testing.T) {
	cause := errors.New("stopped by SIGTERM")
	ctx, cancel := context.WithCancelCause(t.Context())
	r := newRig(t, t.TempDir(), testConfig())
	r.loop.OnStep("signal", 0, func(hook context.Context, s *State) error {
		if s.Step == 7 {
			cancel(cause)
		}
		return hook.Err() // the hooks' own context does not end
	})
	s, err := r.train(ctx, 0)
	if !errors.Is(err, ErrInterrupted) || !errors.Is(err, cause) || !strings.Contains(err.Error(), "after step 7 of 20") {
		t.Errorf("error %v", err)
	}
	rec, found, err := OpenCheckpoint(r.run, r.saver.Identity)
	if err != nil || !found || rec.Step != 7 || rec.Finished || s.Step != 7 {
		t.Errorf("checkpoint found %v at step %d, finished %v, error %v", found, rec.Step, rec.Finished, err)
	}
}

func TestHooksRunByPriorityThenOrder(t *testing.T) {
	cfg := testConfig()
	cfg.MaxIters, cfg.Warmup = 1, 0
	r := newRig(t, t.TempDir(), cfg)
	var calls []string
	note := func(name string) Hook {
		return func(context.Context, *State) error { calls = append(calls, name); return nil }
	}
	r.loop.OnEnd("end", 0, note("end"))
	r.loop.OnEval("eval", 0, note("eval"))
	r.loop.OnStep("late", 9, note("late"))
	r.loop.OnStep("early, added second", 1, note("early"))
	r.loop.OnStep("late too", 9, note("late too"))
	r.loop.OnStart("start", 0, note("start"))
	mustRun(t, r)
	if got, want := strings.Join(calls, ", "), "start, eval, early, late, late too, eval, end"; got != want {
		t.Errorf("calls %s, want %s", got, want)
	}
}

func TestErrorOfAHookNamesHookAndStep(t *testing.T) {
	r := newRig(t, t.TempDir(), testConfig())
	r.killAt(3)
	_, err := r.train(t.Context(), 0)
	if !errors.Is(err, errKilled) || err.Error() != "kill at step 3: killed" {
		t.Errorf("error %v", err)
	}
}
