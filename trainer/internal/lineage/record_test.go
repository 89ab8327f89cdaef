package lineage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	commit    = "0123456789abcdef0123456789abcdef01234567"
	imageHash = "2ce7d45f00000000000000000000000000000000000000000000000000000000"
)

// clock gives each call the next of the seconds after a fixed time.
func clock(at ...float64) func() time.Time {
	base := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	return func() time.Time {
		t := base.Add(time.Duration(at[0] * float64(time.Second)))
		if len(at) > 1 {
			at = at[1:]
		}
		return t
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

var (
	testCode = Code{Image: "registry.example/train@sha256:" + imageHash, Commit: commit, Version: "v1.0.0", Repository: "https://example.org/repo"}
	testHost = Host{OS: "linux", Arch: "amd64", CPU: "Test CPU", CPUs: 2, GOMAXPROCS: 2, Threads: 2, ISA: "avx2", Go: "go1.25.0", Features: []string{"avx2", "fma"}}
)

// aRun makes a run directory of three stages with their records.
func aRun(t *testing.T) string {
	t.Helper()
	ctx := context.Background()
	outside := filepath.Join(t.TempDir(), "corpus.txt")
	run := t.TempDir()
	write(t, outside, "some text")
	write(t, filepath.Join(run, "train.bin"), "tokens")
	write(t, filepath.Join(run, "best", "model.safetensors"), "weights")
	write(t, filepath.Join(run, "eval_report.json"), "{}")
	model := strings.Repeat("ab", 32)

	rec := Begin(Options{Run: run, RunID: "run1", Stage: "prepare", Now: clock(0, 10), Code: testCode, Host: testHost})
	rec.Parameter("vocab-size", 4096)
	rec.Input(ctx, KindCorpus, outside)
	rec.Output(ctx, KindData, "train.bin")
	ok(t, rec.Write(Succeeded))

	rec = Begin(Options{Run: run, RunID: "run1", Stage: "train", Now: clock(100, 141.5), Code: testCode, Host: testHost})
	rec.Parameter("max-iters", 300)
	rec.Seed("seed", 1337)
	rec.Input(ctx, KindData, "train.bin")
	rec.Output(ctx, KindFile, "best/model.safetensors")
	rec.AddOutput(Artifact{Name: "best", Kind: KindModel, SHA256: model})
	ok(t, rec.Write(Succeeded))

	rec = Begin(Options{Run: run, RunID: "run1", Stage: "evaluate", Now: clock(142, 145), Code: testCode, Host: testHost})
	rec.Add(Artifact{Name: "best", Kind: KindModel, SHA256: model})
	rec.Output(ctx, KindFile, "eval_report.json")
	ok(t, rec.Write(Succeeded))
	return run
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRecorderWritesAStatement(t *testing.T) {
	run := aRun(t)
	got, err := os.ReadFile(filepath.Join(run, Dir, "train.json"))
	ok(t, err)
	golden := filepath.Join("testdata", "train.json")
	if *update {
		write(t, golden, string(got))
	}
	want, err := os.ReadFile(golden)
	ok(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// What other tools look at, by its public name.
	var m map[string]any
	ok(t, json.Unmarshal(got, &m))
	if m["_type"] != "https://in-toto.io/Statement/v1" || m["predicateType"] != "https://slsa.dev/provenance/v1" {
		t.Errorf("types %v, %v", m["_type"], m["predicateType"])
	}
}

func TestParseReadsBackWhatWasWritten(t *testing.T) {
	run := aRun(t)
	recs, err := ReadDir(filepath.Join(run, Dir))
	ok(t, err)
	if len(recs) != 3 || recs[0].Stage != "prepare" || recs[1].Stage != "train" || recs[2].Stage != "evaluate" {
		t.Fatalf("got %d records", len(recs))
	}
	train := recs[1]
	if train.RunID != "run1" || train.Outcome != Succeeded || train.Parameters["max-iters"] != "300" || train.Seeds["seed"] != 1337 {
		t.Errorf("got %+v", train)
	}
	if !reflect.DeepEqual(train.Host, testHost) || train.Code != testCode {
		t.Errorf("got %+v, %+v", train.Host, train.Code)
	}
	if len(train.Inputs) != 3 || train.Inputs[0].SHA256 != imageHash || train.Inputs[1].Commit != commit || train.Inputs[2].Name != "train.bin" {
		t.Errorf("inputs %+v", train.Inputs)
	}
	again, err := json.Marshal(train)
	ok(t, err)
	back, err := Parse(bytes.NewReader(again))
	ok(t, err)
	if !reflect.DeepEqual(back, train) {
		t.Errorf("got %+v, want %+v", back, train)
	}
}

// Waiting is measured from the end of the stage whose output is used, so a pod
// that hung in a queue shows.
func TestSecondsWaitingAndWorking(t *testing.T) {
	recs, err := ReadDir(filepath.Join(aRun(t), Dir))
	ok(t, err)
	for i, want := range []struct{ waiting, working float64 }{{0, 10}, {90, 41.5}, {0.5, 3}} {
		if recs[i].Waiting != want.waiting || recs[i].Working != want.working {
			t.Errorf("%s: waited %v, worked %v, want %v", recs[i].Stage, recs[i].Waiting, recs[i].Working, want)
		}
	}
}

func TestRecorderErrors(t *testing.T) {
	run := t.TempDir()
	o := Options{Run: run, RunID: "r", Stage: "train", Now: clock(0)}
	rec := Begin(o)
	rec.Input(context.Background(), KindData, "train.bin")
	if err := rec.Write(Succeeded); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "train.bin") {
		t.Errorf("missing input: %v", err)
	}
	if err := Begin(o).Write(Succeeded); !errors.Is(err, ErrRecord) {
		t.Errorf("no output: %v", err)
	}
	if _, err := os.Stat(filepath.Join(run, Dir)); !os.IsNotExist(err) {
		t.Error("something was written")
	}
}

func TestReadDirRefusesARecordUnderAnotherName(t *testing.T) {
	run := aRun(t)
	dir := filepath.Join(run, Dir)
	ok(t, os.Rename(filepath.Join(dir, "train.json"), filepath.Join(dir, "gate.json")))
	if _, err := ReadDir(dir); !errors.Is(err, ErrRecord) || !strings.Contains(err.Error(), "gate.json") {
		t.Errorf("error %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(aRun(t), Dir, "train.json"))
	ok(t, err)
	for name, c := range map[string]struct{ old, new, want string }{
		"another statement type": {StatementType, "https://in-toto.io/Statement/v0.1", "_type"},
		"another predicate":      {PredicateType, "https://slsa.dev/provenance/v0.2", "predicateType"},
		"another builder":        {`"id": "` + BuilderID, `"id": "https://example.org`, "builder.id"},
		"a stage with a path":    {`"stage": "train"`, `"stage": "../x"`, "stage is"},
		"another invocation":     {"run1/train", "run1/gate", "invocationId"},
		"no run":                 {"run1/train", "/train", "invocationId"},
		"digest of a few digits": {`"sha256": "` + imageHash, `"sha256": "2ce7`, "want 64 hex digits"},
		"digest in upper case":   {`"sha256": "` + imageHash, `"sha256": "` + strings.ToUpper(imageHash), "want 64 hex digits"},
		"commit of a few digits": {`"gitCommit": "` + commit, `"gitCommit": "0123`, "gitCommit"},
		"no name":                {`"name": "train.bin"`, `"name": ""`, "has a name of 0"},
		"a long name":            {`"name": "train.bin"`, `"name": "` + strings.Repeat("x", maxName+1) + `"`, "has a name of 4097"},
		"no digest":              {`"sha256": "` + imageHash, `"md5": "` + imageHash, "neither sha256"},
		"a broken time":          {"2026-11-30T12:01:40Z", "yesterday", "invalid"},
		"broken JSON":            {"{", "", "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(string(b), c.old, c.new, 1)
			if text == string(b) {
				t.Fatal("nothing replaced")
			}
			if _, err := Parse(strings.NewReader(text)); !errors.Is(err, ErrRecord) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want ErrRecord with %q", err, c.want)
			}
		})
	}
	none := strings.Replace(string(b), `"subject": [`, `"subject": [], "x": [`, 1)
	if _, err := Parse(strings.NewReader(none)); !errors.Is(err, ErrRecord) || !strings.Contains(err.Error(), "no subject") {
		t.Errorf("no subject: %v", err)
	}
	many := `{"_type":"` + StatementType + `","predicateType":"` + PredicateType + `","subject":[` +
		strings.Repeat(`{"name":"a","digest":{"sha256":"`+imageHash+`"}},`, maxArtifacts) + `{}],"predicate":{"buildDefinition":{"buildType":"` + BuildType +
		`","externalParameters":{"stage":"x"}},"runDetails":{"builder":{"id":"` + BuilderID + `"},"metadata":{"invocationId":"r/x"}}}}`
	if _, err := Parse(strings.NewReader(many)); !errors.Is(err, ErrRecord) || !strings.Contains(err.Error(), "at most 20000") {
		t.Errorf("many subjects: %v", err)
	}
	if _, err := Parse(strings.NewReader(strings.Repeat(" ", maxRecord+1))); !errors.Is(err, ErrRecord) || !strings.Contains(err.Error(), "more than") {
		t.Errorf("huge: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	if b, err := os.ReadFile(filepath.Join("testdata", "train.json")); err == nil {
		f.Add(b)
	}
	f.Add([]byte(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"a","digest":null}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		rec, err := Parse(bytes.NewReader(b))
		if err != nil {
			if !errors.Is(err, ErrRecord) {
				t.Errorf("error %v is not an ErrRecord", err)
			}
			return
		}
		again, err := json.Marshal(rec)
		if err != nil {
			return // a time outside of what JSON can hold
		}
		back, err := Parse(bytes.NewReader(again))
		if err != nil {
			t.Fatalf("cannot read back %s: %v", again, err)
		}
		if back.Stage != rec.Stage || back.RunID != rec.RunID || len(back.Outputs) != len(rec.Outputs) || len(back.Inputs) != len(rec.Inputs) {
			t.Errorf("read back %+v, want %+v", back, rec)
		}
	})
}

func TestCPUName(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"amd64": {"processor\t: 0\nmodel name\t: AMD EPYC: a test\nflags\t: fpu\n", "AMD EPYC: a test"},
		"none":  {"BogoMIPS\t: 50\n", ""},
	} {
		if got := cpuName(strings.NewReader(c.text)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestThisHostAndCode(t *testing.T) {
	h := ThisHost(2, "avx2")
	if h.OS == "" || h.Arch == "" || h.CPU == "" || h.CPUs < 1 || h.GOMAXPROCS < 1 || h.Threads != 2 || h.ISA != "avx2" || !strings.HasPrefix(h.Go, "go") {
		t.Errorf("got %+v", h)
	}
	known := Code{Image: "img@sha256:" + imageHash, Version: "v1", Commit: commit, Repository: "https://git.example.com/a/b"}
	want := known
	want.Binary = "aa"
	if c := ThisCode(known, func() (string, error) { return "aa", nil }); c != want {
		t.Errorf("got %+v, want %+v", c, want)
	}
}
