// Package prune deletes PipelineRuns that are done and that nobody needs any more:
// those beyond a number of newer ones, and those beyond an age. What a run owns goes
// with it: TaskRuns, pods, and the claims of its volumeClaimTemplates.
//
// It never deletes anything but a run. Claims that runs share, images, and what runs
// put into the store stay.
package prune
