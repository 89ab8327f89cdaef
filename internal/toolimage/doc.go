// Package toolimage makes the image that the tasks' yard steps run: one static
// program, the CA certificates that it needs to talk to registries, and nothing
// else, neither a shell nor a package manager.
//
// The same program and certificates give the same digest on every machine. The
// package compiles, assembles and pushes; how a registry is reached (plain http,
// credentials) is the caller's business.
package toolimage
