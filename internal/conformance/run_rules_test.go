package conformance

import (
	"cmp"
	"slices"
	"time"

	"github.com/tektoncd/pipeline/pkg/apis/pipeline/pod"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func runRules() []rule {
	return []rule{
		{"I-19: runs share no volume", ownVolume, [][2]string{
			{"      volumeClaimTemplate: # of the run\n        spec:\n          accessModes: [ReadWriteOnce]\n          resources: {requests: {storage: 2Gi}}\n", "      persistentVolumeClaim: {claimName: shared}\n"},
			{"    - {name: run, description: Name of the run., default: $(context.pipelineRun.name)}\n", "    - {name: run, description: Name of the run., default: run}\n"},
		}},
		{"I-27: pods may write what other steps wrote", fsGroup, [][2]string{
			{"        fsGroup: 1000\n", "        fsGroupChangePolicy: OnRootMismatch\n"},
			{"      computeResources: {requests: {cpu: 2}}\n", "      podTemplate: {securityContext: {runAsNonRoot: true}}\n"},
		}},
		{"I-33: retries fit into the timeouts", timeouts, [][2]string{
			{"    tasks: 3h\n", "    tasks: 50m\n"},
			{"    tasks: 3h\n", ""},
			{"    finally: 30m\n", "    finally: 15m\n"},
			{"    pipeline: 3h30m\n", "    pipeline: 3h10m\n"},
			{"      retries: 1 # build\n", "      retries: 8\n"},
		}},
		{"I-50: runs end", timeoutsSet, [][2]string{
			{"    pipeline: 3h30m\n", "    pipeline: 0s\n"},
		}},
		{"I-73: there is a claim for tkn's volumeClaimTemplateFile", claimTemplate, [][2]string{
			{"  accessModes: [ReadWriteOnce] # template\n", ""},
			{"  resources: {requests: {storage: 1Gi}} # template\n", ""},
		}},
	}
}

func runName(r *pipelinev1.PipelineRun) string { return cmp.Or(r.Name, r.GenerateName) }

func podTemplates(r *pipelinev1.PipelineRun) []*pod.PodTemplate {
	var all []*pod.PodTemplate
	if p := r.Spec.TaskRunTemplate.PodTemplate; p != nil {
		all = append(all, p)
	}
	for _, s := range r.Spec.TaskRunSpecs {
		if s.PodTemplate != nil {
			all = append(all, s.PodTemplate)
		}
	}
	return all
}

func ownVolume(r repository) []string {
	var f findings
	for _, run := range r.runs {
		if run.Name != "" && !slices.Contains(r.pushed, run) {
			f.addf("PipelineRun %s: has a name, so that it cannot be created twice: write generateName", run.Name)
		}
		for _, w := range run.Spec.Workspaces {
			if w.VolumeClaimTemplate == nil && w.Secret == nil && w.ConfigMap == nil {
				f.addf("PipelineRun %s: workspace %s is not a volume of its own (volumeClaimTemplate)", runName(run), w.Name)
			}
		}
	}
	for name, p := range each(r.pipelines) {
		for _, param := range p.Spec.Params {
			if param.Name == "run" && (param.Default == nil || param.Default.StringVal != "$(context.pipelineRun.name)") {
				f.addf("Pipeline %s: the run directory does not follow the run's name", name)
			}
		}
	}
	return f
}

func fsGroup(r repository) []string {
	var f findings
	for _, run := range r.runs {
		p := run.Spec.TaskRunTemplate.PodTemplate
		if p == nil || p.SecurityContext == nil || p.SecurityContext.FSGroup == nil || *p.SecurityContext.FSGroup != 1000 {
			f.addf("PipelineRun %s: no fsGroup 1000 in taskRunTemplate.podTemplate", runName(run))
		}
		for _, s := range run.Spec.TaskRunSpecs {
			// Tekton merges templates field by field, the whole securityContext at once. The
			// build only reads the volume, and an fsGroup would get into its image.
			if c := s.PodTemplate; s.PipelineTaskName != "build-image" && c != nil && c.SecurityContext != nil && (c.SecurityContext.FSGroup == nil || *c.SecurityContext.FSGroup != 1000) {
				f.addf("PipelineRun %s: taskRunSpecs of %s lose the fsGroup", runName(run), s.PipelineTaskName)
			}
		}
	}
	return f
}

func timeoutsSet(r repository) []string {
	var f findings
	for _, run := range r.runs {
		t := run.Spec.Timeouts
		if t == nil {
			f.addf("PipelineRun %s: no timeouts, so that all ends after an hour", runName(run))
			continue
		}
		for what, d := range map[string]*metav1.Duration{"pipeline": t.Pipeline, "tasks": t.Tasks, "finally": t.Finally} {
			if d == nil || d.Duration <= 0 {
				f.addf("PipelineRun %s: timeouts.%s is not set", runName(run), what)
			}
		}
	}
	return f
}

func timeouts(r repository) []string {
	var f findings
	for _, run := range r.runs {
		p := r.pipelines[run.Spec.PipelineRef.Name]
		t := run.Spec.Timeouts
		if p == nil || t == nil || t.Pipeline == nil || t.Tasks == nil || t.Finally == nil {
			f.addf("PipelineRun %s: no pipeline or not all timeouts", runName(run))
			continue
		}
		if t.Tasks.Duration+t.Finally.Duration > t.Pipeline.Duration {
			f.addf("PipelineRun %s: timeouts of tasks and finally are more than that of the pipeline", runName(run))
		}
		// How long a task and all its retries may take; one without a timeout of its own
		// takes what is left.
		longest := func(task pipelinev1.PipelineTask) time.Duration {
			timeout := task.Timeout
			for _, s := range run.Spec.TaskRunSpecs {
				if s.PipelineTaskName == task.Name && s.Timeout != nil {
					timeout = s.Timeout
				}
			}
			if timeout == nil {
				return 0
			}
			return time.Duration(task.Retries+1) * timeout.Duration
		}
		deps := pipelinev1.PipelineTaskList(p.Spec.Tasks).Deps()
		var until func(name string) time.Duration
		until = func(name string) time.Duration {
			var before time.Duration
			for _, d := range deps[name] {
				before = max(before, until(d))
			}
			i := slices.IndexFunc(p.Spec.Tasks, func(t pipelinev1.PipelineTask) bool { return t.Name == name })
			return before + longest(p.Spec.Tasks[i])
		}
		for _, task := range p.Spec.Tasks {
			if d := until(task.Name); d >= t.Tasks.Duration {
				f.addf("PipelineRun %s: %s with all retries, its own and those before it, may take %v, but timeouts.tasks is %v", runName(run), task.Name, d, t.Tasks.Duration)
			}
		}
		for _, task := range p.Spec.Finally {
			if d := longest(task); d > t.Finally.Duration {
				f.addf("PipelineRun %s: %s with its retries may take %v, but timeouts.finally is %v", runName(run), task.Name, d, t.Finally.Duration)
			}
		}
	}
	return f
}

func claimTemplate(r repository) []string {
	for _, c := range r.claims {
		if _, ok := c.Spec.Resources.Requests[corev1.ResourceStorage]; ok && len(c.Spec.AccessModes) > 0 && c.Spec.VolumeName == "" {
			return nil
		}
	}
	return []string{"pv/ has no PersistentVolumeClaim with access mode and size that binds to any volume"}
}
