package lineage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var model = strings.Repeat("ab", 32)

// theModel answers for the run's model.
func theModel(_ context.Context, a Artifact) (string, error) {
	if a.Name == "best" {
		return model, nil
	}
	return "", fmt.Errorf("%s: %w", a.Name, fs.ErrNotExist)
}

func verify(t *testing.T, run string) *Report {
	t.Helper()
	recs, err := ReadDir(filepath.Join(run, Dir))
	ok(t, err)
	rep, err := Verify(context.Background(), recs, model, &Files{Run: run, Model: theModel})
	ok(t, err)
	return rep
}

func TestVerifyAWholeRun(t *testing.T) {
	run := aRun(t)
	rep := verify(t, run)
	if len(rep.Problems) != 0 || rep.Mismatched() {
		t.Errorf("problems %+v", rep.Problems)
	}
	if rep.Checked != 5 { // corpus, train.bin, model.safetensors, the model, eval_report.json
		t.Errorf("%d artifacts checked, want 5", rep.Checked)
	}
	var out strings.Builder
	ok(t, rep.Print(&out))
	golden := filepath.Join("testdata", "tree.txt")
	if *update {
		write(t, golden, out.String())
	}
	want, err := os.ReadFile(golden)
	ok(t, err)
	if out.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestVerifyFindsWhatDoesNotHold(t *testing.T) {
	for name, c := range map[string]struct {
		spoil    func(t *testing.T, run string)
		want     []string
		mismatch bool
	}{
		"data changed": {
			func(t *testing.T, run string) { write(t, filepath.Join(run, "train.bin"), "other tokens") },
			[]string{"prepare: train.bin is "}, true,
		},
		"weights gone": {
			func(t *testing.T, run string) { ok(t, os.Remove(filepath.Join(run, "best", "model.safetensors"))) },
			[]string{"train: best/model.safetensors with digest"}, false,
		},
		"no record of preparation": {
			func(t *testing.T, run string) { ok(t, os.Remove(filepath.Join(run, Dir, "prepare.json"))) },
			[]string{"train used train.bin", "which no record made"}, false,
		},
		"no record of training": {
			func(t *testing.T, run string) { ok(t, os.Remove(filepath.Join(run, Dir, "train.json"))) },
			[]string{"no record says how model"}, false,
		},
		"prepared again after training": {
			func(t *testing.T, run string) {
				write(t, filepath.Join(run, "train.bin"), "new tokens")
				rec := Begin(Options{Run: run, RunID: "run1", Stage: "prepare", Now: clock(200, 210), Code: testCode, Host: testHost})
				rec.Output(context.Background(), KindData, "train.bin")
				ok(t, rec.Write(Succeeded))
			},
			[]string{"train: train.bin is ", "train used train.bin", "but prepare made"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := aRun(t)
			c.spoil(t, run)
			rep := verify(t, run)
			var all strings.Builder
			ok(t, rep.Print(&all))
			for _, want := range c.want {
				if !strings.Contains(all.String(), want) {
					t.Errorf("want %q in\n%s", want, all.String())
				}
			}
			if len(rep.Problems) == 0 || rep.Mismatched() != c.mismatch {
				t.Errorf("%d problems, mismatched %v, want %v", len(rep.Problems), rep.Mismatched(), c.mismatch)
			}
		})
	}
}

// A store that cannot be asked is not a store without the model.
func TestVerifyFailsWhenItCannotLook(t *testing.T) {
	run := aRun(t)
	recs, err := ReadDir(filepath.Join(run, Dir))
	ok(t, err)
	down := errors.New("i/o timeout")
	_, err = Verify(context.Background(), recs, model, &Files{Run: run, Model: func(context.Context, Artifact) (string, error) { return "", down }})
	if !errors.Is(err, down) {
		t.Errorf("error %v, want %v", err, down)
	}
}

// The baseline was made by another run and has a lineage of its own, in the
// registry that its URI names. Without a URI it must be of this run.
func TestAModelOfARegistryIsNotUntraced(t *testing.T) {
	for uri, want := range map[string]int{"s3://b/models/llm/x": 1, "": 2} {
		other := Artifact{Name: "best", URI: uri, Kind: KindModel, SHA256: model}
		recs := []*Record{{Stage: "evaluate", Inputs: []Artifact{other}, Outputs: []Artifact{{Name: "x", URI: "s3://b/x", SHA256: model}}}}
		rep, err := Verify(context.Background(), recs, strings.Repeat("cd", 32), &Files{Model: theModel})
		ok(t, err)
		if len(rep.Problems) != want { // one is that nothing made model cdcd...
			t.Errorf("URI %q: problems %+v, want %d", uri, rep.Problems, want)
		}
	}
}

// Records that feed each other must not be followed for ever.
func TestCycleEnds(t *testing.T) {
	x := Artifact{Name: "x", URI: "s3://b/x", Kind: KindFile, SHA256: strings.Repeat("11", 32)}
	y := Artifact{Name: "y", URI: "s3://b/y", Kind: KindFile, SHA256: strings.Repeat("22", 32)}
	m := Artifact{Name: "best", Kind: KindModel, SHA256: model}
	recs := []*Record{
		{Stage: "train", Inputs: []Artifact{x}, Outputs: []Artifact{m, y}},
		{Stage: "prepare", Inputs: []Artifact{y}, Outputs: []Artifact{x}},
	}
	rep, err := Verify(context.Background(), recs, model, &Files{Model: theModel})
	ok(t, err)
	var out strings.Builder
	ok(t, rep.Print(&out))
	if !strings.Contains(out.String(), "train (above)") {
		t.Errorf("got\n%s", out.String())
	}
}

// A record is written by whoever could write the run directory.
func TestFilesDoesNotLeaveTheRun(t *testing.T) {
	ctx := context.Background()
	run := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "x")
	ok(t, os.Symlink(secret, filepath.Join(run, "link")))
	f := &Files{Run: run}
	for _, name := range []string{"../" + filepath.Base(filepath.Dir(secret)) + "/secret", secret, "link"} {
		if sum, err := f.Digest(ctx, Artifact{Name: name, Kind: KindFile}); err == nil {
			t.Errorf("%s: read as %s", name, sum)
		}
	}
	for _, uri := range []string{"file:///dev/zero", "file://" + run} {
		if _, err := f.Digest(ctx, Artifact{Name: "x", URI: uri, Kind: KindCorpus}); err == nil {
			t.Errorf("%s was read", uri)
		}
	}
	for _, uri := range []string{"s3://bucket/x", "https://example.org/x", "file://host/x", "::"} {
		if _, err := f.Digest(ctx, Artifact{Name: "x", URI: uri, Kind: KindCorpus}); !errors.Is(err, ErrUnchecked) {
			t.Errorf("%s: error %v, want ErrUnchecked", uri, err)
		}
	}
}

func TestPrintKeepsControlCharactersOut(t *testing.T) {
	rep := &Report{Tree: &Node{Label: "model \x1b[31mred\u009b\nnew line"}, Problems: []Problem{{Sentence: "a\x07b"}}}
	var out strings.Builder
	ok(t, rep.Print(&out))
	if strings.ContainsAny(out.String(), "\x1b\x07\u009b") || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("got %q", out.String())
	}
}
