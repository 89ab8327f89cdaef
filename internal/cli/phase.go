package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/phase"
)

func newPhase(a *app) *cobra.Command {
	var o phase.Options
	cmd := &cobra.Command{
		Use:   "phase NAME",
		Short: "Run one phase of the buildpacks' lifecycle by a plan",
		Long: `Run one phase of the buildpacks' lifecycle by a plan, in the builder's image: ` + strings.Join(phase.Names(), ", ") + `
(all of them in one).

The exit code is the lifecycle's own; the last line says what it means and what
helps. detect and build refuse to run where credentials can be read.`,
		Example: "  yard phase detect --plan /trainyard",
		Args:    exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			o.Out, o.Err, o.Getenv, o.Now = a.Out, a.Err, a.Getenv, a.Now
			o.Environ, o.UID, o.GID = os.Environ(), os.Getuid(), os.Getgid()
			return phase.Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Plan, "plan", "/trainyard", "folder of the plan")
	f.StringVar(&o.Layers, "layers", "/layers", "folder of the layers")
	f.StringVar(&o.LayersFrom, "layers-from", "", "volume that export first copies the layers from")
	f.StringVar(&o.App, "app", "/workspace", "folder that the source is built in")
	f.StringVar(&o.Report, "report", "/trainyard-report/report.toml", "file for the report of the export")
	f.StringVar(&o.Bin, "lifecycle", "/cnb/lifecycle", "folder of the lifecycle's programs")
	f.StringSliceVar(&o.Secrets, "forbid", []string{"/tekton/creds", "/tekton/creds-secrets"}, "`folders` that must be empty where buildpacks run")
	return cmd
}
