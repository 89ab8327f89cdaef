// Package docker runs the docker command. It knows nothing of what is in the
// containers that others make with it.
package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/internal/child"
)

// CLI is the docker command.
type CLI struct {
	// Command is its path, "docker" when empty.
	Command string
}

// Run runs docker with args and returns what it prints, without the last newline.
func (c CLI) Run(ctx context.Context, args ...string) (string, error) {
	return c.Pipe(ctx, nil, args...)
}

// Pipe is Run with input for the command's standard input.
func (c CLI) Pipe(ctx context.Context, input io.Reader, args ...string) (string, error) {
	command := c.Command
	if command == "" {
		command = "docker"
	}
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Stdin = input
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	child.Stop(cmd, syscall.SIGTERM, 10*time.Second)
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if errors.Is(err, exec.ErrNotFound) {
			return "", fmt.Errorf("run docker: %w: install Debian's package docker.io", err)
		}
		said := strings.TrimSpace(stderr.String())
		if said == "" {
			said = strings.TrimSpace(stdout.String())
		}
		return "", fmt.Errorf("docker %s: %w: %s", strings.Join(args[:min(2, len(args))], " "), err, said)
	}
	return strings.TrimSuffix(stdout.String(), "\n"), nil
}

// Missing says whether err tells that docker has no such container, image,
// network or volume. That there is no engine, or no docker command, is another
// matter.
func Missing(err error) bool { return err != nil && missing.MatchString(err.Error()) }

// missing is how Docker has said so, from version 20.10 to 29. "no such file or
// directory" is what newer versions say of an engine's socket, "not found" what
// exec says of the command.
var missing = regexp.MustCompile(`(?i)no such (object|container|image|network|volume)|(container|image|network|volume) \S+ not found`)

// NoEngine says whether err tells that there is no docker command or no engine
// that runs.
func NoEngine(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || err != nil && noEngine.MatchString(err.Error())
}

var noEngine = regexp.MustCompile(`(?i)cannot connect to the docker daemon|failed to connect to the docker api`)

// HasImage says whether the engine holds an image.
func (c CLI) HasImage(ctx context.Context, image string) (bool, error) {
	_, err := c.Run(ctx, "image", "inspect", "--format", "{{.Id}}", image)
	if Missing(err) {
		return false, nil
	}
	return err == nil, err
}
