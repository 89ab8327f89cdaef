package stage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryDeclaredResultIsWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	r, err := NewResults(dir, "verdict", "val-loss", "digest")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Set("verdict", "blocked"); err != nil {
		t.Fatal(err)
	}
	if err := r.Write(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"verdict": "blocked", "val-loss": "", "digest": ""} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q without a line end", name, got, err, want)
		}
	}
}

func TestResultsRefuse(t *testing.T) {
	r, err := NewResults("", "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ name, value, want string }{
		"line end":     {"a", "sha256:abc\n", "line break or zero byte at byte 10 of 11"},
		"carriage":     {"a", "x\r", "line break"},
		"not declared": {"c", "x", "c is not declared"},
		"too large":    {"a", strings.Repeat("x", MaxResults-1), "a has 1023 bytes, which makes 1025 for all results of this step, more than 1024"},
	} {
		if err := r.Set(c.name, c.value); !errors.Is(err, ErrResult) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	// The budget is one for all: what fits alone may not fit beside another.
	if err := r.Set("a", strings.Repeat("x", 600)); err != nil {
		t.Error(err)
	}
	if err := r.Set("b", strings.Repeat("x", 600)); !errors.Is(err, ErrResult) {
		t.Errorf("two of 600 bytes: error %v", err)
	}
	if err := r.Set("b", strings.Repeat("x", MaxResults-602)); err != nil {
		t.Errorf("exactly the budget: %v", err)
	}
	for _, names := range [][]string{{""}, {"a/b"}, {"../a"}, {"a", "a"}, {"a b"}} {
		if _, err := NewResults("", names...); !errors.Is(err, ErrResult) {
			t.Errorf("%q: error %v", names, err)
		}
	}
}

func TestResultsWithoutADirectory(t *testing.T) {
	r, err := NewResults("", "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(); err != nil {
		t.Error(err)
	}
}
