package doctor

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// pushed adds the run of a push: spec is more of its specification, status its status.
func (w *world) pushed(name, commit, before, created, spec, status string) {
	id := func(letter string) string { return strings.Repeat(letter, 40) }
	w.yaml(`
apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: ` + name + `
  namespace: team
  uid: uid-` + name + `
  creationTimestamp: 2026-11-30T11:` + created + `Z
  labels: {trainyard.dev/trigger: push, trainyard.dev/forge: github, trainyard.dev/commit: "` + id(commit) + `"}
  annotations: {trainyard.dev/repository: trainyard/trainyard, trainyard.dev/branch: main, trainyard.dev/before: "` + id(before) + `"}
spec: {taskRunTemplate: {serviceAccountName: trainyard-train}, workspaces: [{name: shared, volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce]}}}]` + spec + `}
status: ` + status)
}

const (
	heldBack = ", status: PipelineRunPending"
	pending  = `{conditions: [{type: Succeeded, status: Unknown, reason: PipelineRunPending}]}`
	works    = `{startTime: 2026-11-30T11:50:00Z, conditions: [{type: Succeeded, status: Unknown, reason: Running}]}`
)

func (w *world) deployQueue(available, args string) {
	w.yaml(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: trainyard-queue, namespace: team}
spec: {template: {spec: {containers: [{name: queue, args: [queue, ` + args + `]}]}}}
status: {availableReplicas: ` + available + `}`)
}

// Each case is the run of a push that is held back, and the only thing to say of it.
func TestARunThatWaitsForTheQueue(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*world)
		want expectation
	}{
		"no queue": {func(*world) {}, expectation{Problem, "run", []string{
			"no queue runs: there is no deployment trainyard-queue in namespace team", "triggers/queue",
			`kubectl patch pipelinerun run-1 --namespace team --type merge --patch '{"spec":{"status":null}}'`,
		}}},
		"a queue that is down": {func(w *world) { w.deployQueue("0", "--policy=latest") },
			expectation{Problem, "run", []string{"the queue does not work: deployment trainyard-queue has no pod that is ready", "kubectl logs deployment/trainyard-queue --namespace team"}}},
		"behind the active run": {func(w *world) {
			w.deployQueue("1", "--policy=latest")
			w.pushed("run-0", "0", "f", "50:00", "", works)
		}, expectation{Warning, "run", []string{"it waits until run run-0 of the same branch has ended (branch main of trainyard/trainyard)", "yard doctor run-0"}}},
		"behind an older one": {func(w *world) {
			w.deployQueue("1", "--policy=queue")
			w.pushed("run-0", "0", "f", "50:00", heldBack, pending)
		}, expectation{Warning, "run", []string{"it waits for run run-0 of the same branch, which goes first"}}},
		"too many runs": {func(w *world) {
			w.deployQueue("1", "--policy=queue, --max-running=1")
			w.pushed("run-0", "0", "f", "50:00", "", works)
			w.find("PipelineRun", "run-0").Annotations["trainyard.dev/branch"] = "other"
		}, expectation{Warning, "run", []string{"it waits until an active run of another branch has ended: max-running is 1"}}},
		"nothing in its way": {func(w *world) { w.deployQueue("1", "--policy=latest") },
			expectation{Problem, "run", []string{"no run of its branch is active, and yet it is held back, 5 min 0 s after it was created: the queue should have let it in", "kubectl logs"}}},
		"overtaken": {func(w *world) {
			w.deployQueue("1", "--policy=latest")
			w.pushed("run-2", "2", "1", "56:00", heldBack, pending)
		}, expectation{Problem, "run", []string{"run run-2 is of a newer push, so the queue should have cancelled it"}}},
		"just pushed": {func(w *world) {
			w.deployQueue("1", "--policy=latest")
			w.pushed("run-1", "1", "0", "59:50", heldBack, pending)
		}, expectation{OK, "run", []string{"it was created 10 s ago, and waits for the queue"}}},
		"of no push that can be read": {func(w *world) {
			w.deployQueue("1", "--policy=latest")
			w.find("PipelineRun", "run-1").Labels["trainyard.dev/commit"] = "main"
		}, expectation{Problem, "run", []string{`the queue leaves it alone, for it does not say which push it is from: run team/run-1: its label trainyard.dev/commit is "main"`, "push again"}}},
		"deployments may not be seen": {func(w *world) {
			w.pushed("run-0", "0", "f", "50:00", "", works)
			w.change = func(kube *fake.Clientset) {
				kube.PrependReactor("get", "deployments", func(a clienttesting.Action) (bool, runtime.Object, error) {
					return a.GetNamespace() == ns, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "x", errors.New("no"))
				})
			}
		}, expectation{Warning, "run", []string{"it waits until run run-0 of the same branch has ended"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.pushed("run-1", "1", "0", "55:00", heldBack, pending)
			c.set(w)
			r := w.examine("run-1")
			if !c.want.met(r) {
				t.Errorf("no %s that says %q", c.want.level, c.want.says)
			}
			problems := 0
			if c.want.level == Problem {
				problems = 1
			}
			if n := r.Count(Problem); n != problems {
				t.Errorf("%d problems, want %d", n, problems)
			}
			if t.Failed() {
				r.Write(testWriter{t})
			}
		})
	}
}
