package cli

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/kubeclient"
	"github.com/trainyard/trainyard/internal/queue"
)

func newQueue(a *app) *cobra.Command {
	s := queue.Defaults()
	var policy, health string
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Let the runs that pushes started in, one a branch",
		Long: `Let the runs that pushes started in, one a branch.

The listener of triggers/ creates PipelineRuns that are held back (spec.status
PipelineRunPending) and have the label trainyard.dev/trigger=push. The queue watches
those of one namespace and lets one in when no other run of its branch is active.
What becomes of runs that a newer push has overtaken is the policy's:

  queue   each run in turn, the oldest first
  latest  the active run ends; of those that wait only the newest stays
  cancel  as latest, and a newer push also cancels the active run, whose finally
          tasks still run

A run that is not to start is cancelled and has the annotation
trainyard.dev/superseded-by. Events on the run say what happened and why. Runs
without that label are never touched.

It works until SIGINT or SIGTERM and then ends with 0; what fails meanwhile is tried
again. Only one should run in a namespace.`,
		Example: `  yard queue --namespace trainyard --policy latest
  yard queue --max-running 2 --health-address :8080 --output json`,
		Args: noArgs,
	}
	choice := clusterFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&policy, "policy", string(s.Policy), "what becomes of overtaken runs: queue, latest or cancel")
	f.IntVar(&s.MaxRunning, "max-running", s.MaxRunning, "how many runs may be active at once, of all branches together; 0 is no limit")
	f.DurationVar(&s.Settle, "settle", s.Settle, "how long a run must be known before it overtakes another or is overtaken")
	f.StringVar(&health, "health-address", "", "address that answers /healthz and /readyz, such as :8080; empty is none")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if s.Policy = queue.Policy(policy); !s.Policy.Known() {
			return exitcode.Errorf(exitcode.Usage, "policy is %q, want queue, latest or cancel", policy)
		}
		if s.MaxRunning < 0 || s.Settle < 0 {
			return exitcode.Errorf(exitcode.Usage, "max-running and settle must not be negative")
		}
		cluster, err := kubeclient.Connect(*choice)
		if err != nil {
			return err
		}
		if _, err := cluster.Ping(cmd.Context()); err != nil {
			return err
		}
		tekton, err := cluster.Watching()
		if err != nil {
			return err
		}
		q := queue.New(queue.Config{
			Namespace: cluster.Namespace, Settings: s, Log: a.log(), Now: a.Now, After: time.After,
			Runs: tekton.TektonV1().PipelineRuns(cluster.Namespace), Events: cluster.Kube.CoreV1().Events(cluster.Namespace),
		})
		if health == "" {
			return q.Run(cmd.Context())
		}
		return a.serveBeside(cmd.Context(), health, q.Health(), q.Run)
	}
	return cmd
}

// log is where a program that runs for long says what it does.
func (a *app) log() *slog.Logger {
	if a.output == "json" {
		return slog.New(slog.NewJSONHandler(a.Err, nil))
	}
	return slog.New(slog.NewTextHandler(a.Err, nil))
}

// serveBeside answers probes while the work goes on.
func (a *app) serveBeside(ctx context.Context, address string, handler http.Handler, work func(context.Context) error) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return exitcode.Errorf(exitcode.IO, "health-address: %w", err)
	}
	a.log().Info("probes are answered", "address", listener.Addr().String())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(listener)
		cancel() // without answers the kubelet would end the work anyway
	}()
	err = work(ctx)
	server.Close()
	if serving := <-served; !errors.Is(serving, http.ErrServerClosed) {
		return errors.Join(err, exitcode.Errorf(exitcode.IO, "serve %s: %w", address, serving))
	}
	return err
}
