package pushrun

import (
	"fmt"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels and annotations of a run. Values of labels are cut down to what a label may
// hold, for people to select by; the annotations of the same names have the exact ones.
const (
	TriggerLabel    = "trainyard.dev/trigger"    // label: TriggerPush
	ForgeLabel      = "trainyard.dev/forge"      // label: a Forge
	RepositoryLabel = "trainyard.dev/repository" // label: the name in the allow-list; annotation: owner/name
	BranchLabel     = "trainyard.dev/branch"     // label and annotation
	CommitLabel     = "trainyard.dev/commit"     // label: 40 hexadecimal digits

	BeforeAnnotation   = "trainyard.dev/before"   // commit that the branch had before the push; zeros for a new branch
	SenderAnnotation   = "trainyard.dev/sender"   // who pushed, as the forge says
	DeliveryAnnotation = "trainyard.dev/delivery" // the forge's number of the delivery
	// SupersededByAnnotation names the run for whose sake the queue cancelled this one.
	SupersededByAnnotation = "trainyard.dev/superseded-by"
	// ReportedAnnotation has the commit status that the forge knows.
	ReportedAnnotation = "trainyard.dev/reported"

	// TriggerPush is the value of TriggerLabel.
	TriggerPush = "push"
	// Selector chooses the runs that pushes started.
	Selector = TriggerLabel + "=" + TriggerPush
	// NoCommit is what forges write for "no commit": before a new branch, after a deletion.
	NoCommit = "0000000000000000000000000000000000000000"
)

// Forge is a kind of server that sends pushes.
type Forge string

// The forges that triggers/ listens to. Forgejo speaks as Gitea does.
const (
	GitHub Forge = "github"
	GitLab Forge = "gitlab"
	Gitea  Forge = "gitea"
)

// Push is what a run says about the push that started it.
type Push struct {
	Forge      Forge
	Repository string // owner/name, as the forge calls it
	Branch     string // without refs/heads/
	Commit     string // 40 hexadecimal digits
	Before     string // the same, or empty when not known
	Sender     string
	Delivery   string
}

var (
	commitForm     = regexp.MustCompile(`^[0-9a-f]{40}$`)
	repositoryForm = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$`)
	branchForm     = regexp.MustCompile(`^[A-Za-z0-9._/-]+$`)
)

// Read tells which push started a run. A run without the label of pushes is no error:
// pushed is false. A run that has it and does not say what a push says is one.
func Read(run metav1.Object) (push Push, pushed bool, err error) {
	labels, annotations := run.GetLabels(), run.GetAnnotations()
	if labels[TriggerLabel] != TriggerPush {
		return Push{}, false, nil
	}
	push = Push{
		Forge:      Forge(labels[ForgeLabel]),
		Repository: annotations[RepositoryLabel],
		Branch:     annotations[BranchLabel],
		Commit:     labels[CommitLabel],
		Before:     annotations[BeforeAnnotation],
		Sender:     annotations[SenderAnnotation],
		Delivery:   annotations[DeliveryAnnotation],
	}
	bad := func(what, key, value string) (Push, bool, error) {
		return Push{}, true, fmt.Errorf("run %s/%s: its %s %s is %q", run.GetNamespace(), run.GetName(), what, key, value)
	}
	switch push.Forge {
	case GitHub, GitLab, Gitea:
	default:
		return bad("label", ForgeLabel, string(push.Forge))
	}
	switch {
	case !repositoryForm.MatchString(push.Repository):
		return bad("annotation", RepositoryLabel, push.Repository)
	case !branchForm.MatchString(push.Branch):
		return bad("annotation", BranchLabel, push.Branch)
	case !commitForm.MatchString(push.Commit):
		return bad("label", CommitLabel, push.Commit)
	case push.Before != "" && !commitForm.MatchString(push.Before):
		return bad("annotation", BeforeAnnotation, push.Before)
	}
	return push, true, nil
}
