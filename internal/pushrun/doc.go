// Package pushrun knows what a PipelineRun that a git push started carries: the names
// of its labels and annotations, and how to read them back. The TriggerTemplate of
// triggers/ writes them; the queue, the commit statuses and the pruning read them.
//
// It neither starts runs nor talks to a cluster or a forge.
package pushrun
