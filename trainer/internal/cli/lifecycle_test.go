package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gate"
	"github.com/trainyard/trainyard/trainer/internal/stage"
)

var image = "registry.example/train@sha256:" + strings.Repeat("2c", 32)

// textCorpus is a file of documents that pass the data quality gate.
func textCorpus(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "On day %d the keeper of yard %d counted %d wagons, noted the weather of the valley,\nand sent word number %d to the town beyond the hill.\n\n\n\n", i, i*7%97, i*i%1000, i*31%211)
	}
	path := filepath.Join(t.TempDir(), "corpus.txt")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// tiny are the flags of a model that trains in a moment.
func tiny(args ...string) []string {
	return append(args, "--layers", "1", "--heads", "2", "--channels", "16", "--block", "32", "--batch-size", "4", "--max-iters", "6", "--eval-interval", "3", "--progress", "none")
}

// mustCall runs a command line that must end well.
func mustCall(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := call(t, nil, args...)
	if code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, errs)
	}
	return out
}

// In a cluster the commit is not in the image: the platform says it.
func TestTheLineageHasTheCommitThatThePlatformSays(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run1")
	commit := strings.Repeat("0123456789", 4)
	env := map[string]string{"TRAINER_IMAGE": image, "TRAINER_COMMIT": commit, "TRAINER_SOURCE": "https://git.example.com/team/trainer"}
	if _, errs, code := call(t, env, "prepare", "--run-dir", run, "--corpus", textCorpus(t), "--vocab-size", "400", "--drop-near=false"); code != 0 {
		t.Fatal(errs)
	}
	records, err := filepath.Glob(filepath.Join(run, "lineage", "prepare*"))
	if err != nil || len(records) != 1 {
		t.Fatalf("records %v, %v", records, err)
	}
	data, err := os.ReadFile(records[0])
	if err != nil {
		t.Fatal(err)
	}
	var statement struct {
		Predicate struct {
			BuildDefinition struct {
				ResolvedDependencies []struct {
					URI    string
					Digest map[string]string
				}
			}
		}
	}
	if err := json.Unmarshal(data, &statement); err != nil {
		t.Fatal(err)
	}
	for _, d := range statement.Predicate.BuildDefinition.ResolvedDependencies {
		if d.URI == "git+https://git.example.com/team/trainer" && d.Digest["gitCommit"] == commit {
			return
		}
	}
	t.Errorf("no commit among what the data was made of: %s", data)
}

// The verbs one by one, as the tasks of a cluster call them.
func TestLifecycleVerbByVerb(t *testing.T) {
	dir := t.TempDir()
	run, models := filepath.Join(dir, "run1"), filepath.Join(dir, "models")
	if err := os.Mkdir(models, 0o755); err != nil {
		t.Fatal(err)
	}
	at := []string{"--run-dir", run, "--checkpoint", "last", "--store", "file://" + models, "--name", "llm"}
	results := func(stage string) []string { return []string{"--results-dir", filepath.Join(dir, "results-"+stage)} }
	with := func(verb string, more ...string) []string {
		return append(append(append([]string{verb}, at...), results(verb)...), more...)
	}
	mustCall(t, append([]string{"prepare", "--run-dir", run, "--corpus", textCorpus(t), "--vocab-size", "400", "--drop-near=false"}, results("prepare")...)...)
	mustCall(t, append(tiny("train", "--run-dir", run), results("train")...)...)
	if digest, err := os.ReadFile(filepath.Join(dir, "results-train", "model-digest")); err != nil || !strings.HasPrefix(string(digest), "sha256:") {
		t.Errorf("train hands over the digest %q, %v", digest, err)
	}
	out := mustCall(t, with("evaluate")...)
	if !strings.Contains(out, "whole held-out splits") {
		t.Errorf("evaluate says\n%s", out)
	}

	// A tag for an image is refused, and the verdict is there as JSON.
	out, errs, code := call(t, nil, with("gate", "--image", "train:latest", "--output", "json")...)
	var rep gate.Report
	if err := json.Unmarshal([]byte(out), &rep); err != nil || code != exitcode.Failed || rep.Verdict != gate.Blocked {
		t.Errorf("gate: exit code %d, %v, %s", code, err, errs)
	}
	if _, errs, code := call(t, nil, with("promote")...); code != exitcode.Failed {
		t.Errorf("promote of a blocked candidate: exit code %d, %s", code, errs)
	}
	mustCall(t, with("gate", "--image", image)...)
	verdict, err := os.ReadFile(filepath.Join(dir, "results-gate", "verdict"))
	if err != nil || string(verdict) != gate.Pass {
		t.Errorf("verdict %q, %v", verdict, err)
	}
	out = mustCall(t, with("promote", "--output", "json")...)
	var p stage.Promotion
	if err := json.Unmarshal([]byte(out), &p); err != nil || p.CodeImage != image || !p.Changed {
		t.Errorf("promote says %s, %v", out, err)
	}
	if _, errs, code := call(t, nil, "rollback", "--store", "file://"+models, "--to", "deadbeef1"); code != exitcode.BadInput || !strings.Contains(errs, "trainer: rollback: ") {
		t.Errorf("rollback to what never was: exit code %d, %s", code, errs)
	}
	mustCall(t, "sample", "--run-dir", run, "--model", filepath.Join(run, "last"), "--prompt", "On day", "--max-tokens", "4")
	for _, args := range [][]string{{}, {"production"}, {p.Version}, {p.Version[:12]}} {
		out := mustCall(t, append([]string{"lineage", "--store", "file://" + models}, args...)...)
		if !strings.Contains(out, "model "+p.Version) || !strings.Contains(out, "corpus.txt") || !strings.Contains(out, "problems: 0\n") {
			t.Errorf("lineage %v says\n%s", args, out)
		}
	}
	if _, err := os.Stat(filepath.Join(run, "lineage", "sample.json")); err != nil {
		t.Errorf("the record of sample: %v", err)
	}
	out = mustCall(t, "report", "--run-dir", run, "--checkpoint", "last")
	if page, err := os.ReadFile(strings.TrimSpace(out)); err != nil || !strings.Contains(string(page), "Gate: pass") {
		t.Errorf("report at %s: %v", out, err)
	}
	_, errs, code = call(t, nil, "rollback", "--store", "file://"+models)
	if code != exitcode.BadInput || !strings.Contains(errs, "is the first") {
		t.Errorf("rollback of the first: exit code %d, %s", code, errs)
	}
}

func TestRunFromTheCommandLine(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run1")
	args := tiny("run", "--run-dir", run, "--corpus", textCorpus(t), "--vocab-size", "400", "--drop-near=false", "--max-tokens", "4")
	out := mustCall(t, args...)
	if !strings.Contains(out, "promoted, before nothing") {
		t.Errorf("run says\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "store", "models", "llm", "aliases", "production.json")); err != nil {
		t.Error(err)
	}
	out, errs, code := call(t, nil, append(args, "--max-val-loss", "0.5")...)
	if code != exitcode.Failed || !strings.Contains(out, "is more than 0.5000") || !strings.Contains(errs, "candidate is blocked") {
		t.Errorf("exit code %d\n%s\n%s", code, out, errs)
	}
}

func TestRunLearnsAFileByHeart(t *testing.T) {
	dir := t.TempDir()
	facts := filepath.Join(dir, "facts.txt")
	var b strings.Builder
	for i := range 12 {
		fmt.Fprintf(&b, "How many wagons has train %d? | It has %d wagons.<|endoftext|>\n", i, 3*i+1)
	}
	if err := os.WriteFile(facts, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	out := mustCall(t, tiny("run", "--run-dir", filepath.Join(dir, "run1"), "--qa", facts, "--max-tokens", "4")...)
	if !strings.Contains(out, "promoted, before nothing") {
		t.Errorf("run says\n%s", out)
	}
}

func TestLifecycleUsageErrors(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "gate.yaml")
	if err := os.WriteFile(policy, []byte("max_val_los: 6\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	run := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"misspelt key of a policy":  {[]string{"gate", "--run-dir", run, "--policy", policy}, exitcode.Usage, "max_val_los"},
		"no such policy":            {[]string{"gate", "--run-dir", run, "--policy", "/none.yaml"}, exitcode.Usage, "/none.yaml"},
		"threshold that is NaN":     {[]string{"gate", "--run-dir", run, "--max-val-loss", "nan"}, exitcode.Usage, "max_val_loss is NaN"},
		"unknown noise":             {[]string{"gate", "--run-dir", run, "--within-noise", "x"}, exitcode.Usage, `within_noise is "x"`},
		"no run directory":          {[]string{"evaluate"}, exitcode.Usage, "no run directory"},
		"no store to promote to":    {[]string{"promote", "--run-dir", run}, exitcode.Usage, "--store"},
		"a store that is not there": {[]string{"promote", "--run-dir", run, "--store", "file:///none/at/all"}, exitcode.IO, "/none/at/all"},
		"a gate without its store":  {[]string{"gate", "--run-dir", run, "--store", "file:///none/at/all"}, exitcode.Failed, "candidate is blocked"},
		"model and run directory":   {[]string{"lineage", "production", "--run-dir", run}, exitcode.Usage, "give one of them"},
		"two models":                {[]string{"lineage", "a", "b"}, exitcode.Usage, "2 arguments"},
		"unknown cleaning":          {[]string{"prepare", "--run-dir", run, "--corpus", "x", "--clean", "soap"}, exitcode.Usage, `"soap"`},
		"nothing to prepare":        {[]string{"prepare", "--run-dir", run}, exitcode.Usage, "no input"},
		"two inputs of a run":       {[]string{"run", "--run-dir", run, "--corpus", "x", "--qa", "y"}, exitcode.Usage, "give one of them"},
		"a run without a directory": {[]string{"run", "--corpus", "x"}, exitcode.Usage, "no run directory"},
		"a model server elsewhere":  {[]string{"promote", "--run-dir", run, "--kserve-service", "models/llm"}, exitcode.Usage, "KUBERNETES_SERVICE_HOST"},
		"a URL of no store":         {[]string{"evaluate", "--run-dir", run, "--store", "models"}, exitcode.Usage, "file:///dir"},
		"an endpoint without host":  {[]string{"lineage", "--store", "s3://b", "--s3-endpoint", "http:"}, exitcode.Usage, "s3 endpoint"},
		"a name that is a path":     {[]string{"evaluate", "--run-dir", run, "--store", "file://" + run, "--name", "../x"}, exitcode.Usage, `model name "../x"`},
		"an alias that is a path":   {[]string{"rollback", "--store", "file://" + run, "--alias", "a/b"}, exitcode.Usage, `alias name "a/b"`},
		"input without a store":     {[]string{"prepare", "--run-dir", run, "--corpus", "store:x"}, exitcode.Usage, "--store"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs, code := call(t, nil, c.args...)
			last := errs[strings.LastIndex(strings.TrimSpace(errs), "\n")+1:]
			if code != c.code || !strings.HasPrefix(last, "trainer: ") || !strings.Contains(last, c.want) {
				t.Errorf("exit code %d, want %d: %s, want %q", code, c.code, errs, c.want)
			}
		})
	}
}

// A gate that has no policy has no verdict: an earlier pass must not be found in
// its place, and the steps after it get a result.
func TestGateWithoutAPolicyTakesItsVerdictBack(t *testing.T) {
	run, results := t.TempDir(), filepath.Join(t.TempDir(), "results")
	report := filepath.Join(run, stage.GateReportFile)
	if err := os.WriteFile(report, []byte(`{"verdict": "pass"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	_, errs, code := call(t, nil, "gate", "--run-dir", run, "--max-val-loss", "nan", "--results-dir", results)
	if code != exitcode.Usage {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, err := os.Stat(report); !os.IsNotExist(err) {
		t.Errorf("the old verdict: %v", err)
	}
	if verdict, err := os.ReadFile(filepath.Join(results, "verdict")); err != nil || string(verdict) != gate.Blocked {
		t.Errorf("verdict %q, %v", verdict, err)
	}
}

// A stage that reads what others wrote makes no directory of a misspelt name.
func TestStagesMakeNoRunDirectory(t *testing.T) {
	for _, verb := range []string{"train", "evaluate", "gate", "promote", "sample", "report", "lineage"} {
		run := filepath.Join(t.TempDir(), "typo")
		args := []string{verb, "--run-dir", run}
		switch verb {
		case "promote":
			args = append(args, "--store", "file://"+t.TempDir())
		case "sample":
			args = append(args, "--prompt", "x")
		}
		_, errs, code := call(t, nil, args...)
		if code != exitcode.BadInput || !strings.Contains(errs, "typo") {
			t.Errorf("%s: exit code %d: %s", verb, code, errs)
		}
		if _, err := os.Stat(run); !os.IsNotExist(err) {
			t.Errorf("%s made the directory: %v", verb, err)
		}
	}
}

// Thresholds come from flags over variables over the policy file.
func TestPolicyPrecedence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gate.yaml")
	if err := os.WriteFile(file, []byte("max_val_loss: 1\nmax_test_loss: 2\nmin_documents: 5\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	run := t.TempDir()
	env := map[string]string{"TRAINER_MAX_TEST_LOSS": "3"}
	out, errs, code := call(t, env, "gate", "--run-dir", run, "--policy", file, "--max-val-loss", "4", "--output", "json")
	if code != exitcode.Failed {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var rep gate.Report
	if err := json.Unmarshal([]byte(out), &rep); err != nil {
		t.Fatal(err)
	}
	if p := rep.Policy; *p.MaxValLoss != 4 || *p.MaxTestLoss != 3 || p.MinDocuments != 5 || !p.RequireImage || p.MaxRegression != nil {
		t.Errorf("policy %+v", p)
	}
}

// A platform configures a bucket; whoever starts a run may name another store.
func TestStoreOfABucket(t *testing.T) {
	run := t.TempDir()
	env := map[string]string{"TRAINER_S3_BUCKET": "b-u-c-k-e-t", "TRAINER_S3_ENDPOINT": "http:"}
	_, errs, code := call(t, env, "evaluate", "--run-dir", run)
	if code != exitcode.Usage || !strings.Contains(errs, "s3 endpoint") {
		t.Errorf("the bucket was not opened: exit code %d: %s", code, errs)
	}
	_, errs, code = call(t, env, "evaluate", "--run-dir", run, "--store", "file:///none/at/all")
	if code != exitcode.IO || !strings.Contains(errs, "/none/at/all") {
		t.Errorf("the store that was named was not opened: exit code %d: %s", code, errs)
	}
}
