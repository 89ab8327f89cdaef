package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/trainer/internal/stage"
)

func newPromote(a *App) *cobra.Command {
	var o stage.PromoteOptions
	var r runFlags
	var t targetFlags
	var k kserveFlags
	cmd := &cobra.Command{
		Use:   "promote",
		Short: "Put the candidate that passed the gate into use",
		Long: `Put the candidate into the registry under its digest, with its card, reports and
lineage, and move the alias to it. Asks RUN/gate_report.json, and moves only if
the alias still points to what the candidate was compared with. Promoting what is
promoted changes nothing.`,
		Example: `  trainer promote --run-dir runs/a --store file:///srv/models --name llm
  trainer promote --run-dir runs/a --store s3://models --kserve-service models/llm`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := stage.BeginPromoteResults(o.ResultsDir); err != nil {
				return err
			}
			var err error
			if o.Target, err = t.open(cmd.Context()); err != nil {
				return err
			}
			if o.Announce, err = k.announcer(a); err != nil {
				return err
			}
			o.Recording = a.recording(machineFlags{})
			o.RunID, o.RunDir, o.Checkpoint, o.Out = r.id, r.dir, r.checkpoint, a.people()
			rep, err := stage.Promote(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.print(rep, func(io.Writer) {})
		},
	}
	r.add(cmd)
	t.add(cmd)
	k.add(cmd)
	addResults(cmd, &o.ResultsDir)
	cmd.Flags().StringVar(&o.License, "license", "", "SPDX identifier for the model card")
	return cmd
}
