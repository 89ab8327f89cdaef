// Package exitcode is the one table of the trainer's exit codes, and the errors
// that carry a code of their own.
//
// It does not decide which error is which: package cli maps errors to codes,
// once. A script, a Task or a podFailurePolicy may rely on the numbers.
package exitcode
