// Package kubectl runs the kubectl command on one cluster.
package kubectl

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/internal/child"
)

// CLI is kubectl for one cluster.
type CLI struct {
	// Command is kubectl's path.
	Command string
	// Kubeconfig is the file with the cluster's address and credentials.
	Kubeconfig string
}

// Run runs kubectl with args and returns what it prints.
func (c CLI) Run(ctx context.Context, args ...string) (string, error) {
	return c.Pipe(ctx, nil, args...)
}

// Pipe is Run with input for the command's standard input.
func (c CLI) Pipe(ctx context.Context, input []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.Command, append([]string{"--kubeconfig", c.Kubeconfig}, args...)...)
	cmd.Stdin = bytes.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	child.Stop(cmd, syscall.SIGTERM, 5*time.Second)
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args[:min(3, len(args))], " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// Apply applies documents and returns what kubectl says of each.
func (c CLI) Apply(ctx context.Context, documents []byte) (string, error) {
	return c.Pipe(ctx, documents, "apply", "--server-side", "--force-conflicts", "--field-manager=trainyard-demo", "--filename=-")
}

// Missing says whether err tells that there is no such object.
func Missing(err error) bool {
	return err != nil && strings.Contains(err.Error(), "NotFound")
}
