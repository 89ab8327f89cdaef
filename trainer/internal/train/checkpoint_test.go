package train

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

var errCrash = errors.New("crash")

// crashFiles fails at operation n and at every one after it, as a crash or a
// full disk does. A write that fails leaves half of its file.
type crashFiles struct {
	osFiles
	n          int // operations left
	noExchange bool
}

func (c *crashFiles) crashes() bool { c.n--; return c.n < 0 }

func (c *crashFiles) tempDir(dir, prefix string) (string, error) {
	if c.crashes() {
		return "", errCrash
	}
	return c.osFiles.tempDir(dir, prefix)
}

func (c *crashFiles) rename(from, to string) error {
	if c.crashes() {
		return errCrash
	}
	return c.osFiles.rename(from, to)
}

func (c *crashFiles) exchange(a, b string) error {
	if c.noExchange {
		return errors.ErrUnsupported
	}
	if c.crashes() {
		return errCrash
	}
	return c.osFiles.exchange(a, b)
}

func (c *crashFiles) removeAll(path string) error {
	if !c.crashes() {
		return c.osFiles.removeAll(path)
	}
	// A removal cut short has removed something.
	entries, err := os.ReadDir(path)
	if err == nil && len(entries) > 0 {
		err = os.Remove(filepath.Join(path, entries[0].Name()))
	}
	return errors.Join(errCrash, err)
}

func (c *crashFiles) syncDir(path string) error {
	if c.crashes() {
		return errCrash
	}
	return c.osFiles.syncDir(path)
}

func (c *crashFiles) writeJSON(path string, v any) error {
	if !c.crashes() {
		return c.osFiles.writeJSON(path, v)
	}
	return errors.Join(errCrash, os.WriteFile(path, []byte(`{"schema_ver`), 0o644))
}

func (c *crashFiles) file(path string, w [8]float64) error {
	if !c.crashes() {
		return writeFake(path, w)
	}
	return errors.Join(errCrash, os.WriteFile(path, []byte("[1"), 0o644))
}

// TestCrashAtAnyWriteLeavesALoadableCheckpoint saves step 5, crashes at every
// single operation of saving step 10 (best, then last), and resumes.
func TestCrashAtAnyWriteLeavesALoadableCheckpoint(t *testing.T) {
	cfg := testConfig()
	whole := newRig(t, t.TempDir(), cfg).open(t)
	mustRun(t, whole)
	want := outcomeOf(t, whole)
	for _, noExchange := range []bool{false, true} {
		crashed, finished := 0, false
		for n := 0; !finished; n++ {
			dir := t.TempDir()
			r := newRig(t, dir, cfg).open(t)
			ops := &crashFiles{n: 1 << 30, noExchange: noExchange}
			r.saver.fs = ops
			r.saver.Model = func(d string) error { return ops.file(filepath.Join(d, "model.safetensors"), r.model.W) }
			r.saver.Moments = func(d string) error { return ops.file(filepath.Join(d, "state.safetensors"), r.model.M) }
			r.loop.OnStep("arm", 0, func(_ context.Context, s *State) error {
				if s.Step == 10 {
					ops.n = n
				}
				return nil
			})
			r.killAt(11)
			_, err := r.train(t.Context(), 0)
			switch {
			case errors.Is(err, errKilled):
				finished = true // all operations came through
			case errors.Is(err, errCrash):
				crashed++
			default:
				t.Fatalf("crash at operation %d: %v", n, err)
			}
			again := newRig(t, dir, cfg).open(t)
			if at := again.loop.state.Step; at != 5 && at != 10 {
				t.Fatalf("crash at operation %d: resumes at step %d", n, at)
			}
			if again.loop.state.Step == 10 != (again.model.W == r.model.W) && !finished {
				t.Fatalf("crash at operation %d: weights and record of different steps", n)
			}
			if at := again.loop.state.Step; at == 10 && fileText(t, dir, BestDir, "model.safetensors") != fileText(t, dir, LastDir, "model.safetensors") {
				t.Fatalf("crash at operation %d: last says that step 10 is best, best has another step", n)
			}
			mustRun(t, again)
			outcomeOf(t, again).differs(t, want)
			left, err := filepath.Glob(filepath.Join(dir, ".*"))
			if err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			if t.Failed() {
				t.Fatalf("crash at operation %d, without exchange %v", n, noExchange)
			}
		}
		// Temporary directory, model, sync, swap, sync and removal of best; the
		// same with moments and record for last.
		if crashed < 14 {
			t.Errorf("without exchange %v: only %d operations were made to fail", noExchange, crashed)
		}
	}
}

func TestCheckpointIsWritableForTheGroup(t *testing.T) {
	r := newRig(t, t.TempDir(), testConfig())
	mustRun(t, r)
	info, err := os.Stat(filepath.Join(r.run, LastDir))
	if err != nil || info.Mode().Perm() != 0o775 {
		t.Errorf("mode %v, %v; want 0775", info.Mode(), err)
	}
}

func TestCheckpointIsOneRenameWhereTheSystemCan(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, p := range []string{a, b} {
		if err := os.Mkdir(p, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(p, "name"), []byte(p), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	err := exchange(a, b)
	if errors.Is(err, errors.ErrUnsupported) {
		return // the two renames of the test above do
	}
	if err != nil || fileText(t, a, "name") != b || fileText(t, b, "name") != a {
		t.Errorf("not exchanged: %v", err)
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
