package stage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
)

// code returns the exit code that an error carries, or -1.
func code(err error) int {
	var e *exitcode.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return -1
}

func TestClaimRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run1")
	for _, c := range []struct{ id, want string }{{"", "run1"}, {"", "run1"}, {"run1", "run1"}} {
		if got, err := ClaimRun(dir, c.id); err != nil || got != c.want {
			t.Errorf("%q: %q, %v", c.id, got, err)
		}
	}
	if _, err := ClaimRun(dir, "run2"); code(err) != exitcode.BadInput || !strings.Contains(err.Error(), `of run "run1", not "run2"`) {
		t.Errorf("another run: %v", err)
	}
	named := filepath.Join(t.TempDir(), "x")
	if got, err := ClaimRun(named, "nightly-7"); err != nil || got != "nightly-7" {
		t.Errorf("named: %q, %v", got, err)
	}
	if got, err := ClaimRun(named, ""); err != nil || got != "nightly-7" {
		t.Errorf("named, again: %q, %v", got, err)
	}
}

func TestClaimRunRefuses(t *testing.T) {
	for name, text := range map[string]string{"not JSON": "x", "another file": "{}", "a path for an id": `{"schema":"trainyard.run/v1","id":"../x"}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, RunFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ClaimRun(dir, ""); code(err) != exitcode.BadInput {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, id := range []string{"a/b", "..", "-x", "a b", strings.Repeat("x", 129)} {
		dir := filepath.Join(t.TempDir(), "r")
		if _, err := ClaimRun(dir, id); code(err) != exitcode.Usage {
			t.Errorf("%q: %v", id, err)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%q: the directory was made", id)
		}
	}
	if _, err := ClaimRun("", ""); code(err) != exitcode.Usage || !strings.Contains(err.Error(), "--run-dir") {
		t.Errorf("no directory: %v", err)
	}
}
