package cli

import (
	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/stage"
)

func newLineage(a *App) *cobra.Command {
	var o stage.LineageOptions
	var r runFlags
	var t targetFlags
	cmd := &cobra.Command{
		Use:   "lineage [MODEL]",
		Short: "Show and check where a model came from",
		Long: `Print the tree from a model back to corpus, code and machine, and compare every
digest in it with what the store, or the run directory, holds. MODEL is an alias,
a version or the first 8 or more digits of one; without it the alias is taken, or
with --run-dir the candidate of the run. Exits with 7 when a digest differs and
with 1 when something is missing.`,
		Example: `  trainer lineage --store file:///srv/models --name llm
  trainer lineage 18a094fa2d54 --store s3://models --name llm
  trainer lineage --run-dir runs/a`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exitcode.Errorf(exitcode.Usage, "%d arguments, want one model: see %s --help", len(args), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Target, err = t.open(cmd.Context()); err != nil {
				return err
			}
			if len(args) == 1 {
				o.Ref = args[0]
			}
			if o.Ref != "" && r.dir != "" {
				return exitcode.Errorf(exitcode.Usage, "both MODEL and --run-dir: give one of them")
			}
			o.RunDir, o.Checkpoint, o.Out = r.dir, r.checkpoint, a.people()
			rep, err := stage.Lineage(cmd.Context(), o)
			return hand(a, rep, err)
		},
	}
	r.add(cmd)
	t.add(cmd)
	return cmd
}
