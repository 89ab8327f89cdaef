package exitcode

import (
	"fmt"
	"syscall"
)

// The table. A code never changes its meaning.
const (
	OK         = 0   // done
	Failed     = 1   // the run failed, or the verdict is "no" (gate blocked)
	Usage      = 2   // a flag, environment variable or configuration file is wrong
	BadInput   = 3   // a file or a request cannot be used
	IO         = 4   // the store, the disk or the network failed
	Diverged   = 5   // loss or gradient is NaN or infinite
	Conflict   = 6   // another writer won the race
	Integrity  = 7   // a digest is not the one recorded
	Interrupt  = 130 // SIGINT, the work so far is saved
	Terminated = 143 // SIGTERM, the work so far is saved
)

// Entry is one row of the table.
type Entry struct {
	Code    int    `json:"code"`
	Name    string `json:"name"`
	Meaning string `json:"meaning"`
}

// Table returns all rows in the order of their codes.
func Table() []Entry {
	return []Entry{
		{OK, "ok", "done"},
		{Failed, "failed", `the run failed, or the verdict is "no"`},
		{Usage, "usage", "a flag, environment variable or configuration file is wrong"},
		{BadInput, "bad_input", "a file or a request cannot be used"},
		{IO, "io", "the store, the disk or the network failed"},
		{Diverged, "diverged", "loss or gradient is NaN or infinite"},
		{Conflict, "conflict", "another writer won the race"},
		{Integrity, "integrity", "a digest is not the one recorded"},
		{Interrupt, "interrupt", "SIGINT, the work so far is saved"},
		{Terminated, "terminated", "SIGTERM, the work so far is saved"},
	}
}

// Error gives an error a code of its own, for the places where no sentinel
// says enough.
type Error struct {
	Code int
	Err  error
}

// Error returns the message of the wrapped error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an error with this code.
func Errorf(code int, format string, args ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// SignalError says that a signal ended the work. It is the cause that a
// cancelled context carries.
type SignalError struct{ Signal syscall.Signal }

// Error names the signal.
func (e SignalError) Error() string { return "stopped by " + name(e.Signal) }

// Code returns 128 plus the number of the signal, as a shell does.
func (e SignalError) Code() int { return 128 + int(e.Signal) }

func name(s syscall.Signal) string {
	switch s {
	case syscall.SIGINT:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	}
	return fmt.Sprintf("signal %d", int(s))
}
