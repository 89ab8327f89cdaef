package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// Debian's interpreter, which has Debian's PyTorch: a pyenv or conda python
// earlier in PATH has not.
const (
	python       = "/usr/bin/python3"
	pytorchSteps = "bench/pytorch/train_step.py"
)

// keepMemory stops glibc from giving freed memory back to the system after each
// step, only to fault it in again: PyTorch 1.13 has no caching allocator on CPUs.
var keepMemory = []string{"MALLOC_TOP_PAD_=268435456", "MALLOC_TRIM_THRESHOLD_=17179869184", "MALLOC_MMAP_THRESHOLD_=17179869184"}

// tuning is a set of variables to start PyTorch with. As it comes, its OpenMP
// threads and OpenBLAS's spin against each other.
type tuning struct {
	name string
	env  []string
	args []string
}

func tunings() []tuning {
	with := func(extra ...string) []string { return append(append([]string{}, keepMemory...), extra...) }
	return []tuning{
		{name: "as it comes"},
		{name: "no trimming", env: keepMemory},
		{name: "no trimming, OPENBLAS_NUM_THREADS=1", env: with("OPENBLAS_NUM_THREADS=1")},
		{name: "no trimming, OMP_WAIT_POLICY=passive", env: with("OMP_WAIT_POLICY=passive")},
		{name: "no trimming, both", env: with("OPENBLAS_NUM_THREADS=1", "OMP_WAIT_POLICY=passive")},
		{name: "no trimming, OMP_WAIT_POLICY=passive, foreach AdamW", env: with("OMP_WAIT_POLICY=passive"), args: []string{"--foreach"}},
	}
}

// tunePyTorch tries every tuning once on every workload and returns a runner
// that uses each workload's fastest.
func tunePyTorch(ctx context.Context, threads int, ws []workload, progress io.Writer) (stepRunner, error) {
	if _, err := output(ctx, nil, python, "-c", "import torch"); err != nil {
		return stepRunner{}, fmt.Errorf("%s has no torch; `make bench-tools` installs Debian's python3-torch", python)
	}
	best := make(map[string]tuning)
	for _, w := range ws {
		fastest := 0.0
		for _, t := range tunings() {
			got, err := runPyTorch(ctx, w, threads, t)
			if err != nil {
				return stepRunner{}, err
			}
			fmt.Fprintf(progress, "tuning   %-10s PyTorch %-60s %8.1f ms/step\n", w.Name, t.name, got.MedianMS)
			if fastest == 0 || got.MedianMS < fastest {
				fastest, best[w.Name] = got.MedianMS, t
			}
		}
	}
	return stepRunner{
		name: debianPyTorch(ctx),
		run: func(ctx context.Context, w workload) (stepResult, error) {
			return runPyTorch(ctx, w, threads, best[w.Name])
		},
	}, nil
}

func runPyTorch(ctx context.Context, w workload, threads int, t tuning) (stepResult, error) {
	args := append([]string{pytorchSteps, "--workload", w.spec(), "--threads", fmt.Sprint(threads)}, t.args...)
	r, err := runJSON[stepResult](ctx, t.env, python, args...)
	r.Tuning = t.name
	return r, err
}

// debianPyTorch names the package: the library's own version string is that of
// a snapshot.
func debianPyTorch(ctx context.Context) string {
	out, err := output(ctx, nil, "dpkg-query", "-W", "-f", "${Version}", "python3-torch")
	if err != nil {
		return "PyTorch"
	}
	version, _, _ := strings.Cut(string(out), "+")
	return "Debian's PyTorch " + version
}
