package gpt

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/kernel"
	"github.com/trainyard/trainyard/trainer/internal/par"
)

func TestSessionBytesAreWhatASessionAllocates(t *testing.T) {
	cfg, err := Preset("nano")
	if err != nil {
		t.Fatal(err)
	}
	pool := par.NewPool(2)
	defer pool.Close()
	set, err := kernel.Choose("")
	if err != nil {
		t.Fatal(err)
	}
	for name, train := range map[string]bool{"training": true, "evaluation": false} {
		m, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		opts := SessionOptions{MaxB: 8, MaxT: 128, Train: train, Kernels: set}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := NewSession(m, pool, opts)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		runtime.KeepAlive(s)
		got := float64(after.TotalAlloc - before.TotalAlloc)
		// The session makes the gradients; the others are made elsewhere.
		others := 1.0
		if train {
			others = 3
		}
		want := sessionBytes(cfg, opts) - 4*others*float64(cfg.ParamCount())
		if got < want*0.97 || got > want*1.03 {
			t.Errorf("%s: %.0f bytes allocated, %.0f reckoned", name, got, want)
		}
	}
}

func TestSessionThatDoesNotFit(t *testing.T) {
	cfg, err := Preset("gpt2")
	if err != nil {
		t.Fatal(err)
	}
	opts := SessionOptions{MaxB: 1 << 20, MaxT: 1024, Train: true}
	err = checkMemory(cfg, opts, 16<<30)
	if !errors.Is(err, ErrMemory) || !strings.Contains(err.Error(), "the machine has 16.0: use smaller batches") {
		t.Errorf("%v", err)
	}
	for name, c := range map[string]struct {
		opts    SessionOptions
		machine uint64
	}{
		"a small one":        {SessionOptions{MaxB: 4, MaxT: 64, Train: true}, 3 << 30},
		"an unknown machine": {opts, 0},
	} {
		if err := checkMemory(cfg, c.opts, c.machine); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
