package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/stage"
)

// App is what the verbs share: streams, environment and clock.
type App struct {
	Out, Err io.Writer
	Getenv   func(string) string
	Now      func() time.Time
	Build    Build

	output string  // of --output: text or json
	log    *runLog // of --keep-log, nil without
}

// verbs lists what makes each subcommand.
func verbs() []func(*App) *cobra.Command {
	return []func(*App) *cobra.Command{
		newRun, newPrepare, newTrain, newEvaluate, newGate, newPromote, newRollback, newSample, newLineage, newReport, newServe, newVersion,
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
	app := &App{Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Now: time.Now, Build: b}
	return app.Run(ctx, args)
}

// Run runs one command line and returns its exit code. An error is one line on Err.
func (a *App) Run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if cause := context.Cause(ctx); errors.Is(err, context.Canceled) && cause != nil {
		// Many a function only says that its context ended: here is why.
		err = fmt.Errorf("%w: %w", err, cause)
	}
	if err != nil {
		fmt.Fprintln(a.Err, stage.ErrorPrefix+err.Error())
	}
	if a.log != nil {
		a.log.Close()
	}
	return codeOf(err)
}

func (a *App) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "trainer",
		Short: "Train, judge and serve GPT-2 models on CPUs",
		Long: `Train, judge and serve GPT-2 models on CPUs.

Every flag is also an environment variable (--max-iters is TRAINER_MAX_ITERS) and
a key of the YAML file of --config (max-iters: 300). Flags win over variables,
variables over the file; an empty variable counts as unset. Keys under a
subcommand's name are for that subcommand alone.

TRAINER_ISA forces the kernels' instruction set: portable, avx2 or avx512.`,
		SilenceErrors: true, SilenceUsage: true,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := settle(cmd, a.Getenv); err != nil {
				return err
			}
			if a.output != "text" && a.output != "json" {
				return exitcode.Errorf(exitcode.Usage, "output is %q, want text or json", a.output)
			}
			a.keepLog(cmd)
			return nil
		},
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exitcode.Errorf(exitcode.Usage, "%w: see %s --help", err, cmd.CommandPath())
	})
	root.PersistentFlags().String(configFlag, "", "YAML file with values of flags")
	root.PersistentFlags().StringVar(&a.output, "output", "text", "form of what is printed: text or json")
	root.PersistentFlags().Bool(keepLogFlag, false, "append what is printed to RUN/logs/SUBCOMMAND.log too")
	for _, verb := range verbs() {
		root.AddCommand(verb(a))
	}
	return root
}

// noArgs refuses positional arguments, as a usage error.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exitcode.Errorf(exitcode.Usage, "unknown command or argument %q: see %s --help", args[0], cmd.CommandPath())
	}
	return nil
}

// print writes a report: as JSON, or as the lines of text.
func (a *App) print(report any, text func(w io.Writer)) error {
	if a.output != "json" {
		text(a.Out)
		return nil
	}
	e := json.NewEncoder(a.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(report)
}

// hand prints for programs what a stage did, which people have read line by line,
// also where it ended with an error: that one comes first.
func hand[T any](a *App, report *T, err error) error {
	if report == nil {
		return err
	}
	return cmp.Or(err, a.print(report, func(io.Writer) {}))
}

// logger writes what a person should know to Err, without times: whoever keeps
// logs adds them.
func (a *App) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{ReplaceAttr: func(groups []string, attr slog.Attr) slog.Attr {
		if len(groups) == 0 && attr.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return attr
	}}))
}

// terminal returns the file descriptor of Err when it is a terminal.
func (a *App) terminal() (fd int, ok bool) {
	f, isFile := a.Err.(*os.File)
	if !isFile {
		return 0, false
	}
	fd = int(f.Fd())
	return fd, term.IsTerminal(fd)
}
