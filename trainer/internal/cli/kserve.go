package cli

import (
	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/trainer/internal/stage"
)

// kserveFlags name a model server that is told what is promoted.
type kserveFlags struct{ service string }

func (k *kserveFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.service, "kserve-service", "", "namespace/name of a KServe InferenceService to point at the version; empty tells nobody")
}

// announcer returns nil when nobody is to be told.
func (k *kserveFlags) announcer(a *App) (stage.Announcer, error) {
	if k.service == "" {
		return nil, nil
	}
	return stage.NewKServe(a.Getenv, stage.ServiceAccountDir, k.service)
}
