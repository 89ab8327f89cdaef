// Command trainer-bench times the trainer's training step for the comparison
// that `make bench` prints. It goes through the same session and optimizer as
// `trainer train` and prints JSON, as the other contenders do.
//
//	trainer-bench step -workload bench/workloads.json:small-b8 -threads 2
//
// It is not part of the trainer's image.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "trainer-bench:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("no command: use step")
	}
	switch args[0] {
	case "step":
		return runStep(args[1:], out)
	default:
		return fmt.Errorf("unknown command %q: use step", args[0])
	}
}

func runStep(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("step", flag.ContinueOnError)
	spec := flags.String("workload", "", "FILE:NAME of the workload")
	threads := flags.Int("threads", runtime.GOMAXPROCS(0), "workers")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	w, err := readWorkload(*spec)
	if err != nil {
		return err
	}
	r, err := timeSteps(w, *threads)
	if err != nil {
		return err
	}
	return r.write(out)
}
