package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// call runs a command line and returns what it printed and its exit code.
func call(t *testing.T, env map[string]string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	s := Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(k string) string { return env[k] }, Now: time.Now, Build: Build{"v1.2.3", "abc"}}
	code = Run(t.Context(), s, args)
	return out.String(), errs.String(), code
}

func TestVersion(t *testing.T) {
	out, _, code := call(t, nil, "version", "--output", "json")
	var v versionReport
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 || v.Version != "v1.2.3" || v.Commit != "abc" {
		t.Errorf("code %d, %+v from %q: %v", code, v, out, err)
	}
	if out, _, code = call(t, nil, "version"); code != 0 || !strings.HasPrefix(out, "yard v1.2.3 abc\n") {
		t.Errorf("code %d, text %q", code, out)
	}
}

func TestVersionOfAPlainGoBuild(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Version: "v0.9.0"}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "def"}}}
	if got := (Build{}).orStamped(info); got != (Build{"v0.9.0", "def"}) {
		t.Errorf("nothing linked: %+v", got)
	}
	if got := (Build{"v1", "abc"}).orStamped(info); got != (Build{"v1", "abc"}) {
		t.Errorf("what was linked is lost: %+v", got)
	}
}

func TestUsageErrorsAreOneLineWithCode2(t *testing.T) {
	for name, args := range map[string][]string{
		"unknown command": {"buidl"},
		"unknown flag":    {"version", "--colour"},
		"argument":        {"version", "now"},
		"output":          {"version", "--output", "xml"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, code := call(t, nil, args...)
			if code != 2 || !strings.HasPrefix(stderr, "yard: ") || strings.Count(stderr, "\n") != 1 {
				t.Errorf("code %d, message %q", code, stderr)
			}
		})
	}
}

// Every verb has to say what it is for and show how it is called.
func TestEveryCommandHasHelpAndExample(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Name() == "help" || c.Name() == "completion" {
			return
		}
		if c.Short == "" {
			t.Errorf("%s has no short help", c.CommandPath())
		}
		if !c.HasSubCommands() && !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s has no example that calls it", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(New(Streams{Out: io.Discard, Err: io.Discard}))
}
