package train

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHistoryHasARowAnEvaluationAndInterval(t *testing.T) {
	cfg := testConfig()
	cfg.MaxIters = 8
	r := newRig(t, t.TempDir(), cfg).open(t) // a row every 2 steps, an evaluation every 5
	mustRun(t, r)
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(fileText(t, r.run, HistoryName)), "\n")[1:] {
		f := strings.Split(line, ",")
		got = append(got, f[0]+map[bool]string{true: "+", false: ""}[f[2] != ""])
		if (f[1] == "") != (f[0] == "0") {
			t.Errorf("row %q: train_loss belongs to every step but 0", line)
		}
	}
	if want := "0+ 2 4 5+ 6 8+"; strings.Join(got, " ") != want {
		t.Errorf("rows %v, want %s", got, want)
	}
}

func TestOpenHistoryKeepsWholeRowsUpToTheStep(t *testing.T) {
	h := historyHeader
	for name, c := range map[string]struct {
		old  string
		step int
		want string
	}{
		"no file":            {"", 5, h},
		"a fresh run":        {h + "0,,8,,,0,0\n5,1,1,1,1,5,1\n", 0, h},
		"rows behind":        {h + "0,,8,,,0,0\n5,1,1,1,1,5,1\n6,1,,1,1,6,1\n", 5, h + "0,,8,,,0,0\n5,1,1,1,1,5,1\n"},
		"a row cut short":    {h + "0,,8,,,0,0\n5,1,1", 5, h + "0,,8,,,0,0\n"},
		"cut in the newline": {h + "0,,8,,,0,0\n5,1,1,1,1,5,1", 5, h + "0,,8,,,0,0\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), HistoryName)
			if c.old != "" {
				if err := os.WriteFile(path, []byte(c.old), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			hist, err := OpenHistory(path, c.step)
			if err != nil {
				t.Fatal(err)
			}
			defer hist.Close()
			if got := fileText(t, path); got != c.want {
				t.Errorf("history %q, want %q", got, c.want)
			}
		})
	}
}

func TestForeignHistoryIsNotOverwritten(t *testing.T) {
	for _, old := range []string{"my,notes\n", historyHeader + "one,two\n"} {
		path := filepath.Join(t.TempDir(), HistoryName)
		if err := os.WriteFile(path, []byte(old), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenHistory(path, 5); !errors.Is(err, ErrCheckpoint) || !strings.Contains(err.Error(), path) {
			t.Errorf("%v, want ErrCheckpoint with the path", err)
		}
		if got := fileText(t, path); got != old {
			t.Errorf("the file is %q now", got)
		}
	}
}

func FuzzHistory(f *testing.F) {
	f.Add([]byte(historyHeader+"0,,8,,,0,0\n5,1,1,1,1,5,1\n"), 5)
	f.Add([]byte(historyHeader+"0,,8,,,0,0\n5,1,1"), 5)
	f.Fuzz(func(t *testing.T, b []byte, step int) {
		kept, err := historyUpTo(b, step)
		if err != nil {
			return
		}
		if !bytes.HasPrefix(b, kept) || kept[len(kept)-1] != '\n' {
			t.Errorf("kept %q of %q", kept, b)
		}
	})
}
