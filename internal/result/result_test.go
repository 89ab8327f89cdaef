package result

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/exitcode"
)

func TestWriteHasNoNewlineAndReplacesWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	elsewhere := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(elsewhere, []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(dir, "A")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "B"), []byte("a longer text of before"), 0o644); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{"A": "sha256:1", "B": "b", "EMPTY": ""}
	if err := Write(dir, values); err != nil {
		t.Fatal(err)
	}
	for name, want := range values {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, want %q: %v", name, got, want, err)
		}
	}
	if got, _ := os.ReadFile(elsewhere); string(got) != "kept" {
		t.Errorf("wrote through a link: %q", got)
	}
}

// I-20, I-21: at most 1 KiB for a step, refused with name and size.
func TestWriteRefusesWhatIsTooLarge(t *testing.T) {
	dir := t.TempDir()
	// The message without the large value, and the comma that Check adds at the end.
	const around = len(`[{"key":"LARGE","value":"","type":1},{"key":"SMALL","value":"s","type":1},]`)
	fits := map[string]string{"SMALL": "s", "LARGE": strings.Repeat("x", Budget-around)}
	if err := Write(dir, fits); err != nil {
		t.Fatalf("exactly the budget: %v", err)
	}
	over := map[string]string{"SMALL": "s", "LARGE": fits["LARGE"] + "x"}
	if err := os.Remove(filepath.Join(dir, "SMALL")); err != nil {
		t.Fatal(err)
	}
	err := Write(dir, over)
	if exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), "1025 bytes of 1024") || !strings.Contains(err.Error(), fmt.Sprintf("LARGE with %d bytes", Budget-around+1)) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "SMALL")); err == nil {
		t.Error("SMALL was written before the refusal")
	}
}

func TestCheckRefusesLineBreaks(t *testing.T) {
	for _, v := range []string{"a\n", "\r", "a\nb"} {
		if err := Check(map[string]string{"IMAGE_DIGEST": v}); err == nil || !strings.Contains(err.Error(), "IMAGE_DIGEST") {
			t.Errorf("%q: %v", v, err)
		}
	}
}

func TestWriteNamesAFolderThatIsNotThere(t *testing.T) {
	err := Write(filepath.Join(t.TempDir(), "none"), map[string]string{"A": "1"})
	if exitcode.Of(err) != exitcode.IO || !strings.Contains(err.Error(), "result A") {
		t.Errorf("%v", err)
	}
}
