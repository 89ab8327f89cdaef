package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
)

type options struct {
	rounds    int
	threads   int
	workloads string // comma-separated names; empty for all
	output    string // file for the samples; empty for none
	steps     bool
	sgemm     bool
	llmc      string // path of a built train_gpt2
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "runs of each contender")
	flag.IntVar(&o.threads, "threads", runtime.NumCPU(), "threads of each contender")
	flag.StringVar(&o.workloads, "workloads", "", "comma-separated names of bench/workloads.json (default all)")
	flag.StringVar(&o.output, "o", "", "write every sample to this file as JSON")
	flag.BoolVar(&o.steps, "steps", true, "time training steps")
	flag.BoolVar(&o.sgemm, "sgemm", true, "time matrix products")
	flag.Parse()
	o.llmc = os.Getenv("LLMC")

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// samples is everything that was measured, for -o.
type samples struct {
	Machine machine       `json:"machine"`
	Steps   []stepResult  `json:"steps,omitempty"`
	SGEMM   []sgemmResult `json:"sgemm,omitempty"`
}

func run(ctx context.Context, o options, out, progress io.Writer) error {
	if o.rounds < 1 || o.threads < 1 {
		return fmt.Errorf("-rounds and -threads must be at least 1")
	}
	if _, err := os.Stat(workloadsFile); err != nil {
		return fmt.Errorf("%w: run it from the root of the repository", err)
	}
	all, err := readWorkloads(workloadsFile)
	if err != nil {
		return err
	}
	chosen, err := selectWorkloads(all, o.workloads)
	if err != nil {
		return err
	}
	trainer, err := buildTrainerBench(ctx)
	if err != nil {
		return err
	}

	got := samples{Machine: describeMachine(ctx)}
	got.Machine.print(out)
	if o.steps {
		if got.Steps, err = benchSteps(ctx, o, trainer, chosen, out, progress); err != nil {
			return err
		}
	}
	if o.sgemm {
		if got.SGEMM, err = benchSGEMM(ctx, o, trainer, out, progress); err != nil {
			return err
		}
	}
	if o.output == "" {
		return nil
	}
	data, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.output, append(data, '\n'), 0o644)
}

func selectWorkloads(all []workload, names string) ([]workload, error) {
	if names == "" {
		return all, nil
	}
	var chosen []workload
	for name := range strings.SplitSeq(names, ",") {
		found := false
		for _, w := range all {
			if w.Name == name {
				chosen, found = append(chosen, w), true
			}
		}
		if !found {
			return nil, fmt.Errorf("%s has no workload %q", workloadsFile, name)
		}
	}
	return chosen, nil
}
