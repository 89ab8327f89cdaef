package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/trainer/internal/dataset"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/gpt"
	"github.com/trainyard/trainyard/trainer/internal/hf"
	"github.com/trainyard/trainyard/trainer/internal/store"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// call runs a command line and returns what it printed and its exit code.
func call(t *testing.T, env map[string]string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &App{Out: &out, Err: &errs, Getenv: func(k string) string { return env[k] }, Now: time.Now, Build: Build{"v1.2.3", "abc"}}
	code = a.Run(t.Context(), args)
	return out.String(), errs.String(), code
}

func TestVersion(t *testing.T) {
	out, _, code := call(t, nil, "version", "--output", "json")
	var v versionReport
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 {
		t.Fatalf("code %d, %v: %s", code, err, out)
	}
	if v.Version != "v1.2.3" || v.Commit != "abc" || !strings.HasPrefix(v.Go, "go") || v.ISA == "" || v.GOMAXPROCS < 1 {
		t.Errorf("%+v", v)
	}
	out, _, _ = call(t, map[string]string{"TRAINER_ISA": "portable"}, "version")
	if !strings.Contains(out, "trainer v1.2.3 abc") || !strings.Contains(out, "kernels portable") {
		t.Errorf("text %q", out)
	}
}

func TestUsageErrors(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"unknown command":     {nil, []string{"trian"}, `unknown command or argument "trian"`},
		"unknown flag":        {nil, []string{"train", "--max-iter", "3"}, "unknown flag: --max-iter"},
		"wrong value":         {nil, []string{"train", "--max-iters", "many"}, `"many"`},
		"argument":            {nil, []string{"train", "x"}, `argument "x"`},
		"wrong output":        {nil, []string{"version", "--output", "xml"}, `output is "xml"`},
		"wrong variable":      {map[string]string{"TRAINER_MAX_ITERS": "many"}, []string{"train"}, `TRAINER_MAX_ITERS="many"`},
		"wrong ISA":           {map[string]string{"TRAINER_ISA": "mmx"}, []string{"version"}, `TRAINER_ISA="mmx"`},
		"wrong ISA to train":  {map[string]string{"TRAINER_ISA": "mmx"}, []string{"train", "--run-dir", qaRun(t)}, `TRAINER_ISA="mmx"`},
		"wrong ISA to sample": {map[string]string{"TRAINER_ISA": "mmx"}, []string{"sample", "--model", modelDir(t), "--prompt", "x"}, `TRAINER_ISA="mmx"`},
		"wrong ISA to serve":  {map[string]string{"TRAINER_ISA": "mmx"}, []string{"serve", "--model", modelDir(t), "--addr", "127.0.0.1:0"}, `TRAINER_ISA="mmx"`},
		"missing config":      {nil, []string{"train", "--config", "/missing.yaml"}, "/missing.yaml"},
		"no run directory":    {nil, []string{"train"}, "run-dir"},
		"unknown preset":      {nil, []string{"train", "--run-dir", "x", "--preset", "giant"}, `"giant"`},
		"size of a model":     {nil, []string{"train", "--run-dir", "x", "--from", modelDir(t), "--layers", "3"}, "layers has no use with from"},
		"negative threads":    {nil, []string{"train", "--threads", "-1"}, "threads is -1"},
		"NaN for flat":        {nil, []string{"train", "--run-dir", "x", "--stop-flat", "2", "--stop-flat-delta", "nan"}, "stop-flat-delta is NaN"},
		"unknown progress":    {nil, []string{"train", "--run-dir", t.TempDir(), "--progress", "loud"}, `progress is "loud"`},
		"global that fails":   {nil, []string{"train", "--run-dir", qaRun(t), "--global-batch", "7"}, "global-batch is 7"},
		"serve too many":      {nil, []string{"serve", "--run-dir", "x", "--concurrency", "-1"}, "concurrency is -1"},
		"serve nothing":       {nil, []string{"serve"}, "no model"},
		"sample nothing":      {nil, []string{"sample"}, "no model"},
	} {
		_, stderr, code := call(t, c.env, c.args...)
		last := stderr[strings.LastIndex(strings.TrimSpace(stderr), "\n")+1:]
		if code != exitcode.Usage || !strings.HasPrefix(last, "trainer: ") || !strings.Contains(last, c.want) {
			t.Errorf("%s: code %d, %q; want %d, %q", name, code, stderr, exitcode.Usage, c.want)
		}
	}
}

func TestEveryVerbHasHelpWithExamples(t *testing.T) {
	a := &App{Getenv: func(string) string { return "" }}
	for _, c := range a.root().Commands() {
		if c.Short == "" || (!strings.Contains(c.Example, "trainer "+c.Name()) && c.Name() != "help") {
			t.Errorf("%s: short %q, example %q", c.Name(), c.Short, c.Example)
		}
		out, _, code := call(t, nil, c.Name(), "--help")
		if code != 0 || (c.Example != "" && !strings.Contains(out, "Examples:")) {
			t.Errorf("%s --help: code %d\n%s", c.Name(), code, out)
		}
	}
}

func TestCodeOf(t *testing.T) {
	for want, errs := range map[int][]error{
		exitcode.OK:         {nil},
		exitcode.Failed:     {errors.New("anything")},
		exitcode.Usage:      {train.ErrConfig, gpt.ErrMemory, fmt.Errorf("x: %w", gpt.ErrConfig), exitcode.Errorf(exitcode.Usage, "x")},
		exitcode.BadInput:   {train.ErrMismatch, train.ErrData, dataset.ErrMeta, fmt.Errorf("%w: %w", hf.ErrModel, gpt.ErrConfig), &fs.PathError{Err: syscall.ENOENT}},
		exitcode.IO:         {store.ErrDenied, &fs.PathError{Op: "write", Err: syscall.ENOSPC}, fmt.Errorf("x: %w", syscall.EIO)},
		exitcode.Diverged:   {fmt.Errorf("train: %w", train.ErrDiverged)},
		exitcode.Conflict:   {store.ErrLost},
		exitcode.Integrity:  {train.ErrIntegrity, store.ErrIntegrity},
		exitcode.Interrupt:  {exitcode.SignalError{Signal: syscall.SIGINT}},
		exitcode.Terminated: {fmt.Errorf("%w: %w", train.ErrInterrupted, exitcode.SignalError{Signal: syscall.SIGTERM})},
	} {
		for _, err := range errs {
			if got := codeOf(err); got != want {
				t.Errorf("%v: code %d, want %d", err, got, want)
			}
		}
	}
}

func TestSignalDuringAnyWorkHasItsCode(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(exitcode.SignalError{Signal: syscall.SIGTERM})
	var errs bytes.Buffer
	a := &App{Out: io.Discard, Err: &errs, Getenv: func(string) string { return "" }, Now: time.Now}
	// Preparing sees the end of its context before training begins.
	code := a.Run(ctx, []string{"train", "--run-dir", filepath.Join(t.TempDir(), "run"), "--qa", factsFile})
	if code != exitcode.Terminated || !strings.Contains(errs.String(), "SIGTERM") {
		t.Errorf("code %d: %s", code, errs.String())
	}
}

// seenBy runs a command line with a verb that has flags of several kinds and
// returns their values.
func seenBy(t *testing.T, config string, env map[string]string, args ...string) (string, error) {
	t.Helper()
	root := &cobra.Command{Use: "trainer", SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().String(configFlag, "", "")
	var number int
	var text string
	var list []string
	cmd := &cobra.Command{Use: "play", RunE: func(cmd *cobra.Command, _ []string) error {
		return settle(cmd, func(k string) string { return env[k] })
	}}
	cmd.Flags().IntVar(&number, "max-iters", 1, "")
	cmd.Flags().StringVar(&text, "text", "default", "")
	cmd.Flags().StringArrayVar(&list, "prompt", nil, "")
	other := &cobra.Command{Use: "other", Run: func(*cobra.Command, []string) {}}
	other.Flags().Int("elsewhere", 0, "")
	root.AddCommand(cmd, other)
	if config != "" {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	root.SetArgs(append([]string{"play"}, args...))
	err := root.ExecuteContext(context.Background())
	return fmt.Sprintf("%d %s %q", number, text, list), err
}

func TestFlagsWinOverVariablesOverTheFile(t *testing.T) {
	env := map[string]string{"TRAINER_MAX_ITERS": "3"}
	for name, c := range map[string]struct {
		config string
		env    map[string]string
		args   []string
		want   string
	}{
		"defaults":                    {"", nil, nil, `1 default []`},
		"the file":                    {"max-iters: 2\ntext: \"hello: world\"\n", nil, nil, `2 hello: world []`},
		"a variable over the file":    {"max-iters: 2", env, nil, `3 default []`},
		"a flag over both":            {"max-iters: 2", env, []string{"--max-iters", "4"}, `4 default []`},
		"an empty variable is unset":  {"max-iters: 2", map[string]string{"TRAINER_MAX_ITERS": ""}, nil, `2 default []`},
		"a list":                      {"prompt: [a, 'b c']", nil, nil, `1 default ["a" "b c"]`},
		"a section":                   {"max-iters: 2\nplay: {max-iters: 5}\n", nil, nil, `5 default []`},
		"a section before its key":    {"play: {max-iters: 5}\nmax-iters: 2\n", nil, nil, `5 default []`},
		"another subcommand's":        {"elsewhere: 7\nother: {elsewhere: 8}\n", nil, nil, `1 default []`},
		"an empty file":               {"# nothing\n", nil, nil, `1 default []`},
		"a number for a text":         {"text: 007\n", nil, nil, `1 007 []`},
		"a flag equal to its default": {"max-iters: 2", nil, []string{"--max-iters", "1"}, `1 default []`},
		"a variable alone":            {"", map[string]string{"TRAINER_TEXT": "v"}, nil, `1 v []`},
	} {
		got, err := seenBy(t, c.config, c.env, c.args...)
		if err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
	}
}

func TestConfigThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ config, want string }{
		"an unknown key":              {"max-iters: 1\nmax_iters: 2\n", "line 2: max_iters is no flag of any subcommand"},
		"an unknown key of a section": {"play:\n  elsewhere: 2\n", "line 2: elsewhere is no flag of play"},
		"a key that is there twice":   {"text: a\ntext: b\n", "line 2: key text is there twice"},
		"a wrong value":               {"max-iters: many\n", `max-iters: invalid argument "many"`},
		"no value":                    {"max-iters:\n", "line 1: max-iters: no value"},
		"a mapping for a value":       {"max-iters: {a: 1}\n", "want a value or a list"},
		"a list of lists":             {"prompt: [[a]]\n", "want a list of plain values"},
		"no mapping":                  {"- a\n", "want keys and values"},
		"no YAML":                     {"a: b: c\n", "mapping values are not allowed"},
		"itself":                      {"config: x\n", "config is no flag"},
	} {
		_, err := seenBy(t, c.config, nil)
		if codeOf(err) != exitcode.Usage || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "config.yaml") {
			t.Errorf("%s: %v, want a usage error with %q", name, err, c.want)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add("max-iters: 2\ntrain: {lr: 1e-3}\nprompt: [a, b]\n")
	f.Add("a: &a [*a]\n")
	f.Add("train: &x {lr: 1}\nsample: *x\n")
	f.Fuzz(func(t *testing.T, text string) {
		a := &App{Getenv: func(string) string { return "" }}
		cmd, _, err := a.root().Find([]string{"train"})
		if err != nil {
			t.Fatal(err)
		}
		values, err := parseConfig([]byte(text), cmd)
		if err != nil {
			return
		}
		names := flagNames(cmd.Root())
		for k := range values {
			found := false
			for _, n := range names {
				found = found || n == k
			}
			if !found {
				t.Errorf("accepted the key %q", k)
			}
		}
	})
}
