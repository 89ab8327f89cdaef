// Package builder makes a Cloud Native Buildpacks builder for places that reach no
// image registry but their own: a build image and a run image of a few Debian
// packages and a Go toolchain, the lifecycle, and our buildpack, put together by
// pack's library without a container engine, and pushed.
//
// The same inputs give the same digests. The tag of what is pushed is a key of the
// inputs, so that a builder that is there is not made again.
package builder
