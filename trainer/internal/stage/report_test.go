package stage

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gate"
	"github.com/trainyard/trainyard/trainer/internal/store"
)

func reportOf(t *testing.T, o RunOptions) ReportOptions {
	t.Helper()
	return ReportOptions{Recording: o.Recording, Target: o.Target, RunDir: o.RunDir, Checkpoint: o.Checkpoint, ResultsDir: t.TempDir(), Publish: true, Out: &bytes.Buffer{}}
}

// resultsOf reads every declared result: each must be there.
func resultsOf(t *testing.T, r ReportOptions) map[string]string {
	t.Helper()
	got, size := map[string]string{}, 0
	for _, name := range reportResults {
		b, err := os.ReadFile(filepath.Join(r.ResultsDir, name))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = string(b)
		size += len(name) + len(b)
	}
	if size > MaxResults {
		t.Errorf("results have %d bytes, more than %d", size, MaxResults)
	}
	return got
}

func keysBelow(t *testing.T, s store.Store, prefix string) []string {
	t.Helper()
	infos, err := s.List(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, i := range infos {
		keys = append(keys, strings.TrimPrefix(i.Key, prefix))
	}
	return keys
}

func TestReportOfAPromotedRun(t *testing.T) {
	s := fileStore(t)
	o := life(t, corpusFile(t), s)
	run := mustRun(t, o)
	r := reportOf(t, o)
	r.Statuses = []string{"train=Succeeded", "gate=Succeeded", "promote=Succeeded"}
	if _, err := Report(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	got := resultsOf(t, r)
	if got["verdict"] != gate.Pass || got["reasons"] != "" || got["model-digest"] != "sha256:"+run.Promotion.Version || got["model-uri"] != run.Promotion.Location {
		t.Errorf("results %v", got)
	}
	if want := s.URL() + "/runs/run1/report.html"; got["report-uri"] != want {
		t.Errorf("report-uri %s, want %s", got["report-uri"], want)
	}
	keys := keysBelow(t, s, "runs/run1/")
	for _, want := range []string{ReportFile, GateReportFile, EvalReportFile, SamplesFile, "loss_history.csv", "lineage/train.json", "promote_report.json"} {
		if !slices.Contains(keys, want) {
			t.Errorf("%s was not published: %v", want, keys)
		}
	}
	for _, k := range keys {
		if strings.Contains(k, "safetensors") || strings.HasSuffix(k, ".bin") {
			t.Errorf("%s is no report", k)
		}
	}
}

func TestReportOfABlockedRun(t *testing.T) {
	s := fileStore(t)
	corpus := corpusFile(t)
	mustRun(t, life(t, corpus, s)) // something is promoted, by another run
	o := life(t, corpus, s)
	low := 0.1
	o.Policy.MaxValLoss, o.Policy.MaxTestLoss, o.Policy.MaxPerplexity, o.Policy.MaxBitsPerByte = &low, &low, &low, &low
	if _, err := Run(t.Context(), o); !errors.Is(err, ErrBlocked) {
		t.Fatal(err)
	}
	r := reportOf(t, o)
	r.Statuses = []string{"gate=Failed", "promote=None", "sample=Succeeded"}
	page, err := Report(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	got := resultsOf(t, r)
	if got["verdict"] != gate.Blocked || !strings.Contains(got["reasons"], "val") || got["model-uri"] != "" || got["val-loss"] == "" || got["test-loss"] == "" {
		t.Errorf("results %v", got)
	}
	if b, err := os.ReadFile(page); err != nil || strings.Contains(string(b), "Run failed") {
		t.Errorf("a blocked candidate is a verdict, not a failure: %v", err)
	}
	if keys := keysBelow(t, s, "runs/"+filepath.Base(o.RunDir)+"/"); !slices.Contains(keys, GateReportFile) {
		t.Errorf("published %v", keys)
	}
}

// A run whose training failed must not show what an earlier run in the same
// directory came to.
func TestReportTakesNothingFromAnEarlierRun(t *testing.T) {
	o := life(t, corpusFile(t), fileStore(t))
	mustRun(t, o)
	r := reportOf(t, o)
	r.Statuses = []string{"prepare=Succeeded", "train=Failed", "evaluate=None", "gate=None", "promote=None", "sample=None"}
	page, err := Report(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	got := resultsOf(t, r)
	if got["verdict"] != NoVerdict || got["model-uri"] != "" || got["model-digest"] != "" || got["val-loss"] != "" {
		t.Errorf("results %v", got)
	}
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Run failed", "train failed; succeeded: prepare; failed: train; did not run: evaluate, gate, promote, sample", "gate did not run"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// The candidate passed, but was not promoted this time: what an earlier promotion of it
// wrote is none of this run.
func TestReportOfAPromotionThatFailed(t *testing.T) {
	o := life(t, corpusFile(t), fileStore(t))
	mustRun(t, o)
	for _, status := range []string{"promote=Failed", "promote=None"} {
		r := reportOf(t, o)
		r.Statuses = []string{"gate=Succeeded", status}
		if _, err := Report(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if got := resultsOf(t, r); got["verdict"] != gate.Pass || got["model-uri"] != "" {
			t.Errorf("%s: results %v", status, got)
		}
	}
}

func TestReportOfARunThatNeverBegan(t *testing.T) {
	o := life(t, corpusFile(t), fileStore(t))
	r := reportOf(t, o)
	r.RunDir = filepath.Join(t.TempDir(), "none")
	r.Statuses = []string{"build-image=Failed", "prepare=None"}
	var out bytes.Buffer
	r.Out = &out
	page, err := Report(t.Context(), r)
	if err != nil || page != "" {
		t.Fatalf("%q, %v", page, err)
	}
	if got := resultsOf(t, r); got["verdict"] != NoVerdict || got["reasons"] != "build-image failed" {
		t.Errorf("results %v", got)
	}
	if _, err := os.Stat(r.RunDir); !os.IsNotExist(err) {
		t.Errorf("the directory was made: %v", err)
	}
	if !strings.Contains(out.String(), "failed: build-image") {
		t.Errorf("it says %q", out.String())
	}
	r.Statuses = nil
	if _, err := Report(t.Context(), r); code(err) != exitcode.BadInput {
		t.Errorf("without a pipeline around it: %v, want bad input", err)
	}
}

func TestReportWithAFaultyStore(t *testing.T) {
	o := life(t, corpusFile(t), fileStore(t))
	mustRun(t, o)
	for name, c := range storeFaults() {
		t.Run(name, func(t *testing.T) {
			r := reportOf(t, o)
			r.Store = &faulty{Store: o.Store, nth: 1, err: c.err}
			page, err := Report(t.Context(), r)
			oneClearLine(t, err, c.err)
			if code(err) != c.code {
				t.Errorf("exit code %d, want %d", code(err), c.code)
			}
			if _, err := os.Stat(page); err != nil {
				t.Errorf("no page: %v", err)
			}
			if got := resultsOf(t, r); got["report-uri"] != "" || got["verdict"] != gate.Pass {
				t.Errorf("results %v", got)
			}
		})
	}
	t.Run("not to be opened", func(t *testing.T) {
		r := reportOf(t, o)
		r.Store, r.StoreErr = nil, exitcode.Errorf(exitcode.Usage, "store: no such thing")
		if page, err := Report(t.Context(), r); code(err) != exitcode.Usage || page == "" {
			t.Errorf("%q, %v", page, err)
		}
	})
	t.Run("none to publish to", func(t *testing.T) {
		r := reportOf(t, o)
		r.Store = nil
		if _, err := Report(t.Context(), r); code(err) != exitcode.Usage || !strings.Contains(err.Error(), "--store") {
			t.Errorf("%v", err)
		}
	})
}

// The reasons give way to what a machine reads: an address of the store is whole.
func TestReportResultsFitWhateverTheStoreIsCalled(t *testing.T) {
	dir := t.TempDir()
	results, err := NewResults(dir, reportResults...)
	if err != nil {
		t.Fatal(err)
	}
	long := "s3://bucket/" + strings.Repeat("x", 200)
	r := &reporting{
		values: map[string]string{
			"verdict": gate.Blocked, "model-digest": "sha256:" + strings.Repeat("a", 64), "model-uri": long, "report-uri": long, "val-loss": "4.123", "test-loss": "4.123",
		},
		reasons: slices.Repeat([]string{"validation loss 4.1234 is above the threshold 4.0000"}, 40),
	}
	if err := r.hand(results); err != nil {
		t.Fatal(err)
	}
	if err := results.Write(); err != nil {
		t.Fatal(err)
	}
	got := resultsOf(t, ReportOptions{ResultsDir: dir})
	if got["model-uri"] != long || !strings.HasPrefix(got["reasons"], "validation loss") || !strings.HasSuffix(got["reasons"], "more") {
		t.Errorf("results %v", got)
	}
}

func TestStatusesRefuse(t *testing.T) {
	for _, s := range []string{"train", "=Failed", "train=failed", "train=", "train=Completed"} {
		if _, err := parseStatuses([]string{s}); code(err) != exitcode.Usage {
			t.Errorf("%q: %v, want a usage error", s, err)
		}
	}
}
