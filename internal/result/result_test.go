package result

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/exitcode"
)

func files(t *testing.T, names ...string) Files {
	t.Helper()
	dir := t.TempDir()
	f := Files{}
	for _, n := range names {
		f[n] = filepath.Join(dir, n)
	}
	return f
}

func TestWriteHasNoNewlineAndReplacesWhatIsThere(t *testing.T) {
	f := files(t, "A", "B", "EMPTY")
	elsewhere := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(elsewhere, []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, f["A"]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f["B"], []byte("a longer text of before"), 0o644); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{"A": "sha256:1", "B": "b", "EMPTY": ""}
	if err := f.Write(values); err != nil {
		t.Fatal(err)
	}
	for name, want := range values {
		if got, err := os.ReadFile(f[name]); err != nil || string(got) != want {
			t.Errorf("%s is %q, want %q: %v", name, got, want, err)
		}
	}
	if got, _ := os.ReadFile(elsewhere); string(got) != "kept" {
		t.Errorf("wrote through a link: %q", got)
	}
}

// I-48: a declared result without a value, or a value that nobody declared, is an
// error before anything is written.
func TestWriteWantsEveryResult(t *testing.T) {
	for name, c := range map[string]struct {
		files  []string
		values map[string]string
		part   string
	}{
		"declared and not written": {[]string{"A", "B"}, map[string]string{"A": "1"}, "result B"},
		"written and not declared": {[]string{"A"}, map[string]string{"A": "1", "B": "2"}, "result B"},
	} {
		t.Run(name, func(t *testing.T) {
			f := files(t, c.files...)
			err := f.Write(c.values)
			if exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), c.part) {
				t.Errorf("%v", err)
			}
			if _, err := os.Stat(f["A"]); err == nil {
				t.Error("A was written")
			}
		})
	}
}

// I-20, I-21: at most 1 KiB for a step, refused with name and size.
func TestWriteRefusesWhatIsTooLarge(t *testing.T) {
	f := files(t, "SMALL", "LARGE")
	// The message without the large value, and the comma that Check adds at the end.
	const around = len(`[{"key":"LARGE","value":"","type":1},{"key":"SMALL","value":"s","type":1},]`)
	fits := map[string]string{"SMALL": "s", "LARGE": strings.Repeat("x", Budget-around)}
	if err := f.Write(fits); err != nil {
		t.Fatalf("exactly the budget: %v", err)
	}
	over := map[string]string{"SMALL": "s", "LARGE": fits["LARGE"] + "x"}
	if err := os.Remove(f["SMALL"]); err != nil {
		t.Fatal(err)
	}
	err := f.Write(over)
	if exitcode.Of(err) != exitcode.BadInput || !strings.Contains(err.Error(), "1025 bytes of 1024") || !strings.Contains(err.Error(), fmt.Sprintf("LARGE with %d bytes", Budget-around+1)) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(f["SMALL"]); err == nil {
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

func TestParseFiles(t *testing.T) {
	f, err := ParseFiles([]string{"A=/x/A", "B=/x=y/B"})
	if err != nil || f["A"] != "/x/A" || f["B"] != "/x=y/B" {
		t.Errorf("%v: %v", f, err)
	}
	for _, bad := range [][]string{{"A"}, {"=x"}, {"A="}, {"A=1", "A=2"}} {
		if _, err := ParseFiles(bad); exitcode.Of(err) != exitcode.Usage {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestWriteNamesAFolderThatIsNotThere(t *testing.T) {
	err := Files{"A": filepath.Join(t.TempDir(), "none", "A")}.Write(map[string]string{"A": "1"})
	if exitcode.Of(err) != exitcode.IO || !strings.Contains(err.Error(), "result A") {
		t.Errorf("%v", err)
	}
}
