package exitcode

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// The table. A code never changes its meaning.
const (
	OK         = 0   // done
	Failed     = 1   // the run failed, or the verdict is "no"
	Usage      = 2   // a flag, environment variable or configuration file is wrong
	BadInput   = 3   // a file or a request cannot be used
	IO         = 4   // the store, the disk or the network failed
	Conflict   = 6   // another writer won the race
	Integrity  = 7   // a digest is not the one recorded
	Interrupt  = 130 // SIGINT
	Terminated = 143 // SIGTERM
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
		{Conflict, "conflict", "another writer won the race"},
		{Integrity, "integrity", "a digest is not the one recorded"},
		{Interrupt, "interrupt", "SIGINT"},
		{Terminated, "terminated", "SIGTERM"},
	}
}

type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// New returns err with this code; a nil err stays nil. The message is err's own.
func New(code int, err error) error {
	if err == nil {
		return nil
	}
	return &codedError{code, err}
}

// Errorf is New of a formatted error.
func Errorf(code int, format string, args ...any) error {
	return New(code, fmt.Errorf(format, args...))
}

// Of returns the code of the process that ends with err: that of a signal, then
// the outermost that New gave, then what the system said, else Failed.
func Of(err error) int {
	var signal SignalError
	var coded *codedError
	var path *fs.PathError
	var number syscall.Errno
	switch {
	case err == nil:
		return OK
	case errors.As(err, &signal):
		return signal.Code()
	case errors.As(err, &coded):
		return coded.code
	case errors.Is(err, fs.ErrNotExist):
		return BadInput // something that was named is not there
	case errors.As(err, &path), errors.As(err, &number):
		return IO
	}
	return Failed
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
