// Package settings reads what a project asks of the build: the BP_GO_* variables
// as Paketo's buildpacks for Go define them, and those of its image-labels.
//
// It reads and checks only; nothing is run and nothing is written. Where Paketo's
// reading would surprise (a command line cut at an unquoted semicolon, a quoted
// word split again), it returns an error instead of a value, so that whatever it
// accepts means the same there.
package settings
