// Command trainer-bench times the trainer's training step and matrix products
// for the comparison that `make bench` prints. It goes through the same
// sessions, optimizer and kernels as `trainer train`, and prints JSON as the
// other contenders do.
//
//	trainer-bench step -workload bench/workloads.json:small-b8 -threads 2
//	trainer-bench sgemm -shapes bench/shapes.txt -threads 2
//
// TRAINER_ISA forces an instruction set. It is not part of the trainer's image.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/trainyard/trainyard/trainer/internal/kernel"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "trainer-bench:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("no command: use step or sgemm")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	threads := flags.Int("threads", runtime.GOMAXPROCS(0), "workers")
	var act func() error
	switch args[0] {
	case "step":
		spec := flags.String("workload", "", "FILE:NAME of the workload")
		act = func() error {
			w, err := readWorkload(*spec)
			if err != nil {
				return err
			}
			set, err := kernel.Choose(os.Getenv(kernel.EnvISA))
			if err != nil {
				return err
			}
			r, err := timeSteps(w, set, *threads)
			if err != nil {
				return err
			}
			return r.write(out)
		}
	case "sgemm":
		path := flags.String("shapes", "", "file of shapes")
		act = func() error {
			shapes, err := readShapes(*path)
			if err != nil {
				return err
			}
			set, err := kernel.Choose(os.Getenv(kernel.EnvISA))
			if err != nil {
				return err
			}
			return timeProducts(shapes, set, *threads, out)
		}
	default:
		return fmt.Errorf("unknown command %q: use step or sgemm", args[0])
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return act()
}
