// Package gooffline is a Cloud Native Buildpack that compiles Go programs with the
// toolchain of the build image, for places that reach no image registry: it
// downloads nothing but Go modules, and those not when the source has vendor/.
//
// It takes the settings of Paketo's go-dist, go-mod-vendor and go-build
// (BP_GO_TARGETS and others, see docs/builder.md), so that one project.toml works
// with both. It is no replacement for them: it installs no Go, and what of their
// behaviour depends on chance or is undocumented is an error here.
//
// The package itself only holds the buildpack's descriptor; the program is in
// cmd/go-offline.
package gooffline
