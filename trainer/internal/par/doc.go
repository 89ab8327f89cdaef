// Package par splits work over a fixed pool of goroutines.
//
// A Pool hands out numbered tasks; which worker runs a task never changes a
// result, since tasks write disjoint elements. The pool exists because a
// training step forks and joins a few hundred times: starting goroutines each
// time would allocate, and parking them costs more than most of the work.
//
// It is not a scheduler: one Run at a time, no nesting.
package par
