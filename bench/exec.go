package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// presets are variables that steer a contender. What the user's shell has set
// would be measured instead of the library, so they are taken out.
var presets = []string{"OPENBLAS_", "OMP_", "GOMP_", "MKL_", "MALLOC_", "GLIBC_TUNABLES", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG"}

// environment returns the process's without presets, and with extra.
func environment(extra []string) []string {
	var env []string
	for _, kv := range os.Environ() {
		keep := true
		for _, p := range presets {
			keep = keep && !strings.HasPrefix(kv, p)
		}
		if keep {
			env = append(env, kv)
		}
	}
	return append(env, extra...)
}

// output runs a program with extra variables and returns what it printed.
func output(ctx context.Context, extra []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = environment(extra)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}

// runJSON runs a program that prints one JSON value.
func runJSON[T any](ctx context.Context, extra []string, name string, args ...string) (T, error) {
	var v T
	out, err := output(ctx, extra, name, args...)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(out, &v); err != nil {
		return v, fmt.Errorf("output of %s: %w", name, err)
	}
	return v, nil
}

// runJSONLines runs a program that prints JSON values one after another.
func runJSONLines[T any](ctx context.Context, extra []string, name string, args ...string) ([]T, error) {
	out, err := output(ctx, extra, name, args...)
	if err != nil {
		return nil, err
	}
	var all []T
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var v T
		if err := dec.Decode(&v); err != nil {
			return nil, fmt.Errorf("output of %s: %w", name, err)
		}
		all = append(all, v)
	}
	return all, nil
}

// buildTrainerBench builds our contender as the trainer is built.
func buildTrainerBench(ctx context.Context) (string, error) {
	const binary = "bin/trainer-bench"
	_, err := output(ctx, []string{"CGO_ENABLED=0"}, "go", "build", "-C", "trainer", "-trimpath", "-buildvcs=false",
		"-o", "../"+binary, "./cmd/trainer-bench")
	return binary, err
}
