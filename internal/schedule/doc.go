// Package schedule says why a pod fits on no node, and what would make it fit. It
// repeats the rules of Kubernetes' scheduler for what the pods of a pipeline use:
// requests against what nodes allocate, cordons, taints, node selectors and
// affinity, affinity to other pods, and the nodes that volumes are bound to.
//
// It does not schedule: it knows no priorities, preemption, topology spread, host
// ports or volume limits. The scheduler's own message, which the caller has, is
// where those show.
package schedule
