package queue

import (
	"fmt"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/internal/pushrun"
)

// State is how far a run is, as far as a queue cares.
type State int

// The states of a run.
const (
	Waiting State = iota // held back, to be let in
	Active               // Tekton has it
	Ending               // cancelled, stopped or deleted, and not done yet
	Done                 // nothing will come of it any more
)

// Group is what has one active run at a time: a branch of a repository.
type Group struct {
	Forge      pushrun.Forge
	Repository string
	Branch     string
}

// String names the branch as in a sentence.
func (g Group) String() string {
	return fmt.Sprintf("branch %s of %s", g.Branch, g.Repository)
}

// Run is what a queue knows of a PipelineRun.
type Run struct {
	Name    string
	UID     types.UID
	Version string // the resourceVersion that was seen
	Created time.Time
	State   State
	Group   Group
	Commit  string
	Before  string // commit of the branch before the push; empty when there was none
	// Err is why the run cannot be queued: it does not say which push it is from.
	Err error
	// Seen is when the queue first knew of it, by its own clock.
	Seen time.Time
}

// Read takes from a PipelineRun what a queue needs; false for a run that no push
// started.
func Read(pr *pipelinev1.PipelineRun) (Run, bool) {
	push, pushed, err := pushrun.Read(pr)
	if !pushed {
		return Run{}, false
	}
	r := Run{
		Name: pr.Name, UID: pr.UID, Version: pr.ResourceVersion, Created: pr.CreationTimestamp.Time,
		State: state(pr), Commit: push.Commit, Before: push.Before, Err: err,
		Group: Group{push.Forge, push.Repository, push.Branch},
	}
	if r.Before == pushrun.NoCommit {
		r.Before = ""
	}
	return r, true
}

func state(pr *pipelinev1.PipelineRun) State {
	deleted := pr.DeletionTimestamp != nil
	switch {
	case pr.IsDone(), pr.IsPending() && deleted:
		return Done
	case pr.IsPending():
		return Waiting
	case pr.Spec.Status != "" || deleted:
		// Its pods may still work: the branch is free when it is done or gone.
		return Ending
	}
	return Active
}
