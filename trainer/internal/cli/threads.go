package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/kernel"
)

// machineFlags are the flags of verbs that compute.
type machineFlags struct{ threads int }

func (m *machineFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&m.threads, "threads", 0, "worker threads; 0 is GOMAXPROCS, which follows the CPU limit of a container")
}

// settle resolves the number of threads and says where it came from.
func (m *machineFlags) settle(a *App, cmd *cobra.Command) (source string, err error) {
	f := cmd.Flag("threads")
	switch {
	case m.threads < 0 || m.threads > 1024:
		return "", exitcode.Errorf(exitcode.Usage, "threads is %d, want 0 to 1024", m.threads)
	case m.threads == 0:
		m.threads, source = runtime.GOMAXPROCS(0), "GOMAXPROCS"
	case f.Value.String() == a.Getenv(envName("threads")):
		source = envName("threads")
	default:
		source = "flag or file"
	}
	return source, nil
}

// announce says on Err what a run depends on, or does not.
func (m *machineFlags) announce(a *App, source string) error {
	set, err := kernel.Choose(a.Getenv(kernel.EnvISA))
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Err, "trainer %s: %d threads (%s), kernels %s, %s\n", a.Build.version(), m.threads, source, set.ISA(), runtime.Version())
	return nil
}
