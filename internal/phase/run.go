package phase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/plan"
	"github.com/trainyard/trainyard/internal/source"
)

const (
	// grace is what a phase gets to end after a signal; Kubernetes gives 30 seconds.
	grace = 25 * time.Second
	// tail is how much of a phase's output is searched for hints.
	tail = 64 << 10
)

// Options say which phase to run and where.
type Options struct {
	Name string
	Places
	// LayersFrom is where export finds the layers, when not in Places.Layers.
	LayersFrom string
	// Secrets are folders that must be empty where buildpacks run.
	Secrets  []string
	Out, Err io.Writer
	Getenv   func(string) string
	Environ  []string
	UID, GID int
	Now      func() time.Time
}

// Run runs a phase of the plan. The error of a phase that failed carries its exit
// code, and names a reason and a remedy.
func Run(ctx context.Context, o Options) error {
	f, err := plan.Read(o.Plan)
	if err != nil {
		return err
	}
	path, args, env, err := command(o.Name, f, o.Places)
	if err != nil {
		return err
	}
	if err := prepare(ctx, f, o); err != nil {
		return err
	}
	if another(f, o) {
		fmt.Fprintf(o.Err, "note: this step runs as %d:%d, the builder's user is %d:%d\n", o.UID, o.GID, f.UID, f.GID)
		if o.Name == Export {
			return exportAsAnother(ctx, f, o)
		}
		more, clean, err := asAnother(o.Name, o)
		if err != nil {
			return err
		}
		defer clean()
		env = append(env, more...)
	}
	fmt.Fprintf(o.Err, "%s: %s %s\n", o.Name, path, strings.Join(args, " "))
	start := o.Now()
	code, output, err := run(ctx, o, path, args, env)
	fmt.Fprintf(o.Err, "%s took %.1f s\n", o.Name, o.Now().Sub(start).Seconds())
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", o.Name, context.Cause(ctx))
	case err != nil:
		return exitcode.Errorf(exitcode.BadInput, "%s: the builder's lifecycle could not be started: %w: use a builder for this machine that has %s", o.Name, err, path)
	case code != 0:
		return exitcode.New(code, errors.New(explain(o.Name, code, output)))
	}
	return nil
}

// prepare checks who runs and brings the files of a phase to their places.
func prepare(ctx context.Context, f *plan.File, o Options) error {
	if err := checkUser(o.Name, f, o.UID, o.GID); err != nil {
		return err
	}
	if o.Name == Detect || o.Name == Build {
		if err := checkNoCredentials(o.Name, o.Secrets, o.Getenv); err != nil {
			return err
		}
	}
	if o.Name == Detect || o.Name == Create {
		if err := placeSource(ctx, f, o); err != nil {
			return err
		}
	}
	if o.Name == Export || o.Name == Create {
		if note := appNote(o.App, another(f, o)); note != "" {
			fmt.Fprintln(o.Err, note)
		}
	}
	if o.Name == Export && o.LayersFrom != "" && !another(f, o) {
		return copyLayers(o.LayersFrom, o.Layers, f.CacheImage != "")
	}
	return nil
}

// placeSource copies the source to where the build may change it: owned by the user
// of the buildpacks, as pack does it.
func placeSource(ctx context.Context, f *plan.File, o Options) error {
	root, err := source.Open(o.Plan, plan.SourceDir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	t, err := source.CopyInto(ctx, root, source.Filter{}, o.App)
	if err != nil {
		return err
	}
	if t.Digest != f.SourceDigest {
		return exitcode.Errorf(exitcode.Integrity, "the source in %s is %s, planned was %s: plan again", o.Plan, t.Digest, f.SourceDigest)
	}
	return nil
}

// run starts the program and passes signals on. Code is its exit code, or 128 and
// the number of the signal that ended it.
func run(ctx context.Context, o Options, path string, args, env []string) (code int, output string, err error) {
	seen := &lastBytes{max: tail}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(append([]string{}, o.Environ...), env...)
	if o.Getenv("NO_COLOR") != "" {
		cmd.Env = append(cmd.Env, "CNB_NO_COLOR=true")
	}
	cmd.Stdout, cmd.Stderr = io.MultiWriter(o.Out, seen), io.MultiWriter(o.Err, seen)
	cmd.WaitDelay = grace
	cmd.Cancel = func() error {
		var s exitcode.SignalError
		if errors.As(context.Cause(ctx), &s) {
			return cmd.Process.Signal(s.Signal)
		}
		return cmd.Process.Signal(syscall.SIGTERM)
	}
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal()), seen.String(), nil
		}
		return exit.ExitCode(), seen.String(), nil
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		// It ended well; something that it left behind still held its output open.
		err = nil
	}
	return 0, seen.String(), err
}

// lastBytes keeps the end of what is written.
type lastBytes struct {
	mu  sync.Mutex
	max int
	b   bytes.Buffer
}

// Write implements io.Writer.
func (l *lastBytes) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, _ := l.b.Write(p)
	if over := l.b.Len() - l.max; over > 0 {
		l.b.Next(over)
	}
	return n, nil
}

// String returns what was kept.
func (l *lastBytes) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Install copies the running program to a path, so that steps in images without it
// can call it from a shared volume.
func Install(to string) error {
	self, err := os.Executable()
	if err != nil {
		return exitcode.New(exitcode.IO, err)
	}
	part := filepath.Join(filepath.Dir(to), "."+filepath.Base(to))
	if err := os.RemoveAll(part); err != nil {
		return exitcode.New(exitcode.IO, err)
	}
	if err := copyFile(self, part, 0o755); err != nil {
		return exitcode.New(exitcode.IO, err)
	}
	return exitcode.New(exitcode.IO, os.Rename(part, to))
}
