package optim

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/par"
)

// params returns a matrix of more than one piece and a vector.
func params() []gpt.Param {
	r := rand.New(rand.NewPCG(1, 2))
	fill := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	const n = pieceSize + 37
	return []gpt.Param{
		{Name: "matrix", Shape: []int{n, 1}, Data: fill(n), Grad: fill(n), Decay: true},
		{Name: "vector", Shape: []int{5}, Data: fill(5), Grad: fill(5)},
	}
}

func optimizer(t *testing.T, p []gpt.Param, cfg Config, workers int) *AdamW {
	t.Helper()
	set, err := kernel.Choose("auto")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Kernels = set
	pool := par.NewPool(workers)
	t.Cleanup(pool.Close)
	o, err := New(p, pool, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

var common = Config{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.1, Clip: 1}

// The algorithm as in its paper, one parameter at a time in float64.
func TestStepsFollowThePaper(t *testing.T) {
	p := params()
	o := optimizer(t, p, common, 2)
	type moments struct{ w, m, v float64 }
	want := make([][]moments, len(p))
	var square float64
	for i := range p {
		for j, w := range p[i].Data {
			want[i] = append(want[i], moments{w: float64(w)})
			square += float64(p[i].Grad[j]) * float64(p[i].Grad[j])
		}
	}
	norm := math.Sqrt(square)
	for step := 1; step <= 5; step++ {
		lr := 0.01 * float64(step)
		got, err := o.Step(lr)
		if err != nil || math.Abs(got-norm) > 1e-5*norm {
			t.Fatalf("step %d: norm %v, %v; want %v", step, got, err, norm)
		}
		for i := range p {
			for j := range want[i] {
				x := &want[i][j]
				g := float64(p[i].Grad[j]) / norm // clipped to 1
				x.m = 0.9*x.m + 0.1*g
				x.v = 0.95*x.v + 0.05*g*g
				decay := 0.0
				if p[i].Decay {
					decay = 0.1
				}
				x.w -= lr * decay * x.w
				x.w -= lr * (x.m / (1 - math.Pow(0.9, float64(step)))) / (math.Sqrt(x.v/(1-math.Pow(0.95, float64(step)))) + 1e-8)
				if d := math.Abs(float64(p[i].Data[j]) - x.w); d > 1e-5 {
					t.Fatalf("step %d: %s[%d] is %v, want %v", step, p[i].Name, j, p[i].Data[j], x.w)
				}
			}
		}
	}
	if o.Steps() != 5 {
		t.Errorf("counted %d steps", o.Steps())
	}
}

func TestSmallGradientsAreNotScaled(t *testing.T) {
	a, b := params(), params()
	for i := range a {
		for j := range a[i].Grad {
			a[i].Grad[j] *= 1e-3
			b[i].Grad[j] *= 1e-3
		}
	}
	clipped, free := common, common
	clipped.Clip, free.Clip = 1, 0
	for _, x := range []*AdamW{optimizer(t, a, clipped, 1), optimizer(t, b, free, 1)} {
		if _, err := x.Step(0.01); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(a[0].Data, b[0].Data) {
		t.Error("a norm below the limit was clipped")
	}
}

func TestNothingIsUpdatedWhenTheNormIsNotFinite(t *testing.T) {
	for _, value := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		p := params()
		p[0].Grad[pieceSize+3] = value
		before := slices.Clone(p[1].Data)
		o := optimizer(t, p, common, 2)
		_, err := o.Step(0.01)
		if !errors.Is(err, ErrDiverged) {
			t.Errorf("gradient %v: %v, want ErrDiverged", value, err)
		}
		m, v := o.Moments(1)
		if !slices.Equal(before, p[1].Data) || o.Steps() != 0 || m[0] != 0 || v[0] != 0 {
			t.Errorf("gradient %v changed something", value)
		}
	}
}

func TestBadConfigurations(t *testing.T) {
	pool := par.NewPool(1)
	defer pool.Close()
	set, err := kernel.Choose("auto")
	if err != nil {
		t.Fatal(err)
	}
	good := common
	good.Kernels = set
	if _, err := New(params(), pool, good); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(c *Config){
		"beta1 of one":    func(c *Config) { c.Beta1 = 1 },
		"beta2 below 0":   func(c *Config) { c.Beta2 = -0.1 },
		"no epsilon":      func(c *Config) { c.Epsilon = 0 },
		"negative decay":  func(c *Config) { c.WeightDecay = -1 },
		"clip not finite": func(c *Config) { c.Clip = math.Inf(1) },
		"no kernels":      func(c *Config) { c.Kernels = nil },
		"beta1 not a number": func(c *Config) {
			c.Beta1 = math.NaN()
		},
	} {
		c := good
		edit(&c)
		if _, err := New(params(), pool, c); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v, want ErrConfig", name, err)
		}
	}
	p := params()
	p[1].Grad = nil
	if _, err := New(p, pool, good); !errors.Is(err, ErrConfig) {
		t.Errorf("no gradients: %v, want ErrConfig", err)
	}
}

func TestScheduleWarmsUpAndFalls(t *testing.T) {
	s := Schedule{Peak: 1, Min: 0.1, Warmup: 4, Total: 14}
	for step, want := range map[int]float64{
		0: 0.25, 3: 1, 4: 1, // the first step behind warm-up still has the peak
		9:  0.55, // half way down: the mean of peak and least
		14: 0.1, 99: 0.1,
	} {
		if got := s.Rate(step); math.Abs(got-want) > 1e-12 {
			t.Errorf("step %d: %v, want %v", step, got, want)
		}
	}
	if got := (Schedule{Peak: 2, Total: 0}).Rate(0); got != 0 {
		t.Errorf("no steps at all: %v", got)
	}
}
