package exitcode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestTableHasEachCodeOnceInOrder(t *testing.T) {
	last := -1
	names := map[string]bool{}
	for _, e := range Table() {
		if e.Code <= last || names[e.Name] || e.Name == "" || e.Meaning == "" {
			t.Errorf("row %+v after code %d: not in order, or its name is empty or taken", e, last)
		}
		last, names[e.Name] = e.Code, true
	}
}

func TestOf(t *testing.T) {
	refused := &fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"nil":                             {nil, OK},
		"no code":                         {errors.New("x"), Failed},
		"a code below a wrap":             {fmt.Errorf("a: %w", New(Conflict, errors.New("x"))), Conflict},
		"the outermost code wins":         {New(Usage, New(IO, errors.New("x"))), Usage},
		"a code wins over the system":     {New(Integrity, refused), Integrity},
		"a signal wins over a code":       {New(IO, fmt.Errorf("a: %w", SignalError{syscall.SIGTERM})), Terminated},
		"SIGINT":                          {SignalError{syscall.SIGINT}, Interrupt},
		"a file that is not there":        {&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, BadInput},
		"a file that may not be read":     {refused, IO},
		"what the system says without it": {fmt.Errorf("write: %w", syscall.ENOSPC), IO},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Of(c.err); got != c.want {
				t.Errorf("code %d, want %d", got, c.want)
			}
		})
	}
}

func TestNewKeepsMessageAndChain(t *testing.T) {
	err := Errorf(IO, "read x: %w", fs.ErrPermission)
	if !errors.Is(err, fs.ErrPermission) || err.Error() != "read x: permission denied" {
		t.Errorf("message or chain lost in %v", err)
	}
	if New(IO, nil) != nil {
		t.Error("New made an error of nil")
	}
}

func TestDocumentHasEveryRow(t *testing.T) {
	const path = "../../docs/exit-codes.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range Table() {
		if want := fmt.Sprintf("| %d | %s | %s", e.Code, e.Name, e.Meaning); !strings.Contains(string(text), want) {
			t.Errorf("%s has no row that begins %q", path, want)
		}
	}
}
