package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	pipelineapi "github.com/tektoncd/pipeline/pkg/apis/pipeline"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/exitcode"
)

func taskName(tr *pipelinev1.TaskRun) string {
	return cmp.Or(tr.Labels[pipelineapi.PipelineTaskLabelKey], tr.Name)
}

// taskRun examines one TaskRun.
func (e *exam) taskRun(ctx context.Context, tr *pipelinev1.TaskRun) error {
	cond := tr.Status.GetCondition(succeeded)
	name := taskName(tr)
	switch {
	case tr.IsSuccessful():
		return nil
	case tr.IsDone():
		return e.failedTask(ctx, name, tr, cond.Reason, cond.Message)
	case cond != nil && tr.Status.PodName == "":
		e.noPod(name, tr, cond.Reason, cond.Message)
		return nil
	case cond == nil:
		if age := e.Now().Sub(tr.CreationTimestamp.Time); age > patience {
			e.problem("task", "look whether Tekton's controller runs (see below)", "task %s: Tekton has taken no notice of it, %s after it was created", name, ago(age))
		}
		return nil
	}
	what := fmt.Sprintf("the pod of task %s (%s)", name, tr.Status.PodName)
	p, err := e.Kube.CoreV1().Pods(tr.Namespace).Get(ctx, tr.Status.PodName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		e.problem("task", "Tekton makes another when the task has retries; otherwise start the run again", "%s does not exist any more, and the task has not ended: somebody deleted it, or its node went", what)
		return nil
	}
	if err != nil {
		return e.cannotSee("pod", "pods", err)
	}
	found, err := e.pod(ctx, what, p)
	if err != nil || found {
		return err
	}
	if spec := tr.Status.TaskSpec; spec != nil {
		if err := e.resolve(ctx, name, spec, params{}); err != nil {
			return err
		}
	}
	e.working(name, tr)
	return nil
}

// noPod examines a TaskRun that has no pod yet.
func (e *exam) noPod(name string, tr *pipelinev1.TaskRun, reason, message string) {
	age := e.Now().Sub(tr.CreationTimestamp.Time)
	_, quota := parseQuotaRefusal(message)
	switch {
	case quota:
		e.report.add(refusal("quota", "the pod of task "+name, message))
	case age < patience:
		e.ok("task", "task %s was created %s ago", name, ago(age))
	case reason == pipelinev1.TaskRunReasonResolvingTaskRef:
		e.problem("task", "look whether Tekton's resolvers run, and whether the bundle or repository can be read", "task %s waits for its definition for %s: %s", name, ago(age), message)
	default:
		e.problem("task", "see the message; kubectl describe taskrun "+tr.Name, "task %s has no pod, %s after it was created (%s): %s", name, ago(age), reason, message)
	}
}

// working says what a task does whose pod is well.
func (e *exam) working(name string, tr *pipelinev1.TaskRun) {
	for _, s := range tr.Status.Steps {
		if t := s.Terminated; t != nil && t.ExitCode != 0 && e.Now().Sub(t.FinishedAt.Time) > patience {
			e.problem("task", "cancel the run and start it again: Tekton waits for the other steps until the timeout", "task %s: step %s ended with exit code %d %s ago, and the task goes on waiting", name, s.Name, t.ExitCode, ago(e.Now().Sub(t.FinishedAt.Time)))
			return
		}
	}
	for _, s := range tr.Status.Steps {
		if s.Running != nil {
			e.ok("task", "task %s works: step %s, %s after the task began", name, s.Name, ago(e.Now().Sub(cmp.Or(tr.Status.StartTime, &tr.CreationTimestamp).Time)))
			return
		}
	}
	e.ok("task", "task %s is starting", name)
}

// failedTask says why a task failed.
func (e *exam) failedTask(ctx context.Context, name string, tr *pipelinev1.TaskRun, reason, message string) error {
	f := Finding{Check: "task", Level: Problem}
	_, security := parseSecurityRefusal(message)
	_, quota := parseQuotaRefusal(message)
	switch {
	case security || quota:
		e.report.add(refusal("task", "the pod of task "+name, message))
		return nil
	case reason == string(pipelinev1.TaskRunReasonCancelled):
		e.warn("task", "", "task %s was cancelled: %s", name, message)
		return nil
	case reason == string(pipelinev1.TaskRunReasonImagePullFailed):
		e.report.add(imageFinding("task "+name+" failed", imageIn(message), message))
		return nil
	case e.waitedForEver(name, tr):
		return nil
	case reason == string(pipelinev1.TaskRunReasonTimedOut):
		f.Message = fmt.Sprintf("task %s ran into its timeout of %s and its pod was deleted, with its log", name, tr.GetTimeout(ctx))
		f.Remedy = "raise the timeout of the task, and that of the run above it; the log and the checkpoints are on the workspace"
		e.report.add(f)
		return nil
	}
	f.Message = fmt.Sprintf("task %s failed (%s): %s", name, reason, message)
	lines := []string{message}
	if s := failedStep(tr); s != nil {
		f.Message, f.Remedy = stepInWords(name, *s, tr)
		lines = append(e.lastLines(ctx, tr.Namespace, tr.Status.PodName, s.Container), s.Terminated.Message)
	}
	for _, line := range slices.Backward(lines) {
		if c, ok := causeOf(line); ok {
			f.Message += "; it looks as if " + c.means
			f.Remedy = c.remedy
			if line != message {
				f.Details = []string{line}
			}
			break
		}
	}
	if last := lastWords(lines); len(f.Details) == 0 && last != "" && last != message {
		f.Details = []string{last}
	}
	if tr.Status.PodName == "" {
		f.Remedy = cmp.Or(f.Remedy, "correct what the message names; kubectl describe taskrun "+tr.Name)
	}
	f.Remedy = cmp.Or(f.Remedy, "kubectl logs "+tr.Status.PodName+" --all-containers, and correct what it names")
	e.report.add(f)
	return nil
}

// waitedForEver reports a step that could not even be made.
func (e *exam) waitedForEver(name string, tr *pipelinev1.TaskRun) bool {
	before := len(e.report.Findings)
	for _, s := range tr.Status.Steps {
		if w := s.Waiting; w != nil {
			e.waiting("task "+name+" failed", corev1.ContainerStatus{Name: s.Container, Image: imageIn(w.Message)}, *w)
		}
	}
	return len(e.report.Findings) > before
}

// imageIn finds the name of an image in what a kubelet says about pulling it.
func imageIn(message string) string {
	_, rest, ok := strings.Cut(message, `pulling image "`)
	if !ok {
		return ""
	}
	image, _, _ := strings.Cut(rest, `"`)
	return image
}

func failedStep(tr *pipelinev1.TaskRun) *pipelinev1.StepState {
	for i, s := range tr.Status.Steps {
		// What follows a failed step is ended by Tekton, with the same exit code.
		if s.Terminated != nil && s.Terminated.ExitCode != 0 && s.TerminationReason != "Skipped" {
			return &tr.Status.Steps[i]
		}
	}
	return nil
}

func stepInWords(task string, s pipelinev1.StepState, tr *pipelinev1.TaskRun) (message, remedy string) {
	t := s.Terminated
	message = fmt.Sprintf("task %s failed: step %s ended with exit code %d", task, s.Name, t.ExitCode)
	switch {
	case t.Reason == "OOMKilled":
		return message + ", because it used more memory than its limit", "raise the memory limit of the step, or make the work smaller (batch size, block size)"
	case t.ExitCode == 137:
		return message + ": something killed it (the kernel for want of memory, or an eviction)", "look at the memory of the node; kubectl get events"
	case t.ExitCode == 143:
		return message + ": it was asked to end, by a cancel, a timeout or a drain of its node", "start the run again: it resumes"
	}
	meaning, gate := ourExitCode(int(t.ExitCode), s.Name, tr)
	if meaning != "" {
		message += " (" + meaning + ")"
	}
	if gate && t.ExitCode == 1 {
		remedy = "the gate blocked the model: gate_report.json in the run directory and in the store lists every reason"
	}
	return message, remedy
}

// ourExitCode is what an exit code of yard or the trainer means, and whether the
// step is the trainer's gate.
func ourExitCode(code int, step string, tr *pipelinev1.TaskRun) (meaning string, gate bool) {
	if tr.Status.TaskSpec == nil {
		return "", false
	}
	for _, s := range tr.Status.TaskSpec.Steps {
		program := strings.Join(s.Command, " ")
		if s.Name != step || !strings.HasSuffix(program, "/yard") && !strings.HasSuffix(program, "/trainer") {
			continue
		}
		gate = len(s.Args) > 0 && s.Args[0] == "gate"
		if code == 5 && strings.HasSuffix(program, "/trainer") {
			return "the loss or a gradient is not a number any more: lower the learning rate", gate
		}
		for _, row := range exitcode.Table() {
			if row.Code == code {
				return row.Meaning, gate
			}
		}
	}
	return "", gate
}

// logLines is how much of a log's end is looked at.
const logLines = 40

// lastLines reads the end of a container's log; none when there is none any more.
func (e *exam) lastLines(ctx context.Context, namespace, pod, container string) []string {
	n, limit := int64(logLines), int64(64<<10)
	if e.Logs != nil {
		return e.Logs(pod, container)
	}
	stream, err := e.Kube.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, TailLines: &n, LimitBytes: &limit}).Stream(ctx)
	if err != nil {
		return nil // the pod is gone, or its log may not be read
	}
	defer stream.Close()
	text, err := io.ReadAll(io.LimitReader(stream, limit))
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\n")
}

func lastWords(lines []string) string {
	for _, l := range slices.Backward(lines) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "[{") { // Tekton's own records
			return l
		}
	}
	return ""
}
