package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWorkloadsFileIsReadable(t *testing.T) {
	for name, params := range map[string]int64{"small-b8": 1_421_760, "small-b32": 1_421_760, "gpt2-b4": 124_439_808} {
		w, err := readWorkload("../../../bench/workloads.json:" + name)
		if err != nil {
			t.Fatal(err)
		}
		c := w.config()
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := c.ParamCount(); got != params {
			t.Errorf("%s has %d parameters, want %d", name, got, params)
		}
	}
}

func TestBadWorkloadsAreNamed(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, test := range map[string]struct{ spec, want string }{
		"no name":      {"workloads.json", "want FILE:NAME"},
		"no file":      {filepath.Join(dir, "none.json") + ":a", "none.json"},
		"not JSON":     {write("bad.json", "[") + ":a", "bad.json"},
		"unknown name": {write("ok.json", "[]") + ":a", `no workload "a"`},
		"no steps":     {write("zero.json", `[{"name":"a","batch":1,"tokens":1}]`) + ":a", "at least 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readWorkload(test.spec)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that says %q", err, test.want)
			}
		})
	}
}

func TestBatchIsShiftedAndRepeatable(t *testing.T) {
	w := workload{Batch: 2, Tokens: 3, Vocab: 50}
	a, b := randomBatch(w), randomBatch(w)
	for i := range a.Inputs {
		if a.Inputs[i] != b.Inputs[i] || a.Targets[i] != b.Targets[i] {
			t.Fatal("two batches differ")
		}
		if i%w.Tokens > 0 && a.Inputs[i] != a.Targets[i-1] {
			t.Errorf("input %d is %d, the target before it %d", i, a.Inputs[i], a.Targets[i-1])
		}
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 8}, 3}} {
		if got := median(test.values); got != test.want {
			t.Errorf("median(%v) = %v, want %v", test.values, got, test.want)
		}
	}
}
