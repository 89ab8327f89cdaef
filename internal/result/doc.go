// Package result writes the results of a Tekton task: all of them on every
// successful path, without a newline, within a budget that leaves room for the
// other steps of the pod.
//
// Kubernetes gives all containers of a pod 12 KiB for what they say at their end,
// and Tekton reports a step that says too much only as "exited with code 1". So
// the writer refuses first, and names the result.
package result
