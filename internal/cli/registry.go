package cli

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/registryclient"
)

// registryFlags are the flags of every verb that talks to image registries.
type registryFlags struct{ insecure []string }

func (r *registryFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&r.insecure, "insecure-registry", nil,
		"`host:port` of a registry that may be spoken to in plain http; may be repeated, all others need TLS")
}

// client returns a client with the credentials of docker's configuration.
func (r *registryFlags) client(a *app) (*registryclient.Client, error) {
	return registryclient.New(registryclient.Options{
		Insecure:  r.insecure,
		UserAgent: "yard/" + cmp.Or(a.Build.Version, "unknown"),
	})
}
