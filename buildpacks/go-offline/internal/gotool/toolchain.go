package gotool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Toolchain is a go command.
type Toolchain struct {
	Command string // path of the go command
	Version string // what it says of itself, for example go1.26.8
}

// Find looks for the go command in the PATH of the environment, then at the usual
// place, and asks it for its version.
func Find(ctx context.Context, env []string, usual string) (Toolchain, error) {
	command := ""
	for _, dir := range append(searchPath(env), filepath.Dir(usual)) {
		file, err := exec.LookPath(filepath.Join(dir, "go"))
		if err == nil && filepath.IsAbs(file) {
			command = file
			break
		}
	}
	if command == "" {
		return Toolchain{}, fmt.Errorf("the build image has no Go toolchain: no go in PATH and no %s", usual)
	}
	t := Toolchain{Command: command}
	var out strings.Builder
	if err := t.Run(ctx, Call{Dir: "/", Env: env, Args: []string{"env", "GOVERSION"}, Stdout: &out}); err != nil {
		return Toolchain{}, err
	}
	// A toolchain under development adds its commit after a space.
	t.Version, _, _ = strings.Cut(strings.TrimSpace(out.String()), " ")
	return t, nil
}

// searchPath returns the directories of the last PATH that is set.
func searchPath(env []string) (dirs []string) {
	for _, e := range env {
		if list, ok := strings.CutPrefix(e, "PATH="); ok {
			dirs = filepath.SplitList(list)
		}
	}
	return dirs
}

// Call is one run of the go command.
type Call struct {
	Dir    string
	Env    []string // the last of two settings of one variable wins
	Args   []string
	Stdout io.Writer
	Stderr io.Writer // nil: what it says becomes part of the error
}

// Run runs the go command.
func (t Toolchain) Run(ctx context.Context, c Call) error {
	cmd := exec.CommandContext(ctx, t.Command, c.Args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, c.Stdout, c.Stderr
	// The compilers that it started may hold the pipes open.
	cmd.WaitDelay = 5 * time.Second
	var said strings.Builder
	if cmd.Stderr == nil {
		cmd.Stderr = &said
	}
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if text := strings.TrimSpace(said.String()); text != "" {
		err = errors.New(text)
	}
	return fmt.Errorf("go %s: %w", c.Args[0], err)
}
