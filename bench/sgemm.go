package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
)

const (
	shapesFile     = "bench/shapes.txt"
	openblasSource = "bench/openblas/sgemm.c"
	openblasBinary = "bin/sgemm_openblas"
)

// sgemmResult is a line that a contender prints for one shape.
type sgemmResult struct {
	Contender    string  `json:"contender"`
	Version      string  `json:"version"`
	Shape        string  `json:"shape"`
	Form         string  `json:"form"` // NN, NT or TN
	M            int     `json:"m"`
	N            int     `json:"n"`
	K            int     `json:"k"`
	Threads      int     `json:"threads"`
	GFLOPSBest   float64 `json:"gflops_best"`
	GFLOPSMedian float64 `json:"gflops_median"`
	PeakGFLOPS   float64 `json:"peak_gflops,omitempty"` // measured beside the shape, by us alone
}

// sgemmRunner runs one contender over all shapes.
type sgemmRunner struct {
	name string
	run  func(ctx context.Context, threads int) ([]sgemmResult, error)
}

// benchSGEMM times the matrix products with one thread and with all, in
// alternating rounds, and prints one table for each.
func benchSGEMM(ctx context.Context, o options, trainer string, out, progress io.Writer) ([]sgemmResult, error) {
	runners := []sgemmRunner{{
		name: "Trainyard",
		run: func(ctx context.Context, threads int) ([]sgemmResult, error) {
			return runJSONLines[sgemmResult](ctx, nil, trainer, "sgemm", "-shapes", shapesFile, "-threads", fmt.Sprint(threads))
		},
	}}
	if openblas, err := buildOpenBLAS(ctx); err != nil {
		fmt.Fprintf(progress, "without OpenBLAS: %v\n", err)
	} else {
		runners = append(runners, openblas)
	}

	counts := []int{1}
	if o.threads > 1 {
		counts = append(counts, o.threads)
	}
	var all []sgemmResult
	for _, threads := range counts {
		var some []sgemmResult
		for round := range o.rounds {
			for _, r := range runners {
				got, err := r.run(ctx, threads)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", r.name, err)
				}
				for i := range got {
					got[i].Contender = r.name
				}
				some = append(some, got...)
				fmt.Fprintf(progress, "round %d  sgemm      %s, %s\n", round+1, r.name, threadCount(threads))
			}
		}
		printSGEMM(out, o, threads, runners, some)
		all = append(all, some...)
	}
	return all, nil
}

// buildOpenBLAS compiles the C contender when Debian's libopenblas-dev is there.
func buildOpenBLAS(ctx context.Context) (sgemmRunner, error) {
	if _, err := exec.LookPath("gcc"); err != nil {
		return sgemmRunner{}, fmt.Errorf("%w; `make bench-tools` installs it", err)
	}
	if err := os.MkdirAll("bin", 0o775); err != nil {
		return sgemmRunner{}, err
	}
	if _, err := output(ctx, nil, "gcc", "-O2", "-o", openblasBinary, openblasSource, "-lopenblas"); err != nil {
		return sgemmRunner{}, fmt.Errorf("%w\n`make bench-tools` installs Debian's libopenblas-dev", err)
	}
	return sgemmRunner{
		name: "OpenBLAS",
		run: func(ctx context.Context, threads int) ([]sgemmResult, error) {
			return runJSONLines[sgemmResult](ctx, nil, openblasBinary, shapesFile, fmt.Sprint(threads))
		},
	}, nil
}

// printSGEMM prints the medians over the rounds, shape by shape.
func printSGEMM(out io.Writer, o options, threads int, runners []sgemmRunner, all []sgemmResult) {
	values := make(map[[2]string][]float64) // by contender and shape
	version := make(map[string]string)
	peaks := make(map[string][]float64) // by shape
	var shapes []sgemmResult
	for _, r := range all {
		key := [2]string{r.Contender, r.Shape}
		if r.Contender == runners[0].name && values[key] == nil {
			shapes = append(shapes, r)
		}
		values[key] = append(values[key], r.GFLOPSMedian)
		version[r.Contender] = r.Version
		if r.PeakGFLOPS > 0 {
			peaks[r.Shape] = append(peaks[r.Shape], 100*r.GFLOPSMedian/r.PeakGFLOPS)
		}
	}
	fmt.Fprintf(out, "\n### Matrix products, %s, GFLOP/s\n\nMedian of %d runs.", threadCount(threads), o.rounds)
	for _, r := range runners {
		fmt.Fprintf(out, " %s: %s.", r.name, version[r.name])
	}
	fmt.Fprint(out, "\n\n| shape | form | M,N,K |")
	rule := "|---|---|---|"
	for _, r := range runners {
		fmt.Fprintf(out, " %s |", r.name)
		rule += "---:|"
	}
	fmt.Fprintf(out, " %s, %% of FMA peak |\n%s---:|\n", runners[0].name, rule)
	for _, s := range shapes {
		fmt.Fprintf(out, "| %s | %s | %d,%d,%d |", s.Shape, s.Form, s.M, s.N, s.K)
		for _, r := range runners {
			fmt.Fprintf(out, " %.0f |", median(values[[2]string{r.name, s.Shape}]))
		}
		fmt.Fprintf(out, " %s |\n", percent(median(peaks[s.Shape])))
	}
}

// percent writes a share of the peak, which portable kernels do not measure.
func percent(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", x)
}
