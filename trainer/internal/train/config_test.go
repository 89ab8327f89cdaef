package train

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestConfigThatNoRunCanHave(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no steps":             {func(c *Config) { c.MaxIters = 0 }, "max-iters is 0"},
		"no batch":             {func(c *Config) { c.BatchSize = -1 }, "batch-size is -1"},
		"no workers":           {func(c *Config) { c.Workers = 0 }, "workers is 0"},
		"no accumulation":      {func(c *Config) { c.Accumulation = 0 }, "accumulation is 0"},
		"no block":             {func(c *Config) { c.BlockSize = 0 }, "block is 0"},
		"no evaluation":        {func(c *Config) { c.EvalInterval = 0 }, "eval-interval is 0"},
		"a product that fails": {func(c *Config) { c.Global = 12 }, "global-batch is 12, but batch-size 16 x workers 1 x accumulation 1 is 16"},
		"a huge batch":         {func(c *Config) { c.BatchSize = 1 << 18 }, "is 33554432 tokens in an update"},
		"a product that overflows": {func(c *Config) {
			c.BatchSize, c.Workers, c.Accumulation, c.BlockSize = math.MaxInt32, math.MaxInt32, math.MaxInt32, 4
		}, "tokens in an update"},
		"warm-up too long":   {func(c *Config) { c.Warmup = 301 }, "warmup is 301, longer than max-iters 300"},
		"zero rate":          {func(c *Config) { c.LearningRate = 0 }, "lr is 0"},
		"NaN rate":           {func(c *Config) { c.LearningRate = math.NaN() }, "lr is NaN"},
		"minimum above peak": {func(c *Config) { c.MinLearningRate = 1 }, "min-lr is 1"},
		"beta of 1":          {func(c *Config) { c.Beta2 = 1 }, "beta2 is 1"},
		"negative clip":      {func(c *Config) { c.Clip = -1 }, "clip is -1"},
		"dropout of all":     {func(c *Config) { c.Dropout = 1 }, "dropout is 1"},
	} {
		cfg := Default()
		c.change(&cfg)
		if err := cfg.Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	cfg := Default()
	cfg.Accumulation, cfg.Global = 4, 64
	if err := cfg.Validate(); err != nil {
		t.Errorf("a product that holds: %v", err)
	}
	if w := Default().Warnings(); len(w) != 0 {
		t.Errorf("the defaults warn: %q", w)
	}
}
