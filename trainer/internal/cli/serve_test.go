package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/stage"
)

// TestServedAnswerIsThatOfSample asks a served model over HTTP and by sample.
func TestServedAnswerIsThatOfSample(t *testing.T) {
	dir := modelDir(t)
	out, stderr, code := call(t, nil, "sample", "--model", dir, "--base", "none", "--prompt", "How far is", "--max-tokens", "8", "--output", "json")
	var report stage.SampleReport
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 {
		t.Fatalf("code %d, %v: %s", code, err, stderr)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "serve", "--model", dir, "--addr", "127.0.0.1:0", "--concurrency", "2")
	cmd.Env = append(os.Environ(), asTrainer+"=1")
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(pipe)
	address := ""
	for address == "" && lines.Scan() {
		if m := regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			address = m[1]
		}
	}
	body := `{"prompt":"How far is","max_tokens":8,"temperature":0}`
	resp, err := http.Post("http://"+address+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		SystemFingerprint string `json:"system_fingerprint"`
		Choices           []struct{ Text string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || len(answer.Choices) != 1 {
		t.Fatalf("answer %+v, %v", answer, err)
	}
	if answer.Choices[0].Text != report.Samples[0].Tuned.Text {
		t.Errorf("served %q, sampled %q", answer.Choices[0].Text, report.Samples[0].Tuned.Text)
	}
	if answer.SystemFingerprint != report.Tuned.Digest || resp.Header.Get("X-Model-Digest") != report.Tuned.Digest {
		t.Errorf("digest %s, header %s, want %s", answer.SystemFingerprint, resp.Header.Get("X-Model-Digest"), report.Tuned.Digest)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var rest bytes.Buffer
	for lines.Scan() {
		rest.WriteString(lines.Text() + "\n")
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(rest.String(), "shutting down") {
		t.Errorf("end: %v\n%s", err, rest.String())
	}
}
