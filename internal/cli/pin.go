package cli

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/pin"
	"github.com/trainyard/trainyard/internal/registryclient"
)

func newPin(a *app) *cobra.Command {
	var o pin.Options
	cmd := &cobra.Command{
		Use:   "pin",
		Short: "Verify the image of a plan, give it its tag and tell its digest",
		Long: `Verify the image of a plan, give it its tag and tell its digest.

The lifecycle's report and the registry must agree on the digest, and the image must
be what was planned: machine, run image, lifecycle, labels. Only then the final tag
moves, and the results are written.`,
		Example: "  yard pin --plan /trainyard --report /trainyard-report/report.toml --results-dir /tekton/results",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Client = registryclient.Options{UserAgent: "yard/" + cmp.Or(a.Build.Version, "unknown")}
			o.Log = func(format string, args ...any) { fmt.Fprintf(a.Err, format+"\n", args...) }
			p, err := pin.Pin(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.print(p, func(w io.Writer) {
				how := "built"
				if p.FromCache {
					how = "found, built before"
				}
				fmt.Fprintf(w, "image   %s\n        %s\nsize    %.1f MB compressed (%s)\nsource  %s\nbuilder %s\nSBOM    %s\n",
					p.Ref, p.Image, float64(p.Size)/1e6, how, p.Source, p.Builder, cmp.Or(p.SBOM, "none"))
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Plan, "plan", "/trainyard", "folder of the plan")
	f.StringVar(&o.Report, "report", "/trainyard-report/report.toml", "report of the export")
	f.BoolVar(&o.LabelRevision, "label-revision", false, "hand on the image with the commit in its labels: each commit has a digest of its own then")
	f.StringVar(&o.Results, "results-dir", "", "folder for one file a result, as Tekton reads them")
	return cmd
}
