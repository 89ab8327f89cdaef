package main

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestWorkloadsFile(t *testing.T) {
	ws, err := readWorkloads("workloads.json")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range ws {
		names = append(names, w.Name)
		if w.Steps < 5 || w.tokensPerStep() < 1 {
			t.Errorf("%s: %d steps of %d tokens", w.Name, w.Steps, w.tokensPerStep())
		}
	}
	if want := []string{"small-b8", "small-b32", llmcWorkload}; !slices.Equal(names, want) {
		t.Errorf("workloads %v, want %v", names, want)
	}
}

func TestWorkloadOperations(t *testing.T) {
	// By hand: 2 tokens, C 3, V 5, one layer. Weights 12*9 + 5*3 = 123, so
	// 2*123 FLOP a token forward; attention 2*T*C = 12 a token; times 3 with
	// backward, times 2 tokens.
	w := workload{Layers: 1, Channels: 3, Vocab: 5, Batch: 1, Tokens: 2}
	if got, want := w.gflop(), 3*2*(2*123.0+12)/1e9; math.Abs(got-want) > 1e-15 {
		t.Errorf("%v GFLOP, want %v", got, want)
	}
}

func TestSelectWorkloads(t *testing.T) {
	all := []workload{{Name: "a"}, {Name: "b"}}
	got, err := selectWorkloads(all, "b")
	if err != nil || len(got) != 1 || got[0].Name != "b" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := selectWorkloads(all, "a,c"); err == nil || !strings.Contains(err.Error(), `"c"`) {
		t.Errorf("error %v does not name the workload", err)
	}
}

func TestPresetsDoNotReachContenders(t *testing.T) {
	t.Setenv("OPENBLAS_CORETYPE", "Haswell")
	t.Setenv("OMP_NUM_THREADS", "7")
	t.Setenv("UNRELATED", "kept")
	env := environment([]string{"OMP_NUM_THREADS=2"})
	if slices.Contains(env, "OPENBLAS_CORETYPE=Haswell") || slices.Contains(env, "OMP_NUM_THREADS=7") {
		t.Error("a preset got through")
	}
	if !slices.Contains(env, "UNRELATED=kept") || !slices.Contains(env, "OMP_NUM_THREADS=2") {
		t.Error("a wanted variable is missing")
	}
}

func TestReadLLMC(t *testing.T) {
	const log = `[GPT-2]
val loss 5.325529
step 0: train loss 4.677779 (took 1987.546000 ms)
step 1: train loss 5.191576 (took 1927.230000 ms)
step 2: train loss 4.438685 (took 1902.987000 ms)
step 3: train loss 4.1 (took 1900.0 ms)
`
	var r stepResult
	if err := readLLMC(strings.NewReader(log), workload{Warmup: 1, Steps: 2}, &r); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.StepMS, []float64{1927.230, 1902.987}) || r.FirstLoss != 4.677779 || r.LastLoss != 4.438685 {
		t.Errorf("read %+v", r)
	}
	if err := readLLMC(strings.NewReader(log), workload{Warmup: 1, Steps: 9}, &r); err == nil {
		t.Error("a run that ended early passed")
	}
}

func TestPrintSteps(t *testing.T) {
	ours, theirs := stepRunner{name: "ours"}, stepRunner{name: "theirs"}
	w := workload{Name: "w", About: "a test", Batch: 1, Tokens: 100, Steps: 5}
	var all []stepResult
	for _, ms := range []float64{12, 8, 10} {
		all = append(all, stepResult{Contender: "ours", Workload: "w", MedianMS: ms, PeakRSSBytes: 1 << 20, LastLoss: 4},
			stepResult{Contender: "theirs", Workload: "w", MedianMS: 3 * ms, PeakRSSBytes: 5 << 20, LastLoss: 4.5, Tuning: "tuned"})
	}
	var out strings.Builder
	printSteps(&out, options{rounds: 3}, []workload{w}, []stepRunner{ours, theirs}, all)
	for _, want := range []string{
		"| ours | 10.0 | 8.0–12.0 | 10000 | 0 | 1 | 4.00 | 1.00 |\n",
		"| theirs | 30.0 | 24.0–36.0 | 3333 | 0 | 5 | 4.50 | 3.00 |\n",
		"theirs ran with: tuned.",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("missing %q in\n%s", want, out.String())
		}
	}
}

func TestPrintSGEMM(t *testing.T) {
	runners := []sgemmRunner{{name: "ours"}, {name: "theirs"}}
	var all []sgemmResult
	for _, v := range []float64{10, 30, 20} {
		all = append(all, sgemmResult{Contender: "ours", Shape: "s", Form: "NT", M: 1, N: 2, K: 3, GFLOPSMedian: v, PeakGFLOPS: 25},
			sgemmResult{Contender: "theirs", Shape: "s", Form: "NT", M: 1, N: 2, K: 3, GFLOPSMedian: v / 2, Version: "v9"})
	}
	var out strings.Builder
	printSGEMM(&out, options{rounds: 3}, 1, runners, all)
	for _, want := range []string{"| s | NT | 1,2,3 | 20 | 10 | 80 |\n", "theirs: v9."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("missing %q in\n%s", want, out.String())
		}
	}
}
