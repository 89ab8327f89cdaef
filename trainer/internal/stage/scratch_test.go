package stage

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
)

// What a killed process left goes, what a living one works in stays.
func TestScratchSweepsWhatIsStale(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, baselineTemp+"1")
	if err := os.Mkdir(stale, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(stale, "model.safetensors"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	a, err := newScratch(dir, baselineTemp)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newScratch(dir, baselineTemp)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{stale: false, a.dir: true, b.dir: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %t, want %t", filepath.Base(path), err == nil, want)
		}
	}
	a.remove()
	b.remove()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Two preparations would remove each other's files.
func TestPrepareRefusesASecond(t *testing.T) {
	p := smallPrepare(t, textFile(t, sentences(1, 50)))
	if err := os.MkdirAll(p.RunDir, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := lockRun(p.RunDir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.release()
	if _, err := Prepare(t.Context(), p); code(err) != exitcode.Conflict {
		t.Errorf("error %v, want a conflict", err)
	}
}
