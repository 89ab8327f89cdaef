// Package trigger decides what the Triggers of this repository make of a delivery, with
// the interceptors and templates of Tekton Triggers itself, but without a cluster.
//
// It serves tests; what runs in a cluster is Tekton's listener. Deliveries to judge are in
// package deliveries.
package trigger
