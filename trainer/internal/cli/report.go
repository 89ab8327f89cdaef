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
		Use:   "report",
		Short: "Draw a run as one page that needs no network",
		Long: `Write RUN/report.html: verdict, evaluation, loss curves, data quality, samples,
times and lineage of a run, in one file without scripts. With --publish the reports
go to the store too, under runs/RUN-ID/, so that they outlive the run directory.

As the last task of a pipeline it is told what became of the others (--task-status
train=Failed): the page says it, and what a task that did not run would have written
is not taken from an earlier run.`,
		Example: `  trainer report --run-dir runs/a
  trainer report --run-dir runs/a --store s3://models --publish --task-status train=Succeeded,gate=Failed,promote=None`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Target, o.StoreErr = t.open(cmd.Context())
			o.Recording = a.recording(machineFlags{})
			o.RunID, o.RunDir, o.Checkpoint, o.Out = r.id, r.dir, r.checkpoint, a.people()
			path, err := stage.Report(cmd.Context(), o)
			if err != nil || path == "" {
				return err
			}
			return a.print(map[string]string{"report": path}, func(w io.Writer) { fmt.Fprintln(w, path) })
		},
	}
	r.add(cmd)
	t.add(cmd)
	addResults(cmd, &o.ResultsDir)
	cmd.Flags().StringSliceVar(&o.Statuses, "task-status", nil, "what became of the tasks of a pipeline, NAME=Succeeded, Failed or None")
	cmd.Flags().BoolVar(&o.Publish, "publish", false, "copy the reports to the store too")
	return cmd
}
