package cli

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Build is what the linker stamped into the binary.
type Build struct{ Version, Commit string }

// orStamped fills in what only Go itself stamped: a plain go build in a checkout
// names version and commit too.
func (b Build) orStamped(info *debug.BuildInfo) Build {
	if info == nil {
		return b
	}
	if b.Version == "" && info.Main.Version != "(devel)" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if b.Commit == "" && s.Key == "vcs.revision" {
			b.Commit = s.Value
		}
	}
	return b
}

type versionReport struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and Go version",
		Example: "  yard version --output json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo() // nil when there is none
			b := a.Build.orStamped(info)
			v := versionReport{cmp.Or(b.Version, "unknown"), b.Commit, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			return a.print(v, func(w io.Writer) {
				fmt.Fprintf(w, "yard %s %s\n%s %s\n", v.Version, v.Commit, v.Go, v.Platform)
			})
		},
	}
}
