package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/trainer/internal/stage"
)

func newRollback(a *App) *cobra.Command {
	var o stage.RollbackOptions
	var t targetFlags
	var k kserveFlags
	var reason string
	cmd := &cobra.Command{
		Use:   "rollback",
		Short: "Move the alias back to an earlier version",
		Long: `Move the alias back to a version that it had: to the one before, or to --to. The
history keeps both moves, and a second rollback goes further back.`,
		Example: `  trainer rollback --store file:///srv/models --name llm
  trainer rollback --store s3://models --name llm --to 18a094fa2d54 --reason "answers in German"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Target, err = t.open(cmd.Context()); err != nil {
				return err
			}
			if o.Announce, err = k.announcer(a); err != nil {
				return err
			}
			if reason != "" {
				o.Reasons = []string{reason}
			}
			o.Now, o.Out = a.Now, a.people()
			rep, err := stage.Rollback(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.print(rep, func(io.Writer) {})
		},
	}
	t.add(cmd)
	k.add(cmd)
	f := cmd.Flags()
	f.StringVar(&o.To, "to", "", "version, its first 8 or more digits, or an alias; empty is the version before")
	f.StringVar(&o.Expect, "expect", "", "version that the alias must have now; empty is any")
	f.StringVar(&reason, "reason", "", "why, for the history")
	return cmd
}
