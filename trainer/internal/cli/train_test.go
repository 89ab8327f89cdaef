package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/progress"
	"github.com/trainyard/trainyard/trainer/internal/stage"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

const factsFile = "../../../examples/qa/facts.txt"

// asTrainer makes this test binary the trainer, so that a test can kill it.
const asTrainer = "TRAINYARD_TEST_AS_TRAINER"

func TestMain(m *testing.M) {
	if os.Getenv(asTrainer) != "" {
		os.Exit(Main(os.Args[1:], Build{}))
	}
	os.Exit(m.Run())
}

// qaRun prepares the facts.
func qaRun(t *testing.T) string {
	t.Helper()
	p := stage.DefaultPrepareQA()
	p.Inputs, p.RunDir, p.Memorize, p.VocabSize, p.Workers = []string{factsFile}, filepath.Join(t.TempDir(), "run"), true, 512, 1
	if _, err := stage.Prepare(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p.RunDir
}

// small are flags of a model that trains in no time.
func small(run string) []string {
	return []string{"train", "--run-dir", run, "--layers", "1", "--heads", "2", "--channels", "16", "--block", "32",
		"--max-iters", "30", "--eval-interval", "1", "--batch-size", "4", "--dropout", "0.1"}
}

// modelDir trains a small model and returns its directory.
func modelDir(t *testing.T) string {
	t.Helper()
	run := qaRun(t)
	if _, stderr, code := call(t, nil, append(small(run), "--max-iters", "2")...); code != 0 {
		t.Fatalf("code %d: %s", code, stderr)
	}
	return filepath.Join(run, train.BestDir)
}

// killed runs the trainer as a process and sends it a signal once it has told of
// a step. It returns what it said and its state.
func killed(t *testing.T, run string, step int, sig os.Signal) (string, *os.ProcessState) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append(small(run), "--progress", "plain")...)
	cmd.Env = append(os.Environ(), asTrainer+"=1")
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		fmt.Fprintln(&said, lines.Text())
		if strings.Contains(lines.Text(), fmt.Sprintf(" step %d/", step)) {
			if err := cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // a signal is what was wanted
	return said.String(), cmd.ProcessState
}

func weights(t *testing.T, run string) string {
	t.Helper()
	sum := ""
	for _, name := range []string{"last/model.safetensors", "last/state.safetensors", "best/model.safetensors"} {
		s, err := train.FileDigest(filepath.Join(run, name))
		if err != nil {
			t.Fatal(err)
		}
		sum += s + " "
	}
	return sum
}

func TestKilledProcessGoesOnToTheSameBits(t *testing.T) {
	whole := qaRun(t)
	if _, stderr, code := call(t, nil, small(whole)...); code != 0 {
		t.Fatalf("code %d: %s", code, stderr)
	}
	want := weights(t, whole)
	run := qaRun(t)
	step := 0
	for range 3 {
		step += 1 + rand.IntN(8) // any step must do: no seed
		if said, state := killed(t, run, step, syscall.SIGKILL); state.Success() {
			t.Fatalf("step %d: the process was not killed:\n%s", step, said)
		}
		r, err := train.ReadRecord(filepath.Join(run, train.LastDir))
		if err != nil || r.Step < step-1 {
			t.Fatalf("killed at step %d, saved is step %d: %v", step, r.Step, err)
		}
		step = max(step, r.Step)
	}
	if _, stderr, code := call(t, nil, small(run)...); code != 0 {
		t.Fatalf("code %d: %s", code, stderr)
	}
	if got := weights(t, run); got != want {
		t.Errorf("weights %s, want %s", got, want)
	}
}

func TestTerminatedProcessSavesAndSaysSo(t *testing.T) {
	for sig, code := range map[syscall.Signal]int{syscall.SIGTERM: exitcode.Terminated, syscall.SIGINT: exitcode.Interrupt} {
		run := qaRun(t)
		said, state := killed(t, run, 3, sig)
		r, err := train.ReadRecord(filepath.Join(run, train.LastDir))
		if err != nil {
			t.Fatalf("%v:\n%s", err, said)
		}
		if state.ExitCode() == 0 && r.Finished {
			t.Fatalf("%v came too late for 30 steps:\n%s", sig, said)
		}
		want := fmt.Sprintf("trainer: train: training interrupted after step %d of 30: stopped by %s", r.Step, map[bool]string{true: "SIGTERM", false: "SIGINT"}[sig == syscall.SIGTERM])
		if state.ExitCode() != code || !strings.HasSuffix(strings.TrimSpace(said), want) {
			t.Errorf("%v: code %d, want %d; last line should be %q:\n%s", sig, state.ExitCode(), code, want, said)
		}
	}
}

func TestTrainAndSampleFromTheFile(t *testing.T) {
	run := filepath.Join(t.TempDir(), "qa")
	config := filepath.Join(t.TempDir(), "trainyard.yaml")
	text := fmt.Sprintf("run-dir: %s\nqa: %s\noutput: json\ntrain: {layers: 1, heads: 2, channels: 16, max-iters: 3, eval-interval: 2}\nsample: {limit: 2, max-tokens: 4}\n", run, factsFile)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, stderr, code := call(t, map[string]string{"TRAINER_THREADS": "1"}, "train", "--config", config)
	var r stage.TrainReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("code %d, %v: %s %s", code, err, out, stderr)
	}
	if r.Step != 3 || !r.Finished || !strings.HasPrefix(r.BestDigest, "sha256:") {
		t.Errorf("report %+v", r)
	}
	for _, want := range []string{"1 threads (TRAINER_THREADS)", "max-iters 3 is not a multiple of eval-interval 2", "step 3/3"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %q in\n%s", want, stderr)
		}
	}
	b, err := os.ReadFile(filepath.Join(run, progress.FileName))
	if err != nil || !strings.Contains(string(b), `"progressPercentage": 100`) {
		t.Errorf("progress file: %s, %v", b, err)
	}
	rec, err := train.ReadRecord(filepath.Join(run, train.LastDir))
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := rec.Fact("version"); v != "v1.2.3" {
		t.Errorf("version in the record is %q", v)
	}
	out, stderr, code = call(t, map[string]string{"TRAINER_CONFIG": config}, "sample")
	var s stage.SampleReport
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != 0 {
		t.Fatalf("code %d, %v: %s %s", code, err, out, stderr)
	}
	if len(s.Samples) != 2 || s.Exact == nil || s.Exact.Of != 2 || s.Base == nil {
		t.Errorf("report %+v", s)
	}
}

func TestDefaultLearningRate(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want float64
	}{
		"small model":  {nil, 3e-3},
		"larger model": {[]string{"--preset", "gpt2"}, 6e-4},
		"fine-tuning":  {[]string{"--from", modelDir(t)}, 1e-4},
		"given":        {[]string{"--lr", "0.5"}, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			o := stage.DefaultTrain()
			var f trainFlags
			cmd := &cobra.Command{Use: "train"}
			f.addModel(cmd, &o)
			addLoop(cmd, &o, &f)
			if err := cmd.ParseFlags(append([]string{"--run-dir", "x"}, c.args...)); err != nil {
				t.Fatal(err)
			}
			if err := f.resolve(cmd, &o); err != nil {
				t.Fatal(err)
			}
			if got := o.Config.LearningRate; got != c.want || o.Config.MinLearningRate != c.want/10 {
				t.Errorf("learning rate %v to %v, want %v to its tenth", got, o.Config.MinLearningRate, c.want)
			}
		})
	}
}

func TestStoreBeside(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run1")
	if err := os.Mkdir(run, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(run)
	for _, name := range []string{run, run + "/", "."} {
		url, err := storeBeside(name)
		if err != nil || !strings.HasSuffix(url, filepath.Base(dir)+"/store") {
			t.Errorf("%q: %s, %v", name, url, err)
		}
	}
}
