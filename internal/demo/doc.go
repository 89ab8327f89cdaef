// Package demo brings up a real cluster on this machine and runs the pipeline on
// it: a kind cluster, a registry, an S3 server, Tekton, and ours in it. Its
// sub-packages hold one part each. It is for laptops and end-to-end tests; what
// a cluster elsewhere needs is in the top-level folders of manifests.
package demo
