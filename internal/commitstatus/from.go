package commitstatus

import (
	"fmt"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"knative.dev/pkg/apis"

	"github.com/trainyard/trainyard/internal/pushrun"
)

// TaskFailure is a task of a run that failed.
type TaskFailure struct {
	Task    string // its name in the pipeline
	Message string // what Tekton says of it
}

// Telling is how statuses are written.
type Telling struct {
	Context string
	Links   []Link // the first whose values are all known is taken
}

// From says what the forge of a push is to be told of its run. Of a run that failed,
// failed are the tasks that did, in the order in which they began.
func (t Telling) From(run *pipelinev1.PipelineRun, push pushrun.Push, failed []TaskFailure) Status {
	r := resultsOf(run)
	state, description := judge(run, r, failed)
	d := dialectOf(push.Forge)
	s := Status{State: state, Context: t.Context}
	values := linkValues{namespace: run.Namespace, run: run.Name, commit: push.Commit, report: r.report}
	for _, l := range t.Links {
		if address, ok := l.address(values); ok && len(address) <= d.addressLimit {
			s.TargetURL = address
			break
		}
	}
	description = d.characters(oneLine(description))
	if s.TargetURL == "" {
		// Where no link leads there, the words say where more is: if they fit as a whole.
		more := "; run " + run.Namespace + "/" + run.Name
		if r.report != "" {
			more = "; report " + r.report
		}
		if all := d.characters(oneLine(description + more)); len([]rune(all)) <= d.limit {
			description = all
		}
	}
	s.Description = Cut(description, d.limit)
	return s
}

// results are those of a run that a status tells.
type results struct{ verdict, reasons, report, model, digest string }

func resultsOf(run *pipelinev1.PipelineRun) results {
	var r results
	for _, result := range run.Status.Results {
		value := strings.TrimSpace(result.Value.StringVal)
		switch result.Name {
		case "verdict":
			r.verdict = value
		case "reasons":
			r.reasons = value
		case "report-uri":
			r.report = value
		case "model-uri":
			r.model = value
		case "model-digest":
			r.digest = value
		}
	}
	return r
}

func judge(run *pipelinev1.PipelineRun, r results, failed []TaskFailure) (State, string) {
	cond := run.Status.GetCondition(apis.ConditionSucceeded)
	switch {
	case run.IsDone():
	case run.IsPending(), cond != nil && cond.Reason == pipelinev1.PipelineRunReasonPending.String():
		return Pending, "waiting for its turn"
	default:
		return Running, "running"
	}
	newer := run.Annotations[pushrun.SupersededByAnnotation]
	reason, message := pipelinev1.PipelineRunReason(cond.Reason), oneLine(cond.Message)
	switch {
	case run.IsSuccessful() && r.verdict != verdictBlocked:
		return Success, success(r)
	case run.IsSuccessful():
		return Failure, blocked(r)
	case reason == pipelinev1.PipelineRunReasonCancelled, run.IsCancelled(), run.IsGracefullyCancelled(), run.IsGracefullyStopped():
		if newer != "" {
			return Cancelled, "superseded by run " + newer
		}
		return Cancelled, "cancelled"
	case reason == pipelinev1.PipelineRunReasonTimedOut:
		return Error, "timed out: " + strings.TrimPrefix(message, fmt.Sprintf("PipelineRun %q ", run.Name))
	case r.verdict == verdictBlocked:
		return Failure, blocked(r)
	case reason == pipelinev1.PipelineRunReasonFailed:
		return Failure, tasks(r, failed, message)
	}
	return Error, "could not run (" + cond.Reason + "): " + message
}

const (
	verdictPass    = "pass"
	verdictBlocked = "blocked"
)

func success(r results) string {
	switch {
	case r.model != "" && r.digest != "":
		return "passed the gate, promoted " + short(r.digest) + " to " + r.model
	case r.model != "":
		return "passed the gate, promoted to " + r.model
	case r.verdict == verdictPass:
		return "passed the gate"
	}
	return "succeeded"
}

// short has the first digits of a digest, as many as git shows of a commit and some.
func short(digest string) string {
	hex := strings.TrimPrefix(digest, "sha256:")
	return hex[:min(len(hex), 12)]
}

func blocked(r results) string {
	if r.reasons == "" {
		return "blocked by the gate"
	}
	return "blocked: " + r.reasons
}

// tasks says which tasks failed. What the report found in their logs says more than
// Tekton does, which knows exit codes.
func tasks(r results, failed []TaskFailure, message string) string {
	text := "failed: " + message
	switch {
	case strings.Contains(r.reasons, ": "):
		text = r.reasons
	case len(failed) > 0:
		text = exits(failed)
	}
	if r.verdict == verdictPass {
		text = "passed the gate, but " + text
	}
	return text
}

func exits(failed []TaskFailure) string {
	var names []string
	for _, f := range failed {
		names = append(names, f.Task)
	}
	text := "task " + names[0] + " failed"
	if len(names) > 1 {
		text = "tasks " + strings.Join(names, ", ") + " failed"
	}
	// Tekton writes "exited with code 137: OOMKilled", and where there is nothing of
	// that kind to say "exited with code 1: Error".
	if message := strings.TrimSuffix(oneLine(failed[0].Message), ": Error"); message != "" {
		text += ": " + message
	}
	return text
}
