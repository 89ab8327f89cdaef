// Package toolimage makes the image that the tasks' yard steps run: static programs
// (yard, and the trainer for the report of a run that got no trainer of its own), the
// CA certificates that they need to talk to registries, and nothing else, neither a
// shell nor a package manager.
//
// The same programs and certificates give the same digest on every machine. The
// package compiles, assembles and pushes; how a registry is reached (plain http,
// credentials) is the caller's business.
package toolimage
