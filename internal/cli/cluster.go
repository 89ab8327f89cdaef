package cli

import (
	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/kubeclient"
)

// clusterFlags adds the flags by which kubectl, too, finds a cluster.
func clusterFlags(cmd *cobra.Command) *kubeclient.Choice {
	c := &kubeclient.Choice{}
	f := cmd.Flags()
	f.StringVar(&c.Kubeconfig, "kubeconfig", "", "path of the kubeconfig; empty is KUBECONFIG, ~/.kube/config, or the pod's own account")
	f.StringVar(&c.Context, "context", "", "context of the kubeconfig")
	f.StringVarP(&c.Namespace, "namespace", "n", "", "namespace; empty is the context's")
	return c
}
