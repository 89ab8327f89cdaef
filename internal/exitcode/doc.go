// Package exitcode is the one table of yard's exit codes, and the errors that
// carry a code. Numbers and meanings are those of docs/exit-codes.md, which the
// trainer shares: a Task or a script may rely on them.
//
// It knows no other package's errors: who returns an error gives it its code.
package exitcode
