package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/exitcode"
)

func TestQueueIsRefusedWhatItCannotUse(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, c := range map[string]struct {
		args []string
		code int
		say  string
	}{
		"no such policy":    {[]string{"--policy", "newest"}, 2, `policy is "newest", want queue, latest or cancel`},
		"fewer than none":   {[]string{"--max-running", "-1"}, 2, "must not be negative"},
		"an argument":       {[]string{"run-1"}, 2, `"run-1"`},
		"no cluster":        {nil, 2, "give --kubeconfig or KUBECONFIG"},
		"a cluster down":    {[]string{"--kubeconfig", writeKubeconfig(t, down.URL)}, 4, "does not answer"},
		"the port is taken": {[]string{"--kubeconfig", apiServer(t, nil), "--health-address", taken.Addr().String()}, 4, taken.Addr().String()},
	} {
		t.Run(name, func(t *testing.T) {
			out, stderr, code := call(t, nil, append([]string{"queue"}, c.args...)...)
			if code != c.code || !strings.Contains(stderr, c.say) || strings.Count(stderr, "\n") != 1 || out != "" {
				t.Errorf("code %d, want %d; stdout %q, stderr %q", code, c.code, out, stderr)
			}
		})
	}
}

// What the queue logs is JSON when that is asked for; it answers probes; a request to
// end is no failure.
func TestQueueWorksUntilItIsAskedToEnd(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/version":
			fmt.Fprint(w, `{"gitVersion": "v1.36.3"}`)
		case r.URL.Query().Get("watch") != "":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			fmt.Fprint(w, `{"kind": "PipelineRunList", "apiVersion": "tekton.dev/v1", "metadata": {"resourceVersion": "7"}, "items": []}`)
		}
	}))
	defer server.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	log, errs := io.Pipe()
	code := make(chan int, 1)
	go func() {
		s := Streams{Out: io.Discard, Err: errs, Getenv: func(string) string { return "" }, Now: time.Now}
		code <- Run(ctx, s, []string{"queue", "--kubeconfig", writeKubeconfig(t, server.URL), "--policy", "cancel", "--health-address", "127.0.0.1:0", "--output", "json"})
		errs.Close()
	}()
	lines := bufio.NewScanner(log)
	read := func() (line struct{ Msg, Address, Policy, Namespace string }) {
		if !lines.Scan() {
			t.Fatal("the log ends")
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		return line
	}
	address := read().Address
	if line := read(); line.Msg != "the queue is open" || line.Policy != "cancel" || line.Namespace != "team" {
		t.Errorf("%+v", line)
	}
	status := 0
	for range 100 {
		resp, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if status = resp.StatusCode; status == http.StatusOK {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if status != http.StatusOK {
		t.Errorf("/readyz answers %d", status)
	}
	cancel(exitcode.SignalError{Signal: syscall.SIGTERM})
	if line := read(); line.Msg != "the queue is closed" {
		t.Errorf("%+v", line)
	}
	if lines.Scan() {
		t.Errorf("it says more: %s", lines.Text())
	}
	if got := <-code; got != 0 {
		t.Errorf("exit code %d", got)
	}
}
