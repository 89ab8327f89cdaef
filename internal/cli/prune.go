package cli

import (
	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/kubeclient"
	"github.com/trainyard/trainyard/internal/prune"
	"github.com/trainyard/trainyard/internal/pushrun"
)

func newPrune(a *app) *cobra.Command {
	var o prune.Options
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Delete runs that are done, beyond a number and beyond an age",
		Long: `Delete PipelineRuns that are done, beyond a number of newer ones and beyond an age,
with all that they own: TaskRuns, pods, and the claims of their volumeClaimTemplates.
Either limit alone deletes; a limit of 0 is none.

Runs are counted by the time at which they ended: those that pushes started by forge,
repository and branch, others by their pipeline. Runs that are not done, and runs
whose claims somebody else uses, stay, and so do claims that several runs share, and
everything in the store and the registry.

Without --selector it looks at the runs that pushes started; --selector= is all.`,
		Example: `  yard prune --namespace trainyard --keep 10 --older-than 720h
  yard prune --keep 5 --selector= --dry-run`,
		Args: noArgs,
	}
	choice := clusterFlags(cmd)
	f := cmd.Flags()
	f.IntVar(&o.Keep, "keep", 0, "`number` of the newest runs that stay, of each branch or pipeline")
	f.DurationVar(&o.OlderThan, "older-than", 0, "delete runs that ended longer ago than this, such as 720h")
	f.StringVar(&o.Selector, "selector", pushrun.Selector, "labels of the runs to look at; empty is all")
	f.BoolVar(&o.DryRun, "dry-run", false, "say what would be deleted, and delete nothing")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		cluster, err := kubeclient.Connect(*choice)
		if err != nil {
			return err
		}
		if _, err := cluster.Ping(cmd.Context()); err != nil {
			return err
		}
		p := &prune.Pruner{Kube: cluster.Kube, Tekton: cluster.Tekton, Now: a.Now}
		report, err := p.Prune(cmd.Context(), cluster.Namespace, o)
		if report == nil {
			return err
		}
		// What was deleted before a signal is told all the same.
		if err := a.print(report, report.Write); err != nil {
			return err
		}
		if err != nil {
			return err
		}
		return report.Err()
	}
	return cmd
}
