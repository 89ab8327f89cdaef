package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/kubeclient"
	"github.com/trainyard/trainyard/internal/times"
)

// timesReport is what programs get of several runs.
type timesReport struct {
	Runs   []*times.Report `json:"runs"`
	Median float64         `json:"overhead_per_task_median_seconds"`
}

func newTimes(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "times RUN...",
		Short: "Tell where the seconds of a run went",
		Long: `Tell where the seconds of a PipelineRun or TaskRun went, for each task: waiting
for a node, pulling images, starting, working, ending; and what Tekton and
Kubernetes took in all. A task is cold when an image was pulled for it and warm when
all were on the node.

Several runs give the median of their overhead too. The times of a cluster are whole
seconds. Events are kept for an hour and pods until they are pruned: what cannot be
told any more is a question mark, and null in JSON.`,
		Example: `  yard times train-and-promote-run-x7k2p --namespace trainyard
  yard times warm-1 warm-2 warm-3 warm-4 warm-5 --output json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exitcode.Errorf(exitcode.Usage, "which run? see %s --help", cmd.CommandPath())
			}
			return nil
		},
	}
	choice := clusterFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cluster, err := kubeclient.Connect(*choice)
		if err != nil {
			return err
		}
		if _, err := cluster.Ping(cmd.Context()); err != nil {
			return err
		}
		clock := times.Clock{Kube: cluster.Kube, Tekton: cluster.Tekton, Now: a.Now}
		var reports []*times.Report
		for _, name := range args {
			r, err := clock.Measure(cmd.Context(), cluster.Namespace, name)
			if err != nil {
				return err
			}
			reports = append(reports, r)
		}
		text := func(w io.Writer) { times.WriteAll(w, reports) }
		if len(reports) == 1 {
			return a.print(reports[0], text)
		}
		return a.print(timesReport{reports, times.MedianOverhead(reports)}, text)
	}
	return cmd
}
