package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/internal/child"
)

// Kind runs the kind command.
type Kind struct {
	// Command is kind's path.
	Command string
	// Network is the Docker network for the nodes.
	Network string
	// Kubeconfig is the file for the cluster's credentials.
	Kubeconfig string
}

// Exists says whether there is a cluster of that name.
func (k Kind) Exists(ctx context.Context, name string) (bool, error) {
	out, err := k.run(ctx, nil, "get", "clusters", "--quiet")
	return slices.Contains(strings.Fields(out), name), err
}

// Create makes the cluster. One that is interrupted or fails is deleted again.
func (k Kind) Create(ctx context.Context, name string, config []byte) error {
	_, err := k.run(ctx, config, "create", "cluster", "--name", name, "--config", "-", "--kubeconfig", k.Kubeconfig)
	if err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_ = k.Delete(clean, name)
	}
	return err
}

// Export writes the credentials of an existing cluster.
func (k Kind) Export(ctx context.Context, name string) error {
	_, err := k.run(ctx, nil, "export", "kubeconfig", "--name", name, "--kubeconfig", k.Kubeconfig)
	return err
}

// Delete removes the cluster, also one that is half made.
func (k Kind) Delete(ctx context.Context, name string) error {
	_, err := k.run(ctx, nil, "delete", "cluster", "--name", name, "--kubeconfig", k.Kubeconfig)
	return err
}

func (k Kind) run(ctx context.Context, input []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, k.Command, args...)
	cmd.Env = append(os.Environ(), "KIND_EXPERIMENTAL_DOCKER_NETWORK="+k.Network, "KIND_EXPERIMENTAL_PROVIDER=docker")
	cmd.Stdin = bytes.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	child.StopAll(cmd, syscall.SIGTERM, 10*time.Second)
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("kind %s: %w:\n%s", strings.Join(args[:min(2, len(args))], " "), err, child.LastLines(stderr.String(), 30))
	}
	return stdout.String(), nil
}
