// Package e2e tests everything together on the demo's real cluster. Its tests
// have the build tag e2e, and `make e2e` runs them: they need a cluster that
// `make cluster` has brought up. Each works in a namespace of its
// own, enforces the restricted Pod Security Standard there, and removes it; of a
// test that fails, logs, events and descriptions are kept in a folder.
package e2e
