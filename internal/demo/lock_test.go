package demo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestOneDemoOfANameRunsAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo", "trainyard.lock") // its folder is made
	unlock, err := lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(path); err == nil || !strings.Contains(err.Error(), path+"): wait for it") {
		t.Errorf("a second one: %v", err)
	}
	other, err := lock(filepath.Join(filepath.Dir(path), "other.lock"))
	if err != nil {
		t.Fatalf("one of another name: %v", err)
	}
	other()

	// A program that a demo leaves behind, as the Docker engine, holds nothing.
	child := exec.CommandContext(t.Context(), "sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	unlock()
	again, err := lock(path)
	if err != nil {
		t.Fatalf("after the first: %v", err)
	}
	again()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the file is gone: two could hold it now: %v", err)
	}
}

func TestALockThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(file, "x.lock"), filepath.Dir(file)} {
		if _, err := lock(path); err == nil || strings.Contains(err.Error(), "wait for it") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
