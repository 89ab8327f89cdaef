// Package times tells where the seconds of a run went: waiting for a node, pulling
// images, starting, working, ending, and what Tekton and Kubernetes took in all. It
// tells a cold start (an image was pulled) from a warm one (all were on the node),
// because the two must not be averaged.
//
// It reads what a cluster keeps of a run: TaskRuns, pods and events. Times there
// are whole seconds, except how long pulls took. Events are gone after an hour, and
// pods when they are pruned: then it says what cannot be told any more instead of
// guessing.
package times
