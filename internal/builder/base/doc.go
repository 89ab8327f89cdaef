// Package base makes the two images below a builder: the build image, in which
// programs are compiled, and the run image, on which they are started. Both are
// assembled from files of a few Debian packages and of a Go toolchain, without a
// container engine.
//
// The run image is for static programs: it has no shell and no C library. The
// build image has a small shell to look around with, and a toolchain without what
// only Go's own developers need.
package base
