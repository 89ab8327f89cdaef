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
		if e.Code <= last {
			t.Errorf("code %d follows %d", e.Code, last)
		}
		if names[e.Name] || e.Name == "" || e.Meaning == "" {
			t.Errorf("code %d: name %q is empty or taken, or it has no meaning", e.Code, e.Name)
		}
		last, names[e.Name] = e.Code, true
	}
}

func TestErrorKeepsTheChain(t *testing.T) {
	err := fmt.Errorf("stage: %w", Errorf(IO, "read x: %w", fs.ErrPermission))
	var coded *Error
	if !errors.As(err, &coded) || coded.Code != IO || !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("code or cause lost in %v", err)
	}
	if got, want := err.Error(), "stage: read x: permission denied"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

func TestSignalCodesAreThoseOfAShell(t *testing.T) {
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: Interrupt, syscall.SIGTERM: Terminated} {
		if got := (SignalError{sig}).Code(); got != want {
			t.Errorf("%v: code %d, want %d", sig, got, want)
		}
	}
}

func TestDocumentHasTheTable(t *testing.T) {
	const path = "../../../docs/exit-codes.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| code") {
			rows++
		}
	}
	if rows != len(Table()) {
		t.Errorf("%s has %d rows, the table %d", path, rows, len(Table()))
	}
	for _, e := range Table() {
		if want := fmt.Sprintf("| %d | %s | %s", e.Code, e.Name, e.Meaning); !strings.Contains(string(text), want) {
			t.Errorf("%s has no row that begins %q", path, want)
		}
	}
}
