// Package gotool finds the Go toolchain of the build image, says whether it is new
// enough for the source, and runs it.
//
// It never downloads a toolchain: which Go builds an image is decided by the
// builder, so that the builder's digest says it.
package gotool
