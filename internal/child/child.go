// Package child says how programs that ours start are stopped: in one way, which
// leaves nothing half done. It neither starts them nor reads what they print.
package child

import (
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Stop sets how a command that was made with a context ends with it: it gets the
// signal, and is killed when it is still there after grace. It runs in a process
// group of its own, since an interrupt at the terminal is ours to pass on.
func Stop(cmd *exec.Cmd, signal syscall.Signal, grace time.Duration) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(signal) }
	cmd.WaitDelay = grace
}

// StopAll is Stop for a command whose children must get the signal too.
func StopAll(cmd *exec.Cmd, signal syscall.Signal, grace time.Duration) {
	Stop(cmd, signal, grace)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, signal) }
}

// LastLines returns the last n lines of what a command printed: where it says why
// it failed.
func LastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
