// Package engine sees to a Docker engine: one that runs is used as it is; as
// root, one that is missing is installed from Debian's packages and started, and
// stopped again when it was started here.
package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/internal/demo/docker"
	"github.com/trainyard/trainyard/internal/pause"
)

// Engine is the Docker engine of this machine.
type Engine struct {
	Docker docker.CLI
	// State is the folder for the log and the process id of an engine that is
	// started here.
	State string
	// Install installs Debian packages by their commands.
	Install func(ctx context.Context, commands ...string) error
	// Root says that we may install and start programs.
	Root bool
	// LessRuntime, if set, is the path of an OCI runtime that asks for no
	// capability that this host lacks. Containers need it to start here.
	LessRuntime string
}

// Ensure returns when an engine answers, and says what it did about it.
func (e Engine) Ensure(ctx context.Context) (said string, err error) {
	version, err := e.answers(ctx)
	if err == nil {
		return "Docker " + version, e.checkRuntime(ctx)
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if strings.Contains(err.Error(), "permission denied") {
		return "", errors.New("docker refuses this user: add it to the group docker (sudo usermod -aG docker $USER) and log in again")
	}
	if !e.Root {
		return "", errors.New("no Docker engine answers: install and start it (Debian: sudo apt-get install docker.io), and be in the group docker")
	}
	if err := e.Install(ctx, "dockerd:docker.io", "docker:docker.io", "iptables", "ip:iproute2", "runc"); err != nil {
		return "", err
	}
	// The package starts its service where there is a service manager.
	for range 10 {
		if version, err = e.answers(ctx); err == nil {
			return "Docker " + version + ", installed", e.checkRuntime(ctx)
		}
		if _, statErr := os.Stat("/run/systemd/system"); statErr != nil {
			break
		}
		if err := pause.For(ctx, time.Second); err != nil {
			return "", err
		}
	}
	if err := e.start(ctx); err != nil {
		return "", err
	}
	version, err = e.answers(ctx)
	return "Docker " + version + ", started", err
}

func (e Engine) answers(ctx context.Context) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return e.Docker.Run(ctx, "version", "--format", "{{.Server.Version}}")
}

// checkRuntime makes sure that an engine that others started can start the
// containers of a cluster.
func (e Engine) checkRuntime(ctx context.Context) error {
	if e.LessRuntime == "" {
		return nil
	}
	runtime, err := e.Docker.Run(ctx, "info", "--format", "{{.DefaultRuntime}}")
	if err != nil || runtime != "runc" && runtime != "io.containerd.runc.v2" { // two names of the same
		return err
	}
	return fmt.Errorf("this host has no CAP_SYS_RESOURCE, and the running Docker engine's runtime asks for it: stop it and run make demo again, or start it with --add-runtime less=%s --default-runtime less", e.LessRuntime)
}

func (e Engine) pidFile() string { return filepath.Join(e.State, "dockerd.pid") }

func (e Engine) start(ctx context.Context) error {
	if err := os.MkdirAll(e.State, 0o755); err != nil {
		return err
	}
	dockerd, err := exec.LookPath("dockerd")
	if err != nil {
		return fmt.Errorf("start the Docker engine: %w", err)
	}
	logFile := filepath.Join(e.State, "dockerd.log")
	log, err := os.Create(logFile)
	if err != nil {
		return err
	}
	defer log.Close()
	var args []string
	if e.LessRuntime != "" {
		args = []string{"--add-runtime=less=" + e.LessRuntime, "--default-runtime=less"}
	}
	cmd := exec.Command(dockerd, args...) //nolint:noctx // it outlives this program
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the Docker engine: %w", err)
	}
	started, _ := find(cmd.Process.Pid) // before Wait: it is there, dead or alive
	if err := os.WriteFile(e.pidFile(), []byte(started.String()+"\n"), 0o600); err != nil {
		return errors.Join(err, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
	}
	died := make(chan error, 1)
	go func() { died <- cmd.Wait() }()
	for range 120 {
		if _, err := e.answers(ctx); err == nil {
			return nil
		}
		select {
		case err := <-died:
			if err == nil {
				err = errors.New("without an error")
			}
			return fmt.Errorf("the Docker engine ended, read %s: %w", logFile, err)
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("the Docker engine was started and does not answer: read %s", logFile)
}

// Stop ends the engine if Ensure started it and no container of anybody's is left
// on it, and says whether it did.
func (e Engine) Stop(ctx context.Context) (bool, error) {
	data, err := os.ReadFile(e.pidFile())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	ours, err := parseProcess(string(data))
	if err != nil {
		return false, fmt.Errorf("%s: %w: remove the file, and end dockerd if it still runs", e.pidFile(), err)
	}
	clear := func() error {
		return errors.Join(os.Remove(e.pidFile()), os.Remove(filepath.Join(e.State, "dockerd.log")))
	}
	if !ours.runs() {
		return false, clear()
	}
	// Another demo's, for one. An engine that does not answer runs none.
	if containers, err := e.Docker.Run(ctx, "ps", "--quiet"); err == nil && containers != "" {
		return false, nil
	}
	if err := syscall.Kill(ours.id, syscall.SIGTERM); err != nil {
		return false, fmt.Errorf("end dockerd (process %d): %w", ours.id, err)
	}
	for i := 0; ours.runs(); i++ {
		if i == 240 {
			return false, fmt.Errorf("dockerd (process %d) does not end", ours.id)
		}
		if err := pause.For(ctx, 250*time.Millisecond); err != nil {
			return false, err
		}
	}
	return true, clear()
}
