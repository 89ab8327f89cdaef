// Package render makes what a cluster or a bundle gets from the YAML of this
// repository: the tool's image by digest in place of its placeholder, and
// references to tasks and pipelines either by name or from bundles by digest. The
// same input gives the same bytes.
//
// It neither reads files nor talks to registries; decoding and the rules that hold
// afterwards are package manifest's.
package render
