package demo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRunSaysWhatAProgramSays(t *testing.T) {
	folder := t.TempDir()
	got, err := run(t.Context(), folder, []string{"WORD=a b"}, "sh", "-c", `pwd; echo "$WORD"; echo warning >&2`)
	if got != folder+"\na b\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_, err = run(t.Context(), folder, nil, "/bin/sh", "-c", `for i in 1 2 3 4 5 6 7 8 9; do echo "line $i" >&2; done; exit 3`)
	if err == nil || err.Error() != "sh: exit status 3: line 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\nline 9" {
		t.Errorf("error %v, want the last 8 lines", err)
	}
}

func TestRunEndsAProgramWithItsChildren(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupt := errors.New("interrupted by a test")
	time.AfterFunc(100*time.Millisecond, func() { cancel(interrupt) })
	started := time.Now()
	// A child that holds the standard output would be waited for otherwise.
	if _, err := run(ctx, t.TempDir(), nil, "sh", "-c", "sleep 60 & wait"); !errors.Is(err, interrupt) {
		t.Errorf("error %v", err)
	}
	if took := time.Since(started); took > 8*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestReplaceFileReplacesWholeFiles(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "new", "file")
	for _, text := range []string{"first", "second, longer"} {
		if err := replaceFile(file, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil || string(data) != text {
			t.Errorf("it holds %q, %v", data, err)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if err := replaceFile(filepath.Join(folder, "new"), nil, 0o644); err == nil {
		t.Error("a folder was replaced")
	}
	left, err := filepath.Glob(filepath.Join(folder, "*", ".*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	left, err = filepath.Glob(filepath.Join(folder, ".*"))
	if err != nil || strings.Join(left, "") != "" {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
