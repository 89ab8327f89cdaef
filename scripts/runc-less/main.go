// Command runc-less is runc with fewer capabilities: it takes those that this
// host does not have itself out of a container's specification, then becomes
// runc. Docker gives it to containers as their OCI runtime on hosts (nested
// virtual machines, hardened sandboxes) without CAP_SYS_RESOURCE, where runc
// alone fails every privileged container with "unable to apply caps: operation
// not permitted". It never adds anything.
//
// It takes runc's own command line. RUNC_LESS_RUNC names another runc.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/trainyard/trainyard/internal/demo/capability"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "runc-less:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	held, err := capability.Bounding("/proc/self/status")
	if err != nil {
		return err
	}
	if file := specification(args); file != "" {
		if err := restrict(file, held); err != nil {
			return err
		}
	}
	runc := os.Getenv("RUNC_LESS_RUNC")
	if runc == "" {
		if runc, err = exec.LookPath("runc"); err != nil {
			return fmt.Errorf("find runc (Debian's package runc has it): %w", err)
		}
	}
	return syscall.Exec(runc, append([]string{"runc"}, args...), os.Environ())
}

// specification is the file in args that says which capabilities a process gets:
// a bundle's config.json, or the process file of an exec; "" where there is none.
func specification(args []string) string {
	command := ""
	for i, arg := range args {
		switch {
		case command == "" && (arg == "create" || arg == "run" || arg == "exec"):
			command = arg
		case i+1 == len(args):
		case (command == "create" || command == "run") && (arg == "--bundle" || arg == "-b"):
			return filepath.Join(args[i+1], "config.json")
		case command == "exec" && (arg == "--process" || arg == "-p"):
			return args[i+1]
		}
	}
	if command == "create" || command == "run" {
		return "config.json" // runc's own default: the working directory
	}
	return ""
}
