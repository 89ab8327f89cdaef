//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/prune"
	"github.com/trainyard/trainyard/internal/pushrun"
)

// pushedRun is a run of one small step, as a push to a branch would start it, with
// a volume of its own.
func (e env) pushedRun(namespace, name, branch, command string) *pipelinev1.PipelineRun {
	return &pipelinev1.PipelineRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels: map[string]string{
				pushrun.TriggerLabel: pushrun.TriggerPush, pushrun.ForgeLabel: string(pushrun.Gitea),
				pushrun.CommitLabel: strings.Repeat("a", 40),
			},
			Annotations: map[string]string{pushrun.RepositoryLabel: "owner/name", pushrun.BranchLabel: branch},
		},
		Spec: pipelinev1.PipelineRunSpec{
			TaskRunTemplate: nonroot(),
			Workspaces: []pipelinev1.WorkspaceBinding{{
				Name: "shared",
				VolumeClaimTemplate: &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Mi")}},
				}},
			}},
			PipelineSpec: &pipelinev1.PipelineSpec{
				Workspaces: []pipelinev1.PipelineWorkspaceDeclaration{{Name: "shared"}},
				Tasks: []pipelinev1.PipelineTask{{
					Name:       "write",
					Workspaces: []pipelinev1.WorkspacePipelineTaskBinding{{Name: "shared", Workspace: "shared"}},
					TaskSpec: &pipelinev1.EmbeddedTask{TaskSpec: pipelinev1.TaskSpec{
						Workspaces: []pipelinev1.WorkspaceDeclaration{{Name: "shared"}},
						Steps: []pipelinev1.Step{{
							Name: "write", Image: e.Images["shell"], SecurityContext: restricted(),
							Env:     []corev1.EnvVar{{Name: "SHARED", Value: "$(workspaces.shared.path)"}},
							Command: []string{"/bin/sh", "-euc"}, Args: []string{command},
						}},
					}},
				}},
			},
		},
	}
}

// claims of a namespace, by the run that owns each; "" has those that nobody owns.
func (e env) claims(t *testing.T, namespace string) map[string]string {
	t.Helper()
	list, err := e.kube.CoreV1().PersistentVolumeClaims(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := map[string]string{}
	for _, c := range list.Items {
		owner := ""
		for _, o := range c.OwnerReferences {
			owner = o.Name
		}
		owned[owner] = c.Name
	}
	return owned
}

// The CronJob's own pod, account and role delete what is too much, and no more.
func TestOldRunsAndTheirVolumesArePruned(t *testing.T) {
	t.Parallel()
	e := connect(t)
	namespace := e.namespace(t)
	ctx := t.Context()
	e.apply(t, namespace, "triggers/prune")
	shared := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "trainyard"}, Spec: e.pushedRun("", "", "", "").Spec.Workspaces[0].VolumeClaimTemplate.Spec}
	if _, err := e.kube.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, shared, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const write = `echo done >"$SHARED/word"`
	// One after the other: the names tell another order than the ends.
	for _, run := range []*pipelinev1.PipelineRun{
		e.pushedRun(namespace, "first-z", "main", write),
		e.pushedRun(namespace, "second-y", "main", write+"; exit 1"), // a failed one counts
		e.pushedRun(namespace, "third-x", "main", write),
		e.pushedRun(namespace, "other-branch", "dev", write),
	} {
		if done := e.run(t, 3*time.Minute, run); done.Status.CompletionTime == nil {
			t.Fatalf("%s: %s", run.Name, message(done))
		}
	}
	running := e.pushedRun(namespace, "running", "main", write+"; sleep 600")
	waiting := e.pushedRun(namespace, "waiting", "main", write)
	waiting.Spec.Status = pipelinev1.PipelineRunSpecStatusPending
	byHand := e.pushedRun(namespace, "by-hand", "main", write)
	delete(byHand.Labels, pushrun.TriggerLabel)
	for _, run := range []*pipelinev1.PipelineRun{running, waiting} {
		if _, err := e.tekton.TektonV1().PipelineRuns(namespace).Create(ctx, run, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	e.run(t, 3*time.Minute, byHand)
	e.until(t, 2*time.Minute, "the step of running runs", func(ctx context.Context) (bool, string, error) {
		pod, err := e.kube.CoreV1().Pods(namespace).Get(ctx, "running-write-pod", metav1.GetOptions{})
		if err != nil {
			return false, err.Error(), nil
		}
		return pod.Status.Phase == corev1.PodRunning, string(pod.Status.Phase), nil
	})
	before := e.claims(t, namespace)

	t.Run("a dry run deletes nothing", func(t *testing.T) {
		report := e.prune(t, namespace, "dry", "--keep=1", "--dry-run")
		if got := e.runNames(t, namespace); got != "by-hand first-z other-branch running second-y third-x waiting" {
			t.Errorf("after a dry run there are %s", got)
		}
		if len(report.Deleted) != 2 || report.Freed != 2*10<<20 {
			t.Errorf("a dry run says %+v", report)
		}
	})
	report := e.prune(t, namespace, "real", "--keep=1", "--older-than=720h")
	var deleted []string
	for _, d := range report.Deleted {
		if len(d.Claims) != 1 || d.Claims[0].Name != before[d.Name] || d.Group != "gitea owner/name main" {
			t.Errorf("of %s it says %+v", d.Name, d)
		}
		deleted = append(deleted, d.Name)
	}
	if got := strings.Join(deleted, " "); got != "first-z second-y" || len(report.Left) > 0 {
		t.Errorf("deleted %s, left %+v", got, report.Left)
	}
	e.until(t, 2*time.Minute, "the old runs are gone, with all that they own", func(ctx context.Context) (bool, string, error) {
		runs, claims := e.runNames(t, namespace), e.claims(t, namespace)
		tasks, err := e.tekton.TektonV1().TaskRuns(namespace).List(ctx, metav1.ListOptions{LabelSelector: "tekton.dev/pipelineRun in (first-z,second-y)"})
		if err != nil {
			return false, "", err
		}
		pods, err := e.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "tekton.dev/pipelineRun in (first-z,second-y)"})
		if err != nil {
			return false, "", err
		}
		gone := claims["first-z"] == "" && claims["second-y"] == "" && len(tasks.Items)+len(pods.Items) == 0
		return gone && runs == "by-hand other-branch running third-x waiting", runs, nil
	})
	after := e.claims(t, namespace)
	for _, owner := range []string{"third-x", "other-branch", "running", "by-hand", ""} {
		if after[owner] == "" || after[owner] != before[owner] {
			t.Errorf("the claim of %q was %q and is %q", owner, before[owner], after[owner])
		}
	}
	pod, err := e.kube.CoreV1().Pods(namespace).Get(ctx, "running-write-pod", metav1.GetOptions{})
	if err != nil || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod of the run that runs: %v, %v", pod.Status.Phase, err)
	}
	if again := e.prune(t, namespace, "again", "--keep=1", "--older-than=720h"); len(again.Deleted)+len(again.Left) > 0 {
		t.Errorf("a second time it says %+v", again)
	}
}

// prune runs the CronJob's pod once, with other arguments, and returns its report.
func (e env) prune(t *testing.T, namespace, name string, args ...string) prune.Report {
	t.Helper()
	cron, err := e.kube.BatchV1().CronJobs(namespace).Get(t.Context(), "trainyard-prune", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: cron.Spec.JobTemplate.Spec}
	job.Spec.Template.Spec.Containers[0].Args = append([]string{"prune", "--output=json"}, args...)
	if _, err := e.kube.BatchV1().Jobs(namespace).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var pods *corev1.PodList
	e.until(t, time.Minute, "job "+name+" has a pod", func(ctx context.Context) (bool, string, error) {
		pods, err = e.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + name})
		return err == nil && len(pods.Items) == 1, "", err
	})
	text := e.podEnd(t, &pods.Items[0])
	var report prune.Report
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatalf("job %s prints %q: %v", name, text, err)
	}
	return report
}

// runNames are the names of the PipelineRuns of a namespace, sorted.
func (e env) runNames(t *testing.T, namespace string) string {
	t.Helper()
	list, err := e.tekton.TektonV1().PipelineRuns(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, run := range list.Items {
		names = append(names, run.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
