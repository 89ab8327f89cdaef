package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/pushrun"
	"github.com/trainyard/trainyard/internal/queue"
)

// queueDeployment is what triggers/queue installs.
const queueDeployment = "trainyard-queue"

// heldBack says what a run waits for that is not to start yet.
func (e *exam) heldBack(ctx context.Context, pr *pipelinev1.PipelineRun) error {
	self, pushed := queue.Read(pr)
	if !pushed {
		e.problem("run", "remove spec.status to start it", "it is held back: its spec.status is %s", pr.Spec.Status)
		return nil
	}
	if pr.DeletionTimestamp != nil {
		e.problem("run", "look who has a finalizer on it", "it is being deleted: the queue does not let it in any more")
		return nil
	}
	if self.Err != nil {
		e.problem("run", "delete it and push again; or start it by hand: "+byHand(pr), "it is held back, and the queue leaves it alone, for it does not say which push it is from: %v", self.Err)
		return nil
	}
	d, err := e.Kube.AppsV1().Deployments(pr.Namespace).Get(ctx, queueDeployment, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		e.problem("run", "install the queue (triggers/queue), or start it by hand: "+byHand(pr), "it waits to be let in, and no queue runs: there is no deployment %s in namespace %s", queueDeployment, pr.Namespace)
		return nil
	case err != nil:
		if err := e.cannotSee("run", "deployments", err); err != nil {
			return err
		}
		d = nil
	case d.Status.AvailableReplicas == 0:
		e.problem("run", "kubectl logs deployment/"+queueDeployment+" --namespace "+pr.Namespace+", and kubectl describe it", "it waits to be let in, and the queue does not work: deployment %s has no pod that is ready", queueDeployment)
		return nil
	}
	list, err := e.Tekton.TektonV1().PipelineRuns(pr.Namespace).List(ctx, metav1.ListOptions{LabelSelector: pushrun.Selector})
	if err != nil {
		return e.cannotSee("run", "pipeline runs", err)
	}
	var runs []queue.Run
	for i := range list.Items {
		if r, pushed := queue.Read(&list.Items[i]); pushed {
			runs = append(runs, r)
		}
	}
	e.inQueue(pr, queue.Decide(runs, queueSettings(d), e.Now()))
	return nil
}

func byHand(pr *pipelinev1.PipelineRun) string {
	return "kubectl patch pipelinerun " + pr.Name + " --namespace " + pr.Namespace + ` --type merge --patch '{"spec":{"status":null}}'`
}

// inQueue says what the queue, if it works, makes of a run that waits.
func (e *exam) inQueue(pr *pipelinev1.PipelineRun, d queue.Decision) {
	if i := slices.IndexFunc(d.Waits, func(w queue.Wait) bool { return w.Run.Name == pr.Name }); i >= 0 {
		w := d.Waits[i]
		remedy := "nothing: the queue lets it in then"
		if w.Behind != "" {
			remedy += "; yard doctor " + w.Behind + " says how that one is"
		}
		e.warn("run", remedy, "it waits %s (%s)", w.Reason, w.Run.Group)
		return
	}
	becomes := "the queue should have let it in"
	for _, a := range d.Actions {
		if a.Run.Name == pr.Name && a.By != "" {
			becomes = fmt.Sprintf("run %s is of a newer push, so the queue should have cancelled it", a.By)
		}
	}
	age := e.Now().Sub(pr.CreationTimestamp.Time)
	if age < patience {
		e.ok("run", "it was created %s ago, and waits for the queue", ago(age))
		return
	}
	e.problem("run", "kubectl logs deployment/"+queueDeployment+" --namespace "+pr.Namespace, "no run of its branch is active, and yet it is held back, %s after it was created: %s", ago(age), becomes)
}

// queueSettings reads the settings from the arguments of the queue's container; what
// cannot be read is as usual.
func queueSettings(d *appsv1.Deployment) queue.Settings {
	s := queue.Defaults()
	s.Settle = 0
	if d == nil {
		return s
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, arg := range c.Args {
			if value, ok := strings.CutPrefix(arg, "--policy="); ok && queue.Policy(value).Known() {
				s.Policy = queue.Policy(value)
			}
			if value, ok := strings.CutPrefix(arg, "--max-running="); ok {
				if n, err := strconv.Atoi(value); err == nil {
					s.MaxRunning = n
				}
			}
		}
	}
	return s
}
