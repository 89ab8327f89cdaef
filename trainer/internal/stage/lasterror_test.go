package stage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

func TestLastErrorOfALog(t *testing.T) {
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	mine, others, nobodys := LogHeader("team/mine", noon), LogHeader("team/others", noon), LogHeader("", noon)
	const down = "trainer: train: store: connection refused\n"
	tests := map[string]struct{ log, owner, want string }{
		"its last line":                        {mine + "step 1\n" + down, "team/mine", "store: connection refused"},
		"without the line's end":               {mine + strings.TrimSpace(down), "team/mine", "store: connection refused"},
		"of another part of the program":       {mine + "trainer: volume: full\n\n", "team/mine", "volume: full"},
		"the attempt before failed":            {mine + down + mine + "step 1\n", "team/mine", ""},
		"the attempt before was killed":        {mine + "step 1\n" + mine + down, "team/mine", "store: connection refused"},
		"another owner's before":               {others + down + mine + "step 1\n", "team/mine", ""},
		"another owner's after":                {mine + "step 1\n" + others + down, "team/mine", ""},
		"of nobody, as on one machine":         {nobodys + down, "", "store: connection refused"},
		"it was killed":                        {mine + "step 1\n", "team/mine", ""},
		"a log from before there were headers": {down, "team/mine", ""},
		"empty":                                {"", "team/mine", ""},
		"a line that never ends":               {mine + strings.Repeat("x", maxLogLine+1) + "\n" + down, "team/mine", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeLog(t, dir, "train", test.log)
			if got := lastError(dir, "train", test.owner); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if got := lastError(t.TempDir(), "train", ""); got != "" {
		t.Errorf("without a log %q", got)
	}
}

func writeLog(t *testing.T, dir, task, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, LogsDir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, LogsDir, task+".log"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A failed run tells why in its results, also where its report cannot be published.
func TestReportSaysWhyTasksFailed(t *testing.T) {
	o := life(t, corpusFile(t), fileStore(t))
	mustRun(t, o)
	r := reportOf(t, o)
	r.Owner = "team/run1"
	writeLog(t, r.RunDir, "evaluate", LogHeader(r.Owner, o.Now())+"trainer: evaluate: baseline: connection refused\n")
	r.Statuses = []string{"train=Succeeded", "sample=Failed", "evaluate=Failed", "gate=None", "promote=None"}
	const want = "sample failed; evaluate failed: baseline: connection refused"
	page, err := Report(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if got := resultsOf(t, r); got["reasons"] != want || got["verdict"] != NoVerdict || got["report-uri"] == "" {
		t.Errorf("results %v", got)
	}
	if b, err := os.ReadFile(page); err != nil || !strings.Contains(string(b), "evaluate failed: baseline: connection refused") {
		t.Errorf("the page does not say it, %v", err)
	}
	t.Run("and that the store refuses the report", func(t *testing.T) {
		fault := exitcode.Errorf(exitcode.IO, "no route to host")
		r.Store = &faulty{Store: o.Store, nth: 1, err: fault}
		if _, err := Report(t.Context(), r); code(err) != exitcode.IO {
			t.Errorf("%v, want code %d", err, exitcode.IO)
		}
		if got := resultsOf(t, r)["reasons"]; !strings.HasPrefix(got, want+"; report failed: publish: ") || !strings.HasSuffix(got, "no route to host") {
			t.Errorf("reasons %q", got)
		}
	})
	t.Run("and publishes the rest where there is no room for a page", func(t *testing.T) {
		s := fileStore(t)
		r.Store = s
		// Nothing can take the place of a folder with something in it.
		if err := os.Remove(page); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(page, ".full"), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := Report(t.Context(), r); code(err) != exitcode.IO {
			t.Errorf("%v, want code %d", err, exitcode.IO)
		}
		if got := resultsOf(t, r); !strings.HasPrefix(got["reasons"], want+"; report failed: ") || got["report-uri"] != "" {
			t.Errorf("results %v", got)
		}
		if keys := strings.Join(keysBelow(t, s, "runs/run1/"), " "); !strings.Contains(keys, "logs/evaluate.log") || !strings.Contains(keys, train.HistoryName) {
			t.Errorf("published %v", keys)
		}
	})
}
