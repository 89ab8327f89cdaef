// Command demo brings up a real cluster on this machine, runs the pipeline on
// it, and takes it down again. `make demo`, `make e2e` and `make down` call it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/trainyard/trainyard/internal/demo"
	"github.com/trainyard/trainyard/internal/demo/progress"
	"github.com/trainyard/trainyard/internal/exitcode"
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		s := (<-signals).(syscall.Signal)
		signal.Stop(signals) // a second signal ends the program at once
		cancel(fmt.Errorf("interrupted: run the same again to go on from here (%w)", exitcode.SignalError{Signal: s}))
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs one command line and returns its exit code. An error is one line, or a
// few with what a program said that was run.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		// Many a function only says that its context ended: here is why.
		err = fmt.Errorf("%w: %w", err, cause)
	}
	if err != nil {
		fmt.Fprintln(stderr, "demo:", err)
	}
	return exitcode.Of(err)
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
		program(),
	)
	return cmd
}

func program() *cobra.Command {
	return &cobra.Command{
		Use: "program NAME", Short: "Print where kubectl, tkn, kind or yard of the cluster that is up lies", Args: cobra.ExactArgs(1),
		Example: "  $(bin/demo program kubectl) version --client",
		RunE: func(cmd *cobra.Command, args []string) error {
			environment, err := demo.ReadEnvironment(os.Getenv)
			if err != nil {
				return fmt.Errorf("no cluster is up (make cluster brings one up): %w", err)
			}
			path, ok := environment.Programs[args[0]]
			if !ok {
				return exitcode.Errorf(exitcode.Usage, "%s is none of %s", args[0], strings.Join(slices.Sorted(maps.Keys(environment.Programs)), ", "))
			}
			fmt.Fprintln(cmd.OutOrStdout(), path)
			return nil
		},
	}
}

func verb(use, short string, run func(*demo.Demo, context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		Example: "  bin/demo " + use,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := demo.SettingsFrom(os.Getenv)
			if err != nil {
				return exitcode.New(exitcode.Usage, err)
			}
			if settings.Checkout, err = checkout(); err != nil {
				return err
			}
			log := progress.New(cmd.OutOrStdout(), display(cmd.OutOrStdout(), os.Getenv))
			return run(demo.New(settings, cmd.OutOrStdout(), log), cmd.Context())
		},
	}
}

// display says how progress is shown: a line that changes on a terminal alone.
func display(out io.Writer, getenv func(string) string) progress.Options {
	options := progress.Options{Now: time.Now}
	file, isFile := out.(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) || getenv("TERM") == "dumb" {
		return options
	}
	options.Terminal, options.Color = true, getenv("NO_COLOR") == ""
	if columns, _, err := term.GetSize(int(file.Fd())); err == nil {
		options.Columns = columns
	}
	return options
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
