package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/trainer/internal/stage"
)

func newReport(a *App) *cobra.Command {
	var o stage.ReportOptions
	var r runFlags
	var t targetFlags
	cmd := &cobra.Command{
		Use:     "report",
		Short:   "Draw a run as one page that needs no network",
		Long:    `Write RUN/report.html: verdict, evaluation, loss curves, data quality, samples, times and lineage of a run, in one file without scripts.`,
		Example: `  trainer report --run-dir runs/a`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Target, err = t.open(cmd.Context()); err != nil {
				return err
			}
			o.Recording = a.recording(machineFlags{})
			o.RunID, o.RunDir, o.Checkpoint = r.id, r.dir, r.checkpoint
			path, err := stage.Report(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.print(map[string]string{"report": path}, func(w io.Writer) { fmt.Fprintln(w, path) })
		},
	}
	r.add(cmd)
	t.add(cmd)
	return cmd
}
