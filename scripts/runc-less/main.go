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
	"syscall"

	"github.com/trainyard/trainyard/internal/demo/capability"
)

func main() {
	fmt.Fprintln(os.Stderr, "runc-less:", become(os.Args[1:]))
	os.Exit(1)
}

// become turns this process into runc. It returns only when it cannot.
func become(args []string) error {
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
	err = syscall.Exec(runc, append([]string{"runc"}, args...), os.Environ())
	return fmt.Errorf("become %s: %w", runc, err)
}
