// Package e2e tests everything together on the demo's real cluster. Its tests
// have the build tag e2e, and `make e2e` runs them: they need a cluster that
// `make cluster` has brought up. Each works in a namespace of its
// own, enforces the restricted Pod Security Standard there, and removes it; of a
// test that fails, logs, events and descriptions are kept in a folder.
//
// Those with the build tag e2e_slow too bring up demos of their own beside that one,
// and take ten minutes on two cores:
//
//	go test -tags e2e,e2e_slow -run Second -timeout 90m ./internal/e2e
package e2e
