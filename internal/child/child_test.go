package child_test

import (
	"bufio"
	"context"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/child"
)

func TestStopSignalsTheCommandAndStopAllItsChildrenToo(t *testing.T) {
	tests := map[string]struct {
		stop func(*exec.Cmd, syscall.Signal, time.Duration)
		want string
	}{
		"the command": {child.Stop, "parent"},
		"all":         {child.StopAll, "child parent"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			// The child reports its signal, and ends by itself otherwise; the parent
			// ends last.
			cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `
				trap 'stopped=1' TERM
				sh -c 'trap "echo child; exit" TERM; echo ready; i=0; while [ $i -lt 10 ]; do sleep 0.05; i=$((i+1)); done' &
				while [ -z "$stopped" ]; do sleep 0.02; done
				wait
				echo parent`)
			test.stop(cmd, syscall.SIGTERM, 10*time.Second)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var said []string
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if lines.Text() == "ready" {
					cancel()
					continue
				}
				said = append(said, lines.Text())
			}
			_ = cmd.Wait() // the context's error
			if got := strings.Join(said, " "); got != test.want {
				t.Errorf("%q got the signal, want %q", got, test.want)
			}
		})
	}
}

func TestLastLinesOfAnOutput(t *testing.T) {
	for text, want := range map[string]string{"": "", "a\n": "a", "a\nb\nc\n\n": "b\nc", "b\nc": "b\nc"} {
		if got := child.LastLines(text, 2); got != want {
			t.Errorf("of %q: %q, want %q", text, got, want)
		}
	}
}
