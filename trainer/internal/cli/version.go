package cli

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/trainer/internal/kernel"
)

type versionReport struct {
	Version    string       `json:"version"`
	Commit     string       `json:"commit"`
	Go         string       `json:"go"`
	Platform   string       `json:"platform"`
	ISA        kernel.ISA   `json:"isa"` // that is used
	ISAs       []kernel.ISA `json:"isas"`
	GOMAXPROCS int          `json:"gomaxprocs"`
	CPUs       int          `json:"cpus"`
}

func newVersion(a *App) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print version, Go, instruction set and GOMAXPROCS",
		Example: "  trainer version --output json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			set, err := kernel.Choose(a.Getenv(kernel.EnvISA))
			if err != nil {
				return err
			}
			v := versionReport{
				Version: a.Build.version(), Commit: a.Build.known().Commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
				ISA: set.ISA(), ISAs: kernel.Available(), GOMAXPROCS: runtime.GOMAXPROCS(0), CPUs: runtime.NumCPU(),
			}
			return a.print(v, func(w io.Writer) {
				fmt.Fprintf(w, "trainer %s %s\n%s %s, kernels %s of %v, GOMAXPROCS %d of %d CPUs\n", v.Version, v.Commit, v.Go, v.Platform, v.ISA, v.ISAs, v.GOMAXPROCS, v.CPUs)
			})
		},
	}
}
