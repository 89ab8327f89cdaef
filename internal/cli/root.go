package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Streams is what a command line takes from its surroundings.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer // reports go to Out, everything else to Err
	Getenv   func(string) string
	Now      func() time.Time
	Build    Build
}

// app is what the verbs share.
type app struct {
	Streams
	output string // of --output: text or json
}

// verbs lists what makes each subcommand.
func verbs() []func(*app) *cobra.Command {
	return []func(*app) *cobra.Command{
		newVersion,
		newPlan, newPhase, newPin,
		newDoctor,
		newTimes,
		newPrune,
		newFetch,
		newPushEvent,
		newRender,
		newBundle,
		newBuilder,
		newImage,
		newQueue, newCommitStatus,
	}
}

// Main runs the command line of this process and returns its exit code.
func Main(args []string, b Build) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
		s := (<-signals).(syscall.Signal)
		// The first asks for an orderly end, the second gets the system's own.
		signal.Stop(signals)
		cancel(exitcode.SignalError{Signal: s})
	}()
	return Run(ctx, Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Now: time.Now, Build: b}, args)
}

// Run runs one command line and returns its exit code. An error is one line on Err.
func Run(ctx context.Context, s Streams, args []string) int {
	root := New(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if cause := context.Cause(ctx); errors.Is(err, context.Canceled) && cause != nil {
		// Many a function only says that its context ended: here is why.
		err = fmt.Errorf("%w: %w", err, cause)
	}
	if err != nil {
		fmt.Fprintln(s.Err, "yard:", err)
	}
	return exitcode.Of(err)
}

// New returns yard's root command with every verb below it.
func New(s Streams) *cobra.Command {
	a := &app{Streams: s}
	root := &cobra.Command{
		Use:   "yard",
		Short: "Build what a training pipeline runs, start it on pushes, say what holds it up",
		Long: `Build, pin and bundle what a training pipeline runs, let the runs of pushes in and
tell forges of them, and say why a run waits or failed.

Exit codes: 0 ok, 1 failed or "no", 2 usage, 3 bad input, 4 disk or network,
6 conflict, 7 a digest is not the one recorded, 130 and 143 for signals.`,
		SilenceErrors: true, SilenceUsage: true,
		Args: noArgs,
		RunE: group,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if a.output != "text" && a.output != "json" {
				return exitcode.Errorf(exitcode.Usage, "output is %q, want text or json", a.output)
			}
			return nil
		},
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exitcode.Errorf(exitcode.Usage, "%w: see %s --help", err, cmd.CommandPath())
	})
	root.PersistentFlags().StringVar(&a.output, "output", "text", "form of what is printed: text or json")
	for _, verb := range verbs() {
		root.AddCommand(verb(a))
	}
	return root
}

// group is what a command does that only holds others: it shows them.
func group(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// noArgs refuses positional arguments, as a usage error.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exitcode.Errorf(exitcode.Usage, "unknown command or argument %q: see %s --help", args[0], cmd.CommandPath())
	}
	return nil
}

// exactArgs asks for the arguments that have these names, as a usage error.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return exitcode.Errorf(exitcode.Usage, "%d arguments, want %d %v: see %s --help", len(args), len(names), names, cmd.CommandPath())
		}
		return nil
	}
}

// print writes a report: as JSON, or as the lines of text.
func (a *app) print(report any, text func(w io.Writer)) error {
	if a.output != "json" {
		text(a.Out)
		return nil
	}
	e := json.NewEncoder(a.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(report)
}
