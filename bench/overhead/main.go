// Command overhead measures what Tekton and Kubernetes add to each task of the
// pipeline: on the demo's cluster (make cluster) it starts train-and-promote with tkn,
// several times one after the other, and has yard times take the median. A run before
// them, which is not counted, pulls the images. Nothing else should run meanwhile.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/trainyard/trainyard/internal/demo"
)

func main() {
	runs := flag.Int("runs", 5, "runs to measure")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, os.Stdout, os.Stderr, *runs); err != nil {
		fmt.Fprintln(os.Stderr, "overhead:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, out, progress io.Writer, runs int) error {
	e, err := demo.ReadEnvironment(os.Getenv)
	if err != nil {
		return fmt.Errorf("no cluster to measure on (make cluster brings one up): %w", err)
	}
	commit, err := output(ctx, e, "git", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if _, err := output(ctx, e, "git", "push", "--quiet", "--force", e.GitURL, commit+":refs/heads/overhead"); err != nil {
		return err
	}
	var names []string
	for i := range runs + 1 {
		name, err := train(ctx, e, commit)
		if err != nil {
			return err
		}
		fmt.Fprintf(progress, "run %d of %d: %s\n", i, runs, name)
		if i > 0 {
			names = append(names, name)
		}
	}
	args := append([]string{"times", "--kubeconfig", e.Kubeconfig, "--namespace", demo.Namespace}, names...)
	text, err := output(ctx, e, e.Programs["yard"], args...)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, text)
	return err
}

// train starts one run, which is short, and waits for its end.
func train(ctx context.Context, e demo.Environment, commit string) (name string, err error) {
	name, err = output(ctx, e, e.Programs["tkn"], "pipeline", "start", "train-and-promote",
		"--kubeconfig", e.Kubeconfig, "--namespace", demo.Namespace, "--prefix-name", "overhead",
		"--workspace", "name=shared,volumeClaimTemplateFile="+filepath.Join(e.Checkout, "pv", "volume-claim-template.yaml"),
		"--pod-template", filepath.Join(e.Checkout, "pipelines", "tkn", "pod-template.yaml"),
		"--serviceaccount", "trainyard-train",
		"--task-serviceaccount", "fetch-source=trainyard-build,build-image=trainyard-build",
		"--param", "url="+e.GitURL, "--param", "revision="+commit, "--param", "commit="+commit,
		"--param", "builder-image="+e.Images["builder"], "--param", "run-image="+e.Images["run"],
		"--param", "image="+e.Registry+"/trainyard/trainer:overhead", "--param", "insecure-registries="+e.Registry,
		"--param", "max-iters=50", "--param", "eval-interval=50",
		"--use-param-defaults", "--output", "name")
	if err != nil {
		return "", err
	}
	_, err = output(ctx, e, e.Programs["kubectl"], "--kubeconfig", e.Kubeconfig, "--namespace", demo.Namespace,
		"wait", "--for=condition=Succeeded=true", "--timeout=10m", "pipelinerun/"+name)
	return name, err
}

// output runs a program in the checkout and returns what it prints.
func output(ctx context.Context, e demo.Environment, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = e.Checkout
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(program), args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
