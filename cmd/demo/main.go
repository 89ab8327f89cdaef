// Command demo brings up a real cluster on this machine, runs the pipeline on
// it, and takes it down again. `make demo`, `make e2e` and `make down` call it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/trainyard/trainyard/internal/demo"
	"github.com/trainyard/trainyard/internal/demo/progress"
)

// errInterrupted ends what runs after SIGINT or SIGTERM.
var errInterrupted = errors.New("interrupted: run the same again to go on from here")

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	code := 1
	go func() {
		if <-signals == syscall.SIGTERM {
			code = 143
		} else {
			code = 130
		}
		cancel(errInterrupted)
		signal.Stop(signals) // a second signal ends the program at once
	}()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(code)
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Bring up a cluster on this machine and train a model on it",
		Long: `Bring up a real cluster on this machine and train a model on it.

Settings are environment variables: IMAGES (registry or source), MIRROR,
IMAGES_LOCK, CLUSTER, SUBNET, S3_PORT, TRIGGERS_PORT, DEBIAN_MIRROR,
TRAINYARD_CACHE. docs/demo.md describes them.`,
		Example:       "  bin/demo up\n  IMAGES=source S3_PORT=7171 bin/demo up",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(
		verb("up", "Bring up the cluster and train a model on it", (*demo.Demo).Up),
		verb("cluster", "Bring up the cluster, and run nothing on it", (*demo.Demo).UpCluster),
		verb("down", "Remove the cluster, its network and what was started for it", (*demo.Demo).RunDown),
	)
	return cmd
}

func verb(use, short string, run func(*demo.Demo, context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		Example: "  bin/demo " + use,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := demo.SettingsFrom(os.Getenv)
			if err != nil {
				return err
			}
			if settings.Checkout, err = checkout(); err != nil {
				return err
			}
			terminal := term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("TERM") != "dumb"
			log := progress.New(cmd.OutOrStdout(), progress.Options{
				Terminal: terminal, Color: terminal && os.Getenv("NO_COLOR") == "", Now: time.Now,
			})
			return run(demo.New(settings, cmd.OutOrStdout(), log), cmd.Context())
		},
	}
}

// checkout finds the repository's root above the working directory.
func checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "kind-config.yaml")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not in a checkout of trainyard (no kind-config.yaml above it)", dir)
		}
	}
}
