package main

import (
	"context"
	"fmt"
	"io"
	"slices"
)

// stepResult is what a contender prints for one run: a JSON object.
type stepResult struct {
	Contender    string    `json:"contender"`
	Version      string    `json:"version"`
	Workload     string    `json:"workload"`
	Threads      int       `json:"threads"`
	Tuning       string    `json:"tuning,omitempty"` // set here: the environment that was chosen
	StepMS       []float64 `json:"step_ms"`
	MedianMS     float64   `json:"median_ms"`
	PeakRSSBytes int64     `json:"peak_rss_bytes"`
	FirstLoss    float64   `json:"first_loss"`
	LastLoss     float64   `json:"last_loss"`
	PeakGFLOPS   float64   `json:"peak_gflops,omitempty"` // of the machine, measured by us alone
}

// stepRunner runs one contender once.
type stepRunner struct {
	name string
	run  func(ctx context.Context, w workload) (stepResult, error)
	can  func(w workload) bool // nil for every workload
}

// benchSteps runs all contenders on the workloads in alternating rounds and
// prints the comparison, then the trainer's scaling with threads.
func benchSteps(ctx context.Context, o options, trainer string, ws []workload, out, progress io.Writer) ([]stepResult, error) {
	runners := []stepRunner{trainerRunner(trainer, o.threads)}
	for n := 1; n < o.threads; n *= 2 {
		runners = append(runners, trainerRunner(trainer, n))
	}
	torch, err := tunePyTorch(ctx, o.threads, ws, progress)
	if err != nil {
		fmt.Fprintf(progress, "without PyTorch: %v\n", err)
	} else {
		runners = append(runners, torch)
	}
	if o.llmc != "" {
		runners = append(runners, llmcRunner(o.llmc, o.threads))
	}

	var all []stepResult
	for round := range o.rounds {
		for _, w := range ws {
			order := slices.Clone(runners)
			if round%2 == 1 { // who comes first alternates too
				slices.Reverse(order)
			}
			for _, r := range order {
				if r.can != nil && !r.can(w) {
					continue
				}
				got, err := r.run(ctx, w)
				if err != nil {
					return nil, fmt.Errorf("%s on %s: %w", r.name, w.Name, err)
				}
				got.Contender = r.name
				fmt.Fprintf(progress, "round %d  %-10s %-22s %8.1f ms/step\n", round+1, w.Name, r.name, got.MedianMS)
				all = append(all, got)
			}
		}
	}
	printSteps(out, o, ws, runners, all)
	return all, nil
}

func threadCount(n int) string {
	if n == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", n)
}

func trainerRunner(binary string, threads int) stepRunner {
	return stepRunner{
		name: "Trainyard, " + threadCount(threads),
		run: func(ctx context.Context, w workload) (stepResult, error) {
			return runJSON[stepResult](ctx, nil, binary, "step", "-workload", w.spec(), "-threads", fmt.Sprint(threads))
		},
	}
}
