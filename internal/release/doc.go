// Package release makes what users install from: the tool's image for all platforms,
// bundles of the tasks and pipelines, one YAML file with every image by digest, the
// program itself, bills of materials and checksums, in a folder and, if asked, in a
// registry.
//
// The same commit, Go version and CA certificates give the same bytes. Which commit
// that is, and whether it deserves a release, is the caller's business.
package release
