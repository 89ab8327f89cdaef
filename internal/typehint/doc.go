// Package typehint reads results of a TaskRun or PipelineRun as Tekton Chains does,
// to tell what Chains would attest: images, artifacts and git inputs that it
// recognises by the names of results.
//
// Chains skips what it cannot pair without failing anything, so that a misspelt
// name means an unsigned image. This package names what would be skipped.
package typehint
