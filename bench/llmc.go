package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// llmcWorkload is the only one that train_gpt2.c can run without being changed:
// its batch is in its source.
const llmcWorkload = "gpt2-b4"

// llmcRunner runs a train_gpt2 of llm.c that the user built and whose directory
// has the model and tokens that it wants.
func llmcRunner(binary string, threads int) stepRunner {
	return stepRunner{
		name: "llm.c",
		can:  func(w workload) bool { return w.Name == llmcWorkload },
		run: func(ctx context.Context, w workload) (stepResult, error) {
			return runLLMC(ctx, binary, threads, w)
		},
	}
}

func runLLMC(ctx context.Context, binary string, threads int, w workload) (stepResult, error) {
	path, err := filepath.Abs(binary)
	if err != nil {
		return stepResult{}, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// Its output is buffered until the end, 40 steps later, unless line by line.
	cmd := exec.CommandContext(ctx, "stdbuf", "-oL", path)
	cmd.Dir = filepath.Dir(path)
	cmd.Env = environment([]string{fmt.Sprintf("OMP_NUM_THREADS=%d", threads)})
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return stepResult{}, err
	}
	if err := cmd.Start(); err != nil {
		return stepResult{}, err
	}
	r := stepResult{Version: "llm.c train_gpt2", Workload: w.Name, Threads: threads}
	readErr := readLLMC(stdout, w, &r)
	if readErr == nil {
		r.PeakRSSBytes, readErr = peakRSS(cmd.Process.Pid)
	}
	stop() // enough steps
	err = cmd.Wait()
	if readErr != nil {
		return stepResult{}, errors.Join(readErr, err)
	}
	r.MedianMS = median(r.StepMS)
	return r, nil
}

// readLLMC reads "step 3: train loss 4.1 (took 900.2 ms)" until w.Steps steps
// after the warm-up are there.
func readLLMC(out io.Reader, w workload, r *stepResult) error {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var step int
		var loss, ms float64
		if n, _ := fmt.Sscanf(lines.Text(), "step %d: train loss %f (took %f ms)", &step, &loss, &ms); n != 3 {
			continue
		}
		if step == 0 {
			r.FirstLoss = loss
		}
		r.LastLoss = loss
		if step >= w.Warmup {
			r.StepMS = append(r.StepMS, ms)
		}
		if len(r.StepMS) == w.Steps {
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return fmt.Errorf("llm.c ended after %d timed steps, want %d", len(r.StepMS), w.Steps)
}

// peakRSS returns the most memory that a running process ever had resident.
func peakRSS(pid int) (int64, error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib * 1024, nil
		}
	}
	return 0, fmt.Errorf("%s has no VmHWM", path)
}
