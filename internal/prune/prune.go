package prune

import (
	"context"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tekton "github.com/tektoncd/pipeline/pkg/client/clientset/versioned"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Options say what to delete.
type Options struct {
	Limits
	Selector string // by labels; empty is every run of the namespace
	DryRun   bool   // tell, and delete nothing
}

// Check refuses what would delete everything, nothing, or cannot be meant.
func (o Options) Check() error {
	switch {
	case o.Keep < 0:
		return exitcode.Errorf(exitcode.Usage, "keep is %d: give a number of runs, or 0 to count none", o.Keep)
	case o.OlderThan < 0:
		return exitcode.Errorf(exitcode.Usage, "older-than is %v: give a duration such as 720h, or 0 for no age", o.OlderThan)
	case o.Keep == 0 && o.OlderThan == 0:
		return exitcode.Errorf(exitcode.Usage, "no limit is given: give --keep, --older-than, or both")
	}
	if _, err := labels.Parse(o.Selector); err != nil {
		return exitcode.Errorf(exitcode.Usage, "selector %q: %w", o.Selector, err)
	}
	return nil
}

// Pruner deletes runs.
type Pruner struct {
	Kube   kubernetes.Interface
	Tekton tekton.Interface
	Now    func() time.Time
}

// Prune deletes the runs of a namespace that are beyond a limit. What could not be
// deleted is in the report; the error is one of the question, not of a run.
func (p *Pruner) Prune(ctx context.Context, namespace string, o Options) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	// Who uses a claim is asked before the runs are: a run that starts in between is
	// none that is done.
	using, err := p.users(ctx, namespace)
	if err != nil {
		return nil, err
	}
	claims, err := p.owned(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var runs []Run
	if err := p.eachRun(ctx, namespace, o.Selector, func(pr *pipelinev1.PipelineRun) { runs = append(runs, Read(pr)) }); err != nil {
		return nil, err
	}
	r := &Report{Namespace: namespace, DryRun: o.DryRun, Runs: len(runs), Deleted: []Entry{}, Left: []Left{}}
	for _, c := range Choose(runs, o.Limits, p.Now()) {
		if err := ctx.Err(); err != nil {
			return r, context.Cause(ctx)
		}
		if who := usedBy(c.Run, claims[c.UID], using); who != "" {
			r.Left = append(r.Left, Left{Name: c.Name, Why: "in use by " + who})
			continue
		}
		if !o.DryRun {
			if left, ok := p.delete(ctx, namespace, c.Run); !ok {
				r.Left = append(r.Left, left)
				continue
			}
		}
		r.add(c, claims[c.UID])
	}
	return r, nil
}

// usedBy names who still uses what would go with a run, or "".
func usedBy(r Run, claims []Claim, using map[string][]user) string {
	for _, c := range claims {
		for _, u := range using[c.Name] {
			if u.run != r.Name {
				return u.what + " (claim " + c.Name + ")"
			}
		}
	}
	return ""
}

// delete deletes a run as it was seen; ok says that it is gone, or going.
func (p *Pruner) delete(ctx context.Context, namespace string, r Run) (left Left, ok bool) {
	// In the foreground: the name of a pushed run is free again only when its TaskRuns
	// are gone. Another run of that name would find them and fail.
	propagation := metav1.DeletePropagationForeground
	err := p.Tekton.TektonV1().PipelineRuns(namespace).Delete(ctx, r.Name, metav1.DeleteOptions{
		PropagationPolicy: &propagation,
		Preconditions:     &metav1.Preconditions{UID: &r.UID, ResourceVersion: &r.Version},
	})
	switch {
	case err == nil:
		return Left{}, true
	case apierrors.IsNotFound(err):
		return Left{Name: r.Name, Why: "gone already"}, false
	case apierrors.IsConflict(err):
		return Left{Name: r.Name, Why: "changed meanwhile"}, false
	}
	return Left{Name: r.Name, Why: err.Error(), Failed: true}, false
}
