// Package queue lets the runs that pushes started in, one at a time for each branch.
//
// The listener creates them with spec.status PipelineRunPending, so that Tekton does
// nothing with them: no pod, no claim, no timeout. The queue removes that status when
// no other run of the branch is active, and by its policy cancels runs that a newer
// push has overtaken. Decide is the whole judgement, a pure function of what the
// namespace holds; Queue asks the API server and does what it says.
//
// Runs without the label of pushes are never touched. The queue creates no runs and
// deletes none, and no state of its own must survive a restart.
package queue
