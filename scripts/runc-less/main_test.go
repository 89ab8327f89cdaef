package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/demo/capability"
)

// asProgram makes the test's binary the program itself.
const asProgram = "RUNC_LESS_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return // main becomes runc, or has failed
	}
	os.Exit(m.Run())
}

// runcLess runs the program with a runc that prints its arguments.
func runcLess(t *testing.T, runc string, args ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "RUNC_LESS_RUNC="+runc)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestTheProgramRestrictsAndBecomesRunc(t *testing.T) {
	folder := t.TempDir()
	runc := filepath.Join(folder, "runc")
	if err := os.WriteFile(runc, []byte("#!/bin/sh\nfor arg; do printf '<%s>' \"$arg\"; done; exit 5\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(folder, "config.json")
	spec := `{"process": {"capabilities": {"bounding": ["CAP_NOT_OF_THIS_WORLD", "CAP_CHOWN", "CAP_SYS_RESOURCE"]}}}`
	if err := os.WriteFile(config, []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := runcLess(t, runc, "--log", "a b", "create", "--bundle", folder, "c1", "")
	if want := "<--log><a b><create><--bundle><" + folder + "><c1><>"; out != want {
		t.Errorf("runc got %s, want %s", out, want)
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 5 {
		t.Errorf("it ends with %v, runc with 5", err)
	}
	held, err := capability.Bounding("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"process":{"capabilities":{"bounding":[`
	for _, capability := range []string{"CAP_CHOWN", "CAP_SYS_RESOURCE"} {
		if held.Has(capability) {
			want += `"` + capability + `",`
		}
	}
	want = strings.TrimSuffix(want, ",") + "]}}}"
	if got := read(t, config); got != want {
		t.Errorf("the specification is %s, want %s", got, want)
	}
}

func TestTheProgramFails(t *testing.T) {
	folder := t.TempDir()
	tests := map[string]struct {
		runc string
		args []string
		want string
	}{
		"no specification": {"/bin/true", []string{"create", "--bundle", folder, "c1"}, "config.json: no such file"},
		"no runc":          {filepath.Join(folder, "runc"), []string{"state", "c1"}, "become " + filepath.Join(folder, "runc")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := runcLess(t, test.runc, test.args...)
			if err == nil || !strings.HasPrefix(out, "runc-less: ") || !strings.Contains(out, test.want) {
				t.Errorf("it says %q, %v, want %q", out, err, test.want)
			}
		})
	}
}
