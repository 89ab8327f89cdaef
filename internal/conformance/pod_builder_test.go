package conformance

import (
	"testing"

	"github.com/tektoncd/pipeline/pkg/apis/pipeline"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/pkg/pod"
	"github.com/tektoncd/pipeline/pkg/reconciler/taskrun/resources"
	"github.com/tektoncd/pipeline/pkg/workspace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/trainyard/trainyard/internal/manifest"
)

// podOf makes the pod of a TaskRun with the code of Tekton's controller.
func podOf(t *testing.T, run *pipelinev1.TaskRun, task *pipelinev1.Task) *corev1.Pod {
	t.Helper()
	ctx, err := manifest.Context(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := pod.Builder{
		Images:     pipeline.Images{EntrypointImage: "e", SidecarLogResultsImage: "r", NopImage: "n", ShellImage: "s", WorkingDirInitImage: "w"},
		KubeClient: fake.NewClientset(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: run.Spec.ServiceAccountName, Namespace: run.Namespace}}),
	}
	p, err := b.Build(ctx, run, resolved(t, task, run))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// resolved is the task with its parameters, results and workspaces filled in, by the
// code of Tekton's controller.
func resolved(t *testing.T, task *pipelinev1.Task, run *pipelinev1.TaskRun) pipelinev1.TaskSpec {
	t.Helper()
	ctx, err := manifest.Context(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	spec := resources.ApplyParameters(task.Spec.DeepCopy(), run, task.Spec.Params...)
	spec = resources.ApplyContexts(spec, task.Name, run)
	spec = resources.ApplyResults(spec)
	volumes := workspace.CreateVolumes(run.Spec.Workspaces)
	spec = resources.ApplyWorkspaces(ctx, spec, spec.Workspaces, run.Spec.Workspaces, volumes)
	spec, err = workspace.Apply(ctx, *spec, run.Spec.Workspaces, volumes)
	if err != nil {
		t.Fatal(err)
	}
	return *spec
}
