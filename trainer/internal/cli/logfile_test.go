package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeepLogAppendsWhatIsPrinted(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run1")
	corpus := textCorpus(t)
	prepare := []string{"prepare", "--run-dir", run, "--corpus", corpus, "--vocab-size", "300", "--drop-near=false", "--keep-log"}
	mustCall(t, prepare...)
	_, errs, _ := call(t, nil, "train", "--run-dir", run, "--keep-log", "--batch-size", "0")
	log := func(name string) string {
		b, err := os.ReadFile(filepath.Join(run, "logs", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := log("prepare.log"); !strings.Contains(got, "documents of") || !strings.Contains(got, "prepare: reading") {
		t.Errorf("the log of prepare is\n%s", got)
	}
	if got := log("train.log"); strings.TrimSpace(errs) == "" || !strings.HasSuffix(got, errs[strings.LastIndex(strings.TrimSpace(errs), "\n")+1:]) {
		t.Errorf("the error %q is not at the end of\n%s", errs, got)
	}
	before := log("prepare.log")
	mustCall(t, prepare...)
	if got := log("prepare.log"); !strings.HasPrefix(got, before) || len(got) <= len(before) {
		t.Error("the second attempt did not append")
	} else if !strings.HasPrefix(before, "=== ") || !strings.HasPrefix(got[len(before):], "=== ") {
		t.Errorf("nothing tells the two attempts apart:\n%s", got)
	}
}

func TestKeepLogMakesNoRunDirectory(t *testing.T) {
	run := filepath.Join(t.TempDir(), "typo")
	if _, _, code := call(t, nil, "evaluate", "--run-dir", run, "--keep-log"); code == 0 {
		t.Fatal("evaluated")
	}
	if _, err := os.Stat(run); !os.IsNotExist(err) {
		t.Errorf("made: %v", err)
	}
}

// Prepare makes the directory: why it failed is in there, whatever failed.
func TestKeepLogOfAPreparationWithoutItsCorpus(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run1")
	_, errs, code := call(t, nil, "prepare", "--run-dir", run, "--corpus", "store:none.txt", "--store", "file://"+t.TempDir(), "--keep-log")
	if code == 0 {
		t.Fatal("prepared")
	}
	b, err := os.ReadFile(filepath.Join(run, "logs", "prepare.log"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(errs, "none.txt") || !strings.HasSuffix(string(b), errs) {
		t.Errorf("the error is %q, the log\n%s", errs, b)
	}
}

// A log that cannot be written must not end the stage.
func TestKeepLogThatCannotBeWritten(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run1")
	if err := os.Mkdir(run, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(run, "logs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mustCall(t, "prepare", "--run-dir", run, "--corpus", textCorpus(t), "--vocab-size", "300", "--drop-near=false", "--keep-log")
}
