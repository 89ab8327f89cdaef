// Package manifest reads Kubernetes and Tekton YAML so strictly that what passes
// is what an API server takes: unknown fields, fields given twice and unknown
// kinds are errors, and Tekton's own defaulting and validation run under the
// feature flags that the project asks for. It also knows the project's rule for
// images: a digest, or one documented parameter.
//
// It changes nothing and talks to nobody: rendering is package render's, and what
// only holds for the files of this repository is tested in package conformance.
package manifest
