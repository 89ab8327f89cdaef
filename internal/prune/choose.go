package prune

import (
	"cmp"
	"slices"
	"time"

	pipelineapi "github.com/tektoncd/pipeline/pkg/apis/pipeline"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/internal/pushrun"
)

// Limits say which runs are too many or too old. A limit of 0 is none.
type Limits struct {
	Keep      int           // newest finished runs that stay, of each group
	OlderThan time.Duration // since the run ended
}

// Run is what decides about a PipelineRun.
type Run struct {
	Name    string
	UID     types.UID
	Version string // resourceVersion at which it was seen
	Group   string // of which the newest are kept
	Done    bool
	Ended   time.Time // of a run that is done
	Created time.Time
}

// Read takes from a PipelineRun what decides about it.
func Read(pr *pipelinev1.PipelineRun) Run {
	r := Run{
		Name: pr.Name, UID: pr.UID, Version: pr.ResourceVersion, Group: group(pr),
		// A run that is being deleted already is not ours to count.
		Done: pr.IsDone() && pr.DeletionTimestamp == nil, Created: pr.CreationTimestamp.Time,
	}
	switch c := pr.Status.GetCondition("Succeeded"); {
	case !r.Done:
	case pr.Status.CompletionTime != nil:
		r.Ended = pr.Status.CompletionTime.Time
	case !c.LastTransitionTime.Inner.IsZero():
		r.Ended = c.LastTransitionTime.Inner.Time
	default:
		r.Ended = r.Created
	}
	return r
}

// group names the runs among which a run is counted: the pushes to one branch, or
// the runs of one pipeline.
func group(pr *pipelinev1.PipelineRun) string {
	// A run that says it was pushed and does not say where to is one of its pipeline.
	if push, pushed, err := pushrun.Read(pr); pushed && err == nil {
		return string(push.Forge) + " " + push.Repository + " " + push.Branch
	}
	ref := pr.Spec.PipelineRef
	switch label := pr.Labels[pipelineapi.PipelineLabelKey]; {
	case ref != nil && ref.Name != "":
		return "pipeline " + ref.Name
	case ref != nil && label != "": // the name that a resolver found
		return "pipeline " + label
	}
	// Tekton calls a pipeline that is part of a run like the run.
	return "no named pipeline"
}

// Reason says which limit a run is beyond.
type Reason string

// The reasons. A run beyond both is one of too many.
const (
	TooMany Reason = "count"
	TooOld  Reason = "age"
)

// Choice is a run that is to go.
type Choice struct {
	Run
	Reason Reason
}

// Choose returns the runs beyond a limit, the oldest first. Runs that are not done
// are neither chosen nor counted.
func Choose(runs []Run, l Limits, now time.Time) []Choice {
	done := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return !r.Done })
	slices.SortFunc(done, newestFirst)
	var chosen []Choice
	newer := map[string]int{} // runs of a group
	for _, r := range done {
		switch {
		case l.Keep > 0 && newer[r.Group] >= l.Keep:
			chosen = append(chosen, Choice{r, TooMany})
		case l.OlderThan > 0 && now.Sub(r.Ended) > l.OlderThan:
			chosen = append(chosen, Choice{r, TooOld})
		}
		newer[r.Group]++
	}
	slices.Reverse(chosen)
	return chosen
}

func newestFirst(a, b Run) int {
	return cmp.Or(b.Ended.Compare(a.Ended), b.Created.Compare(a.Created), cmp.Compare(b.Name, a.Name))
}
