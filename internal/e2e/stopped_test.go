//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stopped is a training that something ends in the middle, and that a later run goes on
// with.
type stopped struct {
	stages
	updates  int
	digest   string // of the same training, undisturbed
	to, half time.Duration
}

// TestStoppedTrainings is one test, since the two runs at once show what the others have
// to come to, and how long they take.
func TestStoppedTrainings(t *testing.T) {
	e := connect(t)
	s := &stopped{stages: e.pinnedStages(t), updates: 150}
	t.Parallel()
	t.Run("two at once have nothing to do with each other", s.atOnce)
	if s.digest == "" {
		t.Fatal("there is nothing to compare with")
	}
	for name, test := range map[string]func(*testing.T){
		"cancelled, with the report":    func(t *testing.T) { s.cancelled(t, "cancelled-finally", true, "--grace=CancelledRunFinally") },
		"cancelled, without any report": func(t *testing.T) { s.cancelled(t, "cancelled", false) },
		"timed out":                     s.timedOut,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// training is a run of the training that the test is about.
func (s *stopped) training(name, run string) *pipelinev1.PipelineRun {
	return s.pinned(name, s.small(param("run", run), param("name", run), param("max-iters", strconv.Itoa(s.updates)), param("save-interval", "25"), param("eval-interval", "50")))
}

// atOnce runs the same twice at the same time, each with a claim of its own.
func (s *stopped) atOnce(t *testing.T) {
	names := []string{"at-once-1", "at-once-2"}
	runs := map[string]*pipelinev1.PipelineRun{}
	for _, name := range names {
		runs[name] = s.create(t, s.training(name, name))
	}
	claims, digests, files := map[string]bool{}, map[string]bool{}, map[string][]string{}
	for i, name := range names {
		run := s.wait(t, 15*time.Minute, runs[name])
		folder := s.checkPromoted(t, run, name)
		digest := results(run)["model-digest"]
		digests[digest] = true
		train := s.tasks(t, name)["train"]
		claims[train.Spec.Workspaces[0].PersistentVolumeClaim.ClaimName] = true
		s.took(run, train)
		other := names[1-i]
		for _, key := range append(s.list(t, "runs/"+name+"/"), s.list(t, folder)...) {
			files[name] = append(files[name], strings.ReplaceAll(key, name, "RUN"))
			if text := s.read(t, key); strings.Contains(string(text), other) {
				t.Errorf("%s speaks of %s", key, other)
			}
		}
		if !slices.Contains(files[name], "runs/RUN/lineage/train.json") {
			t.Errorf("run %s left %v", name, files[name])
		}
		s.digest = digest
	}
	if len(claims) != 2 || len(digests) != 1 {
		t.Errorf("claims %v, want two; models %v, want one", claims, digests)
		s.digest = ""
	}
	if !slices.Equal(files[names[0]], files[names[1]]) {
		t.Errorf("the one left %v, the other %v", files[names[0]], files[names[1]])
	}
	for _, key := range s.list(t, "runs/") {
		if !strings.HasPrefix(key, "runs/at-once-1/") && !strings.HasPrefix(key, "runs/at-once-2/") {
			t.Errorf("%s is of neither", key)
		}
	}
}

func (s *stopped) cancelled(t *testing.T, name string, report bool, grace ...string) {
	run := s.onClaim(t, name)
	created := s.create(t, run)
	s.atStep(t, name, s.updates/4)
	s.command(t, s.Checkout, nil, s.Programs["tkn"], append([]string{"pr", "cancel", name, "--kubeconfig", s.Kubeconfig, "--namespace", s.namespace}, grace...)...)
	done := s.wait(t, 5*time.Minute, created)
	if reason := done.Status.GetCondition("Succeeded").Reason; reason != "Cancelled" {
		t.Errorf("it ended as %s", message(done))
	}
	if _, ran := s.tasks(t, name)["report"]; ran != report {
		t.Errorf("the report ran: %v, want %v", ran, report)
	}
	s.finds(t, "it was cancelled", name, "--port-forward")
	s.survives(t, name)
	s.goesOn(t, name)
}

func (s *stopped) timedOut(t *testing.T) {
	name := s.inTheMiddle(t)
	s.finds(t, "it ran into its timeout", name, "--port-forward")
	if _, ran := s.tasks(t, name)["report"]; !ran {
		t.Error("there was no report")
	}
	s.survives(t, name)
	s.goesOn(t, name)
}

// inTheMiddle runs into the timeout of all tasks while it trains, and returns the run.
// When that is differs with what else the machine does: one that was too late or too
// early is tried again.
func (s *stopped) inTheMiddle(t *testing.T) string {
	t.Helper()
	limit := s.to + s.half
	for try := range 4 {
		run := s.onClaim(t, "timed-out-"+strconv.Itoa(try))
		run.Spec.Timeouts = &pipelinev1.TimeoutFields{
			Pipeline: &metav1.Duration{Duration: limit + 5*time.Minute}, Tasks: &metav1.Duration{Duration: limit}, Finally: &metav1.Duration{Duration: 5 * time.Minute},
		}
		done := s.run(t, limit+10*time.Minute, run)
		train, began := s.tasks(t, run.Name)["train"]
		condition := train.Status.GetCondition("Succeeded")
		s.podGone(t, run.Name)
		switch {
		case began && condition.IsTrue():
			s.took(done, train)
			t.Logf("with %v it trains to the end: once more with %v", limit, s.to+s.half)
			limit = s.to + s.half
		case began && strings.Contains(s.onVolume(t, run.Name, run.Name)["train.log"], "step "):
			return run.Name
		default:
			t.Logf("with %v it does not begin to train: once more with %v", limit, 2*limit)
			limit *= 2
		}
	}
	t.Fatal("it was never stopped in the middle")
	return ""
}

// took remembers when a training began, and half of what it took.
func (s *stopped) took(run *pipelinev1.PipelineRun, train pipelinev1.TaskRun) {
	s.to = train.Status.StartTime.Sub(run.CreationTimestamp.Time)
	s.half = train.Status.CompletionTime.Sub(train.Status.StartTime.Time) / 2
}

// onClaim is a run of this name on a claim of this name, which outlives it.
func (s *stopped) onClaim(t *testing.T, name string) *pipelinev1.PipelineRun {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: shared().VolumeClaimTemplate.Spec}
	if _, err := s.kube.CoreV1().PersistentVolumeClaims(s.namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	run := s.training(name, name)
	run.Spec.Workspaces = []pipelinev1.WorkspaceBinding{claimed(name)}
	return run
}

// podGone waits until the pod of a training has ended: what Tekton calls done may still
// be saving.
func (s *stopped) podGone(t *testing.T, run string) {
	t.Helper()
	s.until(t, 2*time.Minute, "the training of "+run+" has ended", func(ctx context.Context) (bool, string, error) {
		pods, err := s.kube.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: "tekton.dev/pipelineRun=" + run + ",tekton.dev/pipelineTask=train"})
		if err != nil {
			return false, err.Error(), nil
		}
		for _, pod := range pods.Items {
			if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
				return false, pod.Name + " is " + string(pod.Status.Phase), nil
			}
		}
		return true, "", nil
	})
}

// survives makes sure that logs, progress and checkpoint are on the volume and in the
// store.
func (s *stopped) survives(t *testing.T, name string) {
	t.Helper()
	s.podGone(t, name)
	volume := s.onVolume(t, name, name)
	step := s.step(t, volume["progress.json"])
	if step == 0 || step >= s.updates {
		t.Errorf("progress.json on the volume is of step %d", step)
	}
	if !strings.Contains(volume["train.log"], "step ") || !strings.HasSuffix(strings.TrimSpace(volume["train.log"]), "stopped by SIGTERM") {
		t.Errorf("train.log on the volume:\n%s", volume["train.log"])
	}
	if kept := s.step(t, string(s.read(t, "runs/"+name+"/checkpoint/latest.json"))); kept != step {
		t.Errorf("the checkpoint in the store is of step %d, the volume's of %d", kept, step)
	}
	if told := s.step(t, string(s.read(t, "runs/"+name+"/progress.json"))); told != step {
		t.Errorf("progress.json in the store is of step %d, the volume's of %d", told, step)
	}
	if log := s.read(t, "runs/"+name+"/logs/train.log"); !strings.Contains(string(log), "step ") {
		t.Errorf("train.log in the store:\n%s", log)
	}
}

// step is that of progress.json, or of the index of kept checkpoints.
func (s *stopped) step(t *testing.T, document string) int {
	t.Helper()
	var at struct {
		Step    int `json:"step"`
		Metrics []struct{ Name, Value string }
	}
	if err := json.Unmarshal([]byte(document), &at); err != nil {
		t.Fatalf("%v in %q", err, document)
	}
	for _, metric := range at.Metrics {
		if metric.Name == "step" {
			step, err := strconv.Atoi(metric.Value)
			if err != nil {
				t.Error(err)
			}
			return step
		}
	}
	return at.Step
}

// onVolume reads what a run left on a claim, as somebody would who looks for it.
func (s *stopped) onVolume(t *testing.T, claim, run string) map[string]string {
	t.Helper()
	created, err := s.kube.CoreV1().Pods(s.namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "read-"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Volumes: []corev1.Volume{{Name: "shared", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
			Containers: []corev1.Container{{
				Name: "read", Image: s.Images["shell"], SecurityContext: nonrootUser(),
				VolumeMounts: []corev1.VolumeMount{{Name: "shared", MountPath: "/shared"}},
				Command:      []string{"/bin/sh", "-c", `cd "/shared/runs/$0" && for f in progress.json logs/train.log; do echo "<<$f>>"; busybox cat "$f"; done; busybox true`, run},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, part := range strings.Split(s.podEnd(t, created), "<<")[1:] {
		name, text, _ := strings.Cut(part, ">>\n")
		out[name[strings.LastIndex(name, "/")+1:]] = text
	}
	return out
}

var resumed = regexp.MustCompile(`msg=resuming .*step=(\d+) `)

// goesOn starts a run of the same name, which ends as if nothing had happened.
func (s *stopped) goesOn(t *testing.T, name string) {
	t.Helper()
	again := s.training(name+"-again", name)
	again.Spec.Workspaces = []pipelinev1.WorkspaceBinding{claimed(name)}
	run := s.run(t, 15*time.Minute, again)
	s.checkPromoted(t, run, name)
	if got := results(run)["model-digest"]; got != s.digest {
		t.Errorf("it comes to %s, undisturbed to %s", got, s.digest)
	}
	log := s.log(t, s.tasks(t, run.Name)["train"], "train")
	if at := resumed.FindStringSubmatch(log); at == nil || at[1] == "0" {
		t.Errorf("it did not go on from a checkpoint:\n%s", log)
	} else {
		t.Logf("%s went on from step %s of %d", name, at[1], s.updates)
	}
}
