package cli

import (
	"net"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/doctor"
	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/kubeclient"
)

func newDoctor(a *app) *cobra.Command {
	var o doctor.Options
	var forward bool
	cmd := &cobra.Command{
		Use:   "doctor [RUN]",
		Short: "Say why a pipeline would not start, or why a run hangs or failed",
		Long: `Say why a pipeline would not start, or why a run hangs or failed.

Without RUN it examines a namespace before a start: ServiceAccounts, Secrets and
their keys, Tekton's version and settings, the pipeline and what its tasks refer to,
storage, whether each task would fit on a node now, and the registry and the store
with the credentials of the cluster; and where there is a listener for pushes, it, its
Triggers' Secrets and settings, its rights, and the queue.

With RUN, a PipelineRun or TaskRun, it also finds out what that run waits for or
failed of: a pod that fits on no node (what it asks for, what is free, who holds the
rest, what would make it fit), claims without a volume, images that cannot be
pulled, quotas, Pod Security, missing Secrets and ConfigMaps, and failed steps.

It reads, and changes nothing, except for an upload that it opens and gives up to
see whether images can be pushed, and with --write-probe one small object that it
deletes again. Exit code 1 says that a problem was found.`,
		Example: `  yard doctor --namespace trainyard --pipeline train-and-promote
  yard doctor train-and-promote-run-x7k2p --namespace trainyard
  yard doctor --port-forward --output json`,
		Args: atMostOne("RUN"),
	}
	choice := clusterFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.Pipeline, "pipeline", "train-and-promote", "pipeline that is about to start; empty examines none")
	f.StringSliceVar(&o.ServiceAccounts, "service-account", nil, "ServiceAccounts that the run will use (default trainyard-build,trainyard-train)")
	f.StringVar(&o.Claim, "claim", "", "PersistentVolumeClaim that the run will use; empty is a volumeClaimTemplate")
	f.StringVar(&o.RegistrySecret, "registry-secret", "", "Secret with the credentials of the registry; empty is that of the run, or registry-credentials")
	f.StringVar(&o.StoreSecret, "s3-secret", "s3-credentials", "Secret with the credentials of the store")
	f.StringVar(&o.StoreConfig, "s3-config", "trainyard-store", "ConfigMap with endpoint, region and bucket of the store")
	f.StringVar(&o.Builder, "builder", "", "builder image; empty is that of the run or the pipeline")
	f.StringVar(&o.Image, "image", "", "image that is pushed; empty is that of the run or the pipeline")
	f.StringSliceVar(&o.InsecureRegistries, "insecure-registry", nil, "registries that speak plain http; empty is those of the run or the pipeline")
	f.StringVar(&o.Endpoint, "s3-endpoint", "", "address by which the store is reached from here; empty is the ConfigMap's")
	f.StringVar(&o.Bucket, "s3-bucket", "", "bucket; empty is that of the run or the ConfigMap")
	f.BoolVar(&o.WriteProbe, "write-probe", false, "also write and delete one small object in the store")
	f.BoolVar(&forward, "port-forward", false, "reach Services of the cluster through port forwards")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		cluster, err := kubeclient.Connect(*choice)
		if err != nil {
			return err
		}
		if _, err := cluster.Ping(ctx); err != nil {
			return err
		}
		o.Namespace = cluster.Namespace
		d := &doctor.Doctor{
			Kube: cluster.Kube, Tekton: cluster.Tekton, Triggers: cluster.Triggers, Now: a.Now,
			Dial: (&net.Dialer{}).DialContext, InCluster: a.Getenv("KUBERNETES_SERVICE_HOST") != "",
		}
		if forward {
			services := kubeclient.NewServiceDialer(cluster)
			defer services.Close()
			d.Dial, d.InCluster = services.DialContext, true
		}
		var report *doctor.Report
		if len(args) == 1 {
			report, err = d.Run(ctx, args[0], o)
		} else {
			report, err = d.BeforeStart(ctx, o)
		}
		if err != nil {
			return err
		}
		if err := a.print(report, report.Write); err != nil {
			return err
		}
		if n := report.Count(doctor.Problem); n > 0 {
			return exitcode.Errorf(exitcode.Failed, "%s: %s", report.Subject, report.Summary())
		}
		return nil
	}
	return cmd
}

// atMostOne allows one argument of this name, or none, as a usage error.
func atMostOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return exitcode.Errorf(exitcode.Usage, "%d arguments, want at most one, %s: see %s --help", len(args), name, cmd.CommandPath())
		}
		return nil
	}
}
