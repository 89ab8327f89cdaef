package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/exitcode"
)

func TestUsageErrorsMakeNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no version":     {[]string{"--version", ""}, "--version and --to are needed"},
		"unknown flag":   {[]string{"--colour"}, "unknown flag"},
		"bad platform":   {[]string{"--platform", "a/b/c/d/e"}, `--platform "a/b/c/d/e"`},
		"bad time":       {[]string{"--created", "today"}, `--created "today"`},
		"bad host":       {[]string{"--insecure-registry", "http://x"}, "http://x"},
		"dirty and push": {[]string{"--version", "v1-dirty", "--push"}, "commit what was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			cmd := newCommand(io.Discard)
			cmd.SetArgs(append([]string{"--version", "v1", "--to", filepath.Join(parent, "v1")}, tc.args...))
			err := cmd.ExecuteContext(t.Context())
			if exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want a usage error with %q", err, tc.want)
			}
			if entries, _ := os.ReadDir(parent); len(entries) > 0 {
				t.Errorf("made %v", entries)
			}
		})
	}
}
