package stage

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gate"
	"github.com/trainyard/trainyard/trainer/internal/lineage"
	"github.com/trainyard/trainyard/trainer/internal/registry"
	"github.com/trainyard/trainyard/trainer/internal/store"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

var testImage = "registry.example/train@sha256:" + strings.Repeat("2c", 32)

// ticking is a clock that moves a second a look, so that times are the same in
// every run.
func ticking() func() time.Time {
	var mu sync.Mutex
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Second)
		return now
	}
}

func testRecording() Recording {
	return Recording{
		Now:  ticking(),
		Code: lineage.Code{Image: testImage, Version: "v1", Commit: strings.Repeat("ab", 20)},
		Host: lineage.Host{OS: "linux", Arch: "amd64", CPU: "Test CPU", CPUs: 2, GOMAXPROCS: 2, Threads: 2, ISA: "test", Go: "go1.25.0"},
	}
}

// fileStore opens an empty store in a directory.
func fileStore(t *testing.T) store.Store {
	t.Helper()
	url, err := store.FileURL(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), url, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// life are options of a whole life that takes about a second.
func life(t *testing.T, corpus string, s store.Store) RunOptions {
	t.Helper()
	p := smallPrepare(t, corpus)
	p.Sensitivity, p.Workers = nil, 1
	run := filepath.Join(t.TempDir(), "run1")
	tr := quickTrain(run)
	policy := gate.Default()
	policy.RequireImage = true
	sample := DefaultSample()
	sample.Sampling.MaxTokens = 4
	return RunOptions{
		Recording: testRecording(), Target: Target{Store: s, Name: "llm", Alias: DefaultAlias}, RunDir: run, Checkpoint: train.LastDir,
		Prepare: p, Train: tr, Evaluate: EvaluateOptions{Threads: 2}, Policy: policy, Sample: sample, Out: io.Discard,
	}
}

func corpusFile(t *testing.T) string { return textFile(t, sentences(1, 200)) }

func mustRun(t *testing.T, o RunOptions) *RunReport {
	t.Helper()
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// readFile returns a file of a run directory.
func readFile(t *testing.T, o RunOptions, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(o.RunDir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func isThere(o RunOptions, name string) bool {
	_, err := os.Stat(filepath.Join(o.RunDir, name))
	return err == nil
}

func aliasOf(t *testing.T, s store.Store) string {
	t.Helper()
	p, err := registry.New(s, registry.Options{}).Get(t.Context(), "llm", DefaultAlias)
	if errors.Is(err, store.ErrNotFound) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return p.Version
}

func historyOf(t *testing.T, s store.Store) []registry.Event {
	t.Helper()
	events, err := registry.New(s, registry.Options{}).History(t.Context(), "llm")
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// The whole life: a first model passes and is promoted, and everything that the
// pipeline is known for is there.
func TestRunPromotesAGoodModel(t *testing.T) {
	s := fileStore(t)
	o := life(t, corpusFile(t), s)
	var out bytes.Buffer
	o.Out = &out
	r := mustRun(t, o)
	for _, f := range []string{
		"train.bin", "val.bin", "test.bin", "tokenizer.json", "meta.json", "data_report.json", "data_quality_report.json", "eval_report.json",
		"last/model.safetensors", "loss_history.csv", "gate_report.json", "promote_report.json", "samples.json", "model_card.md", "report.html", "run.json",
		"lineage/prepare.json", "lineage/train.json", "lineage/evaluate.json", "lineage/gate.json", "lineage/promote.json", "lineage/sample.json",
	} {
		if !isThere(o, f) {
			t.Errorf("%s is missing", f)
		}
	}
	if r.Gate.Verdict != gate.Pass || r.Promotion == nil || !r.Promotion.Changed || r.RunID != "run1" || r.Step != 12 {
		t.Errorf("report %+v\n%s", r, out.String())
	}
	if got := aliasOf(t, s); got != r.Gate.Candidate {
		t.Errorf("%s points to %s, want the candidate %s", DefaultAlias, got, r.Gate.Candidate)
	}
	rep, err := Lineage(t.Context(), LineageOptions{Target: o.Target})
	if err != nil || rep.Checked < 20 {
		t.Errorf("lineage of the promoted model: %d checked, %v", rep.Checked, err)
	}
	rep, err = Lineage(t.Context(), LineageOptions{Target: o.Target, RunDir: o.RunDir, Checkpoint: o.Checkpoint})
	if err != nil || rep.Checked < 20 {
		t.Errorf("lineage of the run: %d checked, %v", rep.Checked, err)
	}
	if page := string(readFile(t, o, ReportFile)); !strings.Contains(page, "Gate: pass") || strings.Contains(page, "Not in this report") {
		t.Error("the page does not show a whole run that passed")
	}
}

// A threshold that cannot be met: exit code 1, every reason, nothing promoted,
// the report left behind, and the candidate in the history.
func TestRunBlocksAndLeavesTheReport(t *testing.T) {
	s := fileStore(t)
	o := life(t, corpusFile(t), s)
	low := 0.5
	o.Policy.MaxValLoss, o.Policy.MaxTestLoss = &low, &low
	o.Code.Image = "registry.example/train:latest"
	var out bytes.Buffer
	o.Out = &out
	r, err := Run(t.Context(), o)
	if code(err) != exitcode.Failed || !errors.Is(err, ErrBlocked) {
		t.Fatalf("error %v", err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error of several lines: %q", err)
	}
	if !strings.Contains(err.Error(), "for 3 reasons") {
		t.Errorf("error %v", err)
	}
	if len(r.Gate.Reasons) != 3 || r.Promotion != nil {
		t.Errorf("reasons %q, promotion %v", r.Gate.Reasons, r.Promotion)
	}
	for _, reason := range r.Gate.Reasons {
		if !strings.Contains(out.String(), reason) {
			t.Errorf("not printed: %s", reason)
		}
	}
	if got := aliasOf(t, s); got != "" {
		t.Errorf("promoted %s", got)
	}
	events := historyOf(t, s)
	if len(events) != 1 || events[0].Kind != registry.KindBlocked || events[0].Version != r.Gate.Candidate || len(events[0].Reasons) != 3 || events[0].Run != "run1" {
		t.Errorf("history %+v", events)
	}
	if page := string(readFile(t, o, ReportFile)); !strings.Contains(page, "Gate: blocked") {
		t.Error("the page does not say blocked")
	}
	if isThere(o, PromoteReportFile) {
		t.Error("there is a promote report")
	}
}

// The same run twice gives the same bytes, and observing it otherwise, or on
// another number of threads, changes none of them.
func TestRunTwiceGivesTheSameBytes(t *testing.T) {
	corpus := corpusFile(t)
	a := life(t, corpus, fileStore(t))
	b := life(t, corpus, fileStore(t))
	b.Train.Config.EvalInterval, b.Train.Threads, b.Evaluate.Threads, b.Sample.Threads = 3, 1, 1, 2
	mustRun(t, a)
	mustRun(t, b)
	for _, f := range []string{"train.bin", "val.bin", "test.bin", "tokenizer.json", "last/model.safetensors", "last/config.json", EvalReportFile, SamplesFile} {
		if !bytes.Equal(readFile(t, a, f), readFile(t, b, f)) {
			t.Errorf("%s differs", f)
		}
	}
}

// A finished run that is run again trains nothing, judges anew and moves nothing;
// the record of who trained stays.
func TestRunAgainChangesNothing(t *testing.T) {
	s := fileStore(t)
	o := life(t, corpusFile(t), s)
	mustRun(t, o)
	record := readFile(t, o, "lineage/train.json")
	r := mustRun(t, o)
	if r.Promotion.Changed || r.Promotion.Added || len(historyOf(t, s)) != 1 {
		t.Errorf("promotion %+v, history %d", r.Promotion, len(historyOf(t, s)))
	}
	if !bytes.Equal(record, readFile(t, o, "lineage/train.json")) {
		t.Error("the record of training was replaced by one of doing nothing")
	}
	if r.Gate.Baseline != r.Gate.Candidate {
		t.Errorf("compared with %s, want itself", r.Gate.Baseline)
	}
	if _, err := Lineage(t.Context(), LineageOptions{Target: o.Target, RunDir: o.RunDir, Checkpoint: o.Checkpoint}); err != nil {
		t.Error(err)
	}
}

// A better model replaces the first, and rollback brings the first back.
func TestRunReplacesAndRollsBack(t *testing.T) {
	s := fileStore(t)
	corpus := corpusFile(t)
	zero := 0.0
	first := mustRun(t, life(t, corpus, s))
	o := life(t, corpus, s)
	o.Train.Config.MaxIters = 40
	o.Policy.MaxRegression = &zero
	second := mustRun(t, o)
	if second.Promotion.From != first.Gate.Candidate || aliasOf(t, s) != second.Gate.Candidate {
		t.Fatalf("promotion %+v", second.Promotion)
	}
	worse := life(t, corpus, s)
	worse.Prepare.VocabSize = 300 // another tokenizer: compared in bits per byte
	worse.Policy.MaxRegression = &zero
	third, err := Run(t.Context(), worse)
	if !errors.Is(err, ErrBlocked) || len(third.Gate.Reasons) != 1 || !strings.Contains(third.Gate.Reasons[0], "in bits per byte") {
		t.Fatalf("a worse model of another tokenizer: %v, %q", err, third.Gate.Reasons)
	}
	p, err := Rollback(t.Context(), RollbackOptions{Target: o.Target, Now: ticking(), Out: io.Discard, Reasons: []string{"drill"}})
	if err != nil || p.Version != first.Gate.Candidate || aliasOf(t, s) != first.Gate.Candidate {
		t.Errorf("rollback %+v, %v", p, err)
	}
	if _, err = Rollback(t.Context(), RollbackOptions{Target: o.Target, Now: ticking(), Out: io.Discard}); code(err) != exitcode.BadInput {
		t.Errorf("rollback beyond the first: %v", err)
	}
	if n := len(historyOf(t, s)); n != 4 {
		t.Errorf("%d events, want two promotions, one blocked, one rollback", n)
	}
}

func TestRunOnADirectoryOfAnotherRun(t *testing.T) {
	o := life(t, corpusFile(t), fileStore(t))
	if _, err := ClaimRun(o.RunDir, "other"); err != nil {
		t.Fatal(err)
	}
	o.RunID = "run1"
	if _, err := Run(t.Context(), o); code(err) != exitcode.BadInput || !strings.Contains(err.Error(), `of run "other"`) {
		t.Errorf("error %v", err)
	}
	if isThere(o, "meta.json") {
		t.Error("something was prepared")
	}
}

// What fails early still leaves a page that says how far the run came.
func TestRunThatFailsLeavesAPage(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.txt")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	o := life(t, empty, fileStore(t))
	if _, err := Run(t.Context(), o); code(err) != exitcode.BadInput || !strings.Contains(err.Error(), "empty.txt") {
		t.Errorf("error %v", err)
	}
	if page := string(readFile(t, o, ReportFile)); !strings.Contains(page, "Run failed") || !strings.Contains(page, "empty.txt") || !strings.Contains(page, EvalReportFile) {
		t.Error("the page does not say what went wrong and what is absent")
	}
}

func TestRunOfQuestionsAndAnswers(t *testing.T) {
	s := fileStore(t)
	o := life(t, factsFile, s)
	q := DefaultPrepareQA()
	q.Inputs, q.RunDir, q.Memorize, q.VocabSize, q.Workers = []string{factsFile}, o.RunDir, true, 512, 1
	o.Prepare = q
	mustRun(t, o)
	if page := string(readFile(t, o, ReportFile)); !strings.Contains(page, " |</pre>") {
		t.Error("the samples are not questions with the bar")
	}
}

func TestFetchInputs(t *testing.T) {
	s := fileStore(t)
	for key, text := range map[string]string{"corpora/a.txt": "one", "corpora/deep/b.txt": "two", "other/c.txt": "three", "other/c.txt.bak": "old", "corporal/a.txt": "four"} {
		if _, err := s.Put(t.Context(), key, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	run := filepath.Join(t.TempDir(), "runs", "r")
	f, err := FetchInputs(t.Context(), s, []string{"local.txt", "store:corpora", "store:other/c.txt"}, run)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Inputs) != 3 || f.Inputs[0] != "local.txt" || filepath.Base(f.Inputs[1]) != "corpora" || filepath.Base(f.Inputs[2]) != "c.txt" {
		t.Errorf("inputs %q", f.Inputs)
	}
	for path, want := range map[string]string{"a.txt": "one", "deep/b.txt": "two"} {
		full := filepath.Join(f.Inputs[1], path)
		if b, err := os.ReadFile(full); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", path, b, err)
		}
		if got := f.Origins[full]; got != s.URL()+"/corpora/"+path {
			t.Errorf("%s comes from %s", path, got)
		}
	}
	if len(f.Origins) != 3 {
		t.Errorf("origins %v", f.Origins)
	}
	if !within(run, f.Inputs[1]) {
		t.Errorf("%s is not in the run directory, and may be on another volume", f.Inputs[1])
	}
	f.Close()
	if left, _ := os.ReadDir(filepath.Dir(run)); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	for in, want := range map[string]int{"store:missing/": exitcode.BadInput} {
		if _, err := FetchInputs(t.Context(), s, []string{in}, run); code(err) != want {
			t.Errorf("%s: %v", in, err)
		}
	}
	if _, err := FetchInputs(t.Context(), nil, []string{"store:a"}, run); code(err) != exitcode.Usage {
		t.Errorf("no store: %v", err)
	}
}

func TestRunFromTheStore(t *testing.T) {
	s := fileStore(t)
	text, err := os.Open(corpusFile(t))
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	if _, err := s.Put(t.Context(), "corpora/c.txt", text); err != nil {
		t.Fatal(err)
	}
	o := life(t, "", s)
	f, err := FetchInputs(t.Context(), s, []string{"store:corpora/c.txt"}, o.RunDir)
	if err != nil {
		t.Fatal(err)
	}
	o.Prepare.Inputs, o.Origins = f.Inputs, f.Origins
	mustRun(t, o)
	f.Close()
	// The file is gone from here; its record says where it came from.
	rec := string(readFile(t, o, "lineage/prepare.json"))
	if !strings.Contains(rec, s.URL()+"/corpora/c.txt") {
		t.Errorf("record\n%s", rec)
	}
	if _, err := Lineage(t.Context(), LineageOptions{Target: o.Target}); err != nil {
		t.Error(err)
	}
}

func TestInterruptedGateIsNoVerdict(t *testing.T) {
	o := life(t, corpusFile(t), fileStore(t))
	mustRun(t, o)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(exitcode.SignalError{Signal: 15})
	_, err := Gate(ctx, gateOf(o))
	var signal exitcode.SignalError
	if !errors.As(err, &signal) {
		t.Errorf("error %v, want the signal", err)
	}
	if isThere(o, GateReportFile) {
		t.Error("an earlier verdict is still there")
	}
}

func gateOf(o RunOptions) GateOptions {
	return GateOptions{Recording: o.Recording, Target: o.Target, RunDir: o.RunDir, Checkpoint: o.Checkpoint, Policy: o.Policy, Out: io.Discard}
}

func evaluateOf(o RunOptions) EvaluateOptions {
	return EvaluateOptions{Recording: o.Recording, Target: o.Target, RunDir: o.RunDir, Checkpoint: o.Checkpoint, Threads: 2}
}

func promoteOf(o RunOptions) PromoteOptions {
	return PromoteOptions{Recording: o.Recording, Target: o.Target, RunDir: o.RunDir, Checkpoint: o.Checkpoint, Out: io.Discard}
}
