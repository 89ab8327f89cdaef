// Package stage holds the stages of a model's life, one file each: what goes in,
// whether it can be used, the work, and what is written.
//
// A stage takes a struct of options and returns a report; flags, environment and
// the terminal belong to package cli. It leaves its outputs whole or not at all.
package stage
