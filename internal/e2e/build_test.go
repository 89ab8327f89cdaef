//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	podtemplate "github.com/tektoncd/pipeline/pkg/apis/pipeline/pod"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// builds runs builds of commits in one namespace.
type builds struct {
	env
	namespace string
	as        *corev1.PodSecurityContext // of all pods; nil is the images' own users
	image     string                     // repository of its own, with nothing to reuse; empty is the namespace's
}

// built is what came of a build.
type built struct {
	ref, digest, source, cached string
	before, after               string // digests of the checkout
	steps                       map[string]string
	took                        time.Duration
}

// build fetches a commit, hashes the checkout, builds it, and hashes it again.
func (b builds) build(t *testing.T, commit string, params ...pipelinev1.Param) built {
	t.Helper()
	hash := func(name, after string) pipelinev1.PipelineTask {
		return pipelinev1.PipelineTask{
			Name: name, RunAfter: []string{after},
			Workspaces: []pipelinev1.WorkspacePipelineTaskBinding{{Name: "shared", Workspace: "shared"}},
			TaskSpec: &pipelinev1.EmbeddedTask{TaskSpec: pipelinev1.TaskSpec{
				Workspaces: []pipelinev1.WorkspaceDeclaration{{Name: "shared"}},
				Results:    []pipelinev1.TaskResult{{Name: "checkout"}},
				Steps: []pipelinev1.Step{{
					Name: "hash", Image: b.Images["shell"], SecurityContext: nonrootUser(),
					Env: []corev1.EnvVar{{Name: "SHARED", Value: "$(workspaces.shared.path)"}},
					// Modes, times and owners too. Not a script: its init container would run
					// as the shell image's root.
					Command: []string{"/bin/sh", "-euc"},
					Args: []string{`cd "$SHARED/source"
						(busybox find . -type f -exec busybox sha256sum {} \; ; busybox find . -exec busybox stat -c '%n %a %Y %u' {} \;) |
						busybox sort | busybox sha256sum | busybox cut -d' ' -f1 | busybox tr -d '\n' >/tekton/results/checkout`},
				}},
			}},
		}
	}
	image := b.Registry + "/e2e/" + b.namespace
	if b.image != "" {
		image += "/" + b.image
	}
	spec := &pipelinev1.PipelineRun{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "build-", Namespace: b.namespace},
		Spec: pipelinev1.PipelineRunSpec{
			TaskRunTemplate: runAs("trainyard-build"),
			Workspaces:      []pipelinev1.WorkspaceBinding{shared()},
			// No fsGroup, as pipelines/runs/from-scratch.yaml has it: its bit would be in
			// the image, and the digest not that of a laptop.
			TaskRunSpecs: []pipelinev1.PipelineTaskRunSpec{{
				PipelineTaskName: "build",
				PodTemplate: &podtemplate.PodTemplate{SecurityContext: &corev1.PodSecurityContext{
					RunAsNonRoot: runAs("").PodTemplate.SecurityContext.RunAsNonRoot, SeccompProfile: runAs("").PodTemplate.SecurityContext.SeccompProfile,
				}},
			}},
			PipelineSpec: &pipelinev1.PipelineSpec{
				Workspaces: []pipelinev1.PipelineWorkspaceDeclaration{{Name: "shared"}},
				Tasks: []pipelinev1.PipelineTask{
					{
						Name: "fetch", TaskRef: &pipelinev1.TaskRef{Name: "fetch-source"},
						Params:     []pipelinev1.Param{param("url", b.GitURL), param("revision", "refs/heads/"+b.namespace), param("commit", commit)},
						Workspaces: []pipelinev1.WorkspacePipelineTaskBinding{{Name: "shared", Workspace: "shared"}},
					},
					hash("before", "fetch"),
					{
						Name: "build", TaskRef: &pipelinev1.TaskRef{Name: "build-image"}, RunAfter: []string{"before"},
						Params: append([]pipelinev1.Param{
							param("image", image+":test"),
							param("builder-image", b.Images["builder"]),
							param("run-image", b.Images["run"]),
							param("insecure-registries", b.Registry),
							param("folder", "trainer"),
						}, params...),
						Workspaces: []pipelinev1.WorkspacePipelineTaskBinding{{Name: "shared", Workspace: "shared"}},
					},
					hash("after", "build"),
				},
				Results: []pipelinev1.PipelineResult{
					{Name: "ref", Value: *pipelinev1.NewStructuredValues("$(tasks.build.results.IMAGE_REF)")},
					{Name: "digest", Value: *pipelinev1.NewStructuredValues("$(tasks.build.results.IMAGE_DIGEST)")},
					{Name: "source", Value: *pipelinev1.NewStructuredValues("$(tasks.build.results.SOURCE_DIGEST)")},
					{Name: "cached", Value: *pipelinev1.NewStructuredValues("$(tasks.build.results.CACHE_HIT)")},
					{Name: "before", Value: *pipelinev1.NewStructuredValues("$(tasks.before.results.checkout)")},
					{Name: "after", Value: *pipelinev1.NewStructuredValues("$(tasks.after.results.checkout)")},
				},
			},
		},
	}
	if b.as != nil {
		spec.Spec.TaskRunTemplate.PodTemplate.SecurityContext, spec.Spec.TaskRunSpecs = b.as, nil
	}
	run := b.run(t, 20*time.Minute, spec)
	if !run.Status.GetCondition("Succeeded").IsTrue() {
		t.Fatalf("build of %s: %s", commit, message(run))
	}
	r := results(run)
	out := built{
		ref: r["ref"], digest: r["digest"], source: r["source"], cached: r["cached"],
		before: r["before"], after: r["after"], steps: map[string]string{},
	}
	tasks, err := b.tekton.TektonV1().TaskRuns(b.namespace).List(t.Context(), metav1.ListOptions{
		LabelSelector: "tekton.dev/pipelineTask=build,tekton.dev/pipelineRun=" + run.Name,
	})
	if err != nil || len(tasks.Items) != 1 {
		t.Fatalf("%d TaskRuns of the build, %v", len(tasks.Items), err)
	}
	for _, step := range tasks.Items[0].Status.Steps {
		out.steps[step.Name] = step.TerminationReason
	}
	out.took = tasks.Items[0].Status.CompletionTime.Sub(tasks.Items[0].Status.StartTime.Time)
	t.Logf("commit %.12s: %s, source %s, found: %s, %v", commit, out.digest, out.source, out.cached, out.took)
	return out
}

// nonrootUser is restricted for images without a user of their own.
func nonrootUser() *corev1.SecurityContext {
	context, id := restricted(), int64(65532)
	context.RunAsUser, context.RunAsGroup = &id, &id
	return context
}

// One test, since each build needs the one before.
func TestBuildingTheTrainer(t *testing.T) {
	e := connect(t)
	namespace := e.namespace(t)
	e.install(t, namespace)
	source := e.repository(t, namespace)
	b := builds{env: e, namespace: namespace}
	cache := param("cache-image", e.Registry+"/e2e/"+namespace+":cache")

	first := b.build(t, source.push(t, "as it is"), cache)
	t.Run("the checkout is the same after a build", func(t *testing.T) {
		if first.before == "" || first.before != first.after {
			t.Errorf("hash of the checkout before %q, after %q", first.before, first.after)
		}
	})
	t.Run("the first build is no cache hit", func(t *testing.T) {
		if first.cached != "false" || first.steps["build"] != "Completed" {
			t.Errorf("found: %s, steps %v", first.cached, first.steps)
		}
		if first.ref != e.Registry+"/e2e/"+namespace+"@"+first.digest {
			t.Errorf("IMAGE_REF %s, IMAGE_DIGEST %s", first.ref, first.digest)
		}
	})
	t.Run("it runs as no root on a file system that it cannot write to", func(t *testing.T) {
		e.runTrainer(t, namespace, first.ref)
	})
	t.Run("the same source is found, not built", func(t *testing.T) {
		second := b.build(t, source.push(t, "nothing changed"), cache)
		if second.cached != "true" || second.digest != first.digest || second.steps["build"] == "Completed" {
			t.Errorf("found: %s, digest %s after %s, steps %v", second.cached, second.digest, first.digest, second.steps)
		}
	})
	t.Run("a file outside the include list changes nothing", func(t *testing.T) {
		source.append(t, "README.md", "\nOne more line.\n")
		other := b.build(t, source.push(t, "a line of the README"), cache)
		if other.source != first.source || other.digest != first.digest {
			t.Errorf("source %s after %s, digest %s after %s", other.source, first.source, other.digest, first.digest)
		}
	})
	t.Run("without the cache the same digest is built again", func(t *testing.T) {
		again := b.build(t, source.push(t, "to be built again"), param("rebuild", "true"))
		if again.cached != "false" || again.digest != first.digest {
			t.Errorf("found: %s, digest %s after %s", again.cached, again.digest, first.digest)
		}
		t.Logf("built twice by the task: %s and %s", first.digest, again.digest)
	})
	t.Run("make trainer-image builds the same digest", func(t *testing.T) {
		image := e.Registry + "/e2e/" + namespace + ":laptop"
		out := e.command(t, source.dir, nil, e.Programs["yard"], "image", "build", "--workspace=.", "--folder=trainer",
			"--builder="+e.Images["builder"], "--run-image="+e.Images["run"], "--insecure-registry="+e.Registry,
			"--image="+image, "--rebuild", "--docker-network="+e.Name, "--ca-file=/etc/ssl/certs/ca-certificates.crt")
		if !strings.Contains(out, first.digest) {
			t.Errorf("on this machine: %s; in the task: %s", out, first.digest)
		}
		t.Logf("built on this machine: %s", out)
	})
	t.Run("one byte of the trainer's source gives another digest", func(t *testing.T) {
		source.append(t, "trainer/cmd/trainer/main.go", "\n")
		changed := b.build(t, source.push(t, "a byte of the trainer"), cache)
		if changed.source == first.source || changed.digest == first.digest || changed.cached != "false" {
			t.Errorf("found: %s, source %s after %s, digest %s after %s", changed.cached, changed.source, first.source, changed.digest, first.digest)
		}
	})
}

// runTrainer runs the trainer of an image under the restricted standard.
func (e env) runTrainer(t *testing.T, namespace, image string) {
	t.Helper()
	context, yes := restricted(), true
	context.ReadOnlyRootFilesystem = &yes
	created, err := e.kube.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "trainer-"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "trainer", Image: image, Command: []string{"/cnb/process/trainer"}, Args: []string{"version"}, SecurityContext: context,
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	log := e.podEnd(t, created)
	if !strings.HasPrefix(log, "trainer ") {
		t.Errorf("trainer version prints %q", log)
	}
}
