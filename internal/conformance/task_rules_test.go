package conformance

import (
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/toolimage"
)

func taskRules() []rule {
	return []rule{
		{"catalog: tasks and pipelines carry what the catalog expects", catalogMetadata, [][2]string{
			{"    tekton.dev/tags: llm, training\n", ""},
			{"  displayName: Train\n", ""},
			{"  displayName: Train and promote\n", ""},
			{"    app.kubernetes.io/version: \"0.1\" # of the pipeline\n", ""},
		}},
		{"I-73: every parameter, workspace and result is described", described, [][2]string{
			{"      description: Updates in all.\n", ""},
			{"      description: Volume of the run.\n", ""},
			{"      description: Repository of the image.\n", ""},
			{"{name: corpus, description: The corpus., default: store:corpora/a.txt}", "{name: corpus, default: store:corpora/a.txt}"},
			{"      description: Volume that all tasks share.\n", ""},
			{"      description: What the gate said.\n", ""},
		}},
		{"I-03, I-04: no user is set, each image's own applies", noUser, [][2]string{
			{"      runAsNonRoot: true # train\n", "      runAsNonRoot: true\n      runAsUser: 1000\n"},
			{"      command: [/cnb/lifecycle/exporter]\n", "      command: [/cnb/lifecycle/exporter]\n      securityContext: {runAsGroup: 1000}\n"},
			{"        fsGroup: 1000\n", "        fsGroup: 1000\n        runAsUser: 1001\n"},
		}},
		{"I-11: a task binds one volume at most", oneVolume, [][2]string{
			{"    - name: ca\n      optional: true\n", "    - name: ca\n"},
			{"      optional: true\n      readOnly: true\n", "      optional: true\n"},
		}},
		{"I-28: no working directory, which Tekton would make without group write", noWorkingDir, [][2]string{
			{"      command: [/cnb/lifecycle/exporter]\n", "      command: [/cnb/lifecycle/exporter]\n      workingDir: $(workspaces.shared.path)/source\n"},
		}},
		{"I-38: one step of a task asks for resources", resourcesOnce, [][2]string{
			{"      command: [/cnb/lifecycle/exporter]\n", "      command: [/cnb/lifecycle/exporter]\n      computeResources: {requests: {cpu: 1}}\n"},
			{"  stepTemplate: # build-image\n", "  stepTemplate:\n    computeResources: {requests: {cpu: 1}}\n"},
		}},
		{"I-40, I-42: every step says what it runs, so that no controller asks a registry", commands, [][2]string{
			{"      command: [/cnb/lifecycle/exporter]\n", ""},
		}},
		{"I-42: images are pinned, or one parameter", pinnedImages, [][2]string{
			{"      image: $(params.builder-image)\n", "      image: paketobuildpacks/builder-jammy-tiny:latest\n"},
		}},
		{"I-50: training is one step", trainIsOneStep, [][2]string{
			{"      command: [/cnb/process/trainer]\n", "      command: [/cnb/process/trainer]\n    - name: more\n      image: $(params.image)\n      command: [/cnb/process/trainer]\n"},
		}},
		{"programs: each image runs its own program", programs, [][2]string{
			{"      command: [/usr/local/bin/yard]\n", "      command: [/usr/bin/yard]\n"},
			{"      command: [/cnb/process/trainer]\n", "      command: [/trainer]\n"},
		}},
		{"security: steps have no privilege, and say so", securityContext, [][2]string{
			{"      readOnlyRootFilesystem: true # train\n", ""},
			{"        drop: [ALL] # train\n", "        drop: [NET_RAW]\n"},
		}},
		{"I-68: objects are small enough for every resolver", smallObjects, [][2]string{
			{"  description: Trains a model.\n", "  description: " + strings.Repeat("Trains a model. ", 2000) + "\n"},
		}},
	}
}

func catalogMetadata(r repository) []string {
	var f findings
	check := func(kind string, m *metav1.ObjectMeta, displayName, description string) {
		for _, key := range []string{"app.kubernetes.io/version", "app.kubernetes.io/part-of"} {
			if m.Labels[key] == "" {
				f.addf("%s %s: no label %s", kind, m.Name, key)
			}
		}
		for _, key := range []string{"pipelines.minVersion", "categories", "tags", "displayName", "platforms"} {
			if m.Annotations["tekton.dev/"+key] == "" {
				f.addf("%s %s: no annotation tekton.dev/%s", kind, m.Name, key)
			}
		}
		if displayName == "" || displayName != m.Annotations["tekton.dev/displayName"] {
			f.addf("%s %s: displayName %q, annotation %q", kind, m.Name, displayName, m.Annotations["tekton.dev/displayName"])
		}
		if description == "" {
			f.addf("%s %s: no description", kind, m.Name)
		}
	}
	for _, t := range each(r.tasks) {
		check("Task", &t.ObjectMeta, t.Spec.DisplayName, t.Spec.Description)
	}
	for _, p := range each(r.pipelines) {
		check("Pipeline", &p.ObjectMeta, p.Spec.DisplayName, p.Spec.Description)
	}
	return f
}

func described(r repository) []string {
	var f findings
	check := func(what, name, description string) {
		if strings.TrimSpace(description) == "" {
			f.addf("%s: %s has no description", what, name)
		}
	}
	for name, t := range each(r.tasks) {
		for _, p := range t.Spec.Params {
			check("Task "+name, "parameter "+p.Name, p.Description)
		}
		for _, w := range t.Spec.Workspaces {
			check("Task "+name, "workspace "+w.Name, w.Description)
		}
		for _, s := range t.Spec.Results {
			check("Task "+name, "result "+s.Name, s.Description)
		}
	}
	for name, p := range each(r.pipelines) {
		for _, param := range p.Spec.Params {
			check("Pipeline "+name, "parameter "+param.Name, param.Description)
		}
		for _, w := range p.Spec.Workspaces {
			check("Pipeline "+name, "workspace "+w.Name, w.Description)
		}
		for _, s := range p.Spec.Results {
			check("Pipeline "+name, "result "+s.Name, s.Description)
		}
	}
	return f
}

func noUser(r repository) []string {
	var f findings
	for name, t := range each(r.tasks) {
		if c := t.Spec.StepTemplate; c != nil && c.SecurityContext != nil && (c.SecurityContext.RunAsUser != nil || c.SecurityContext.RunAsGroup != nil) {
			f.addf("Task %s: stepTemplate sets a user or group", name)
		}
		for _, s := range t.Spec.Steps {
			if c := s.SecurityContext; c != nil && (c.RunAsUser != nil || c.RunAsGroup != nil) {
				f.addf("Task %s: step %s sets a user or group", name, s.Name)
			}
		}
		for _, s := range t.Spec.Sidecars {
			if c := s.SecurityContext; c != nil && (c.RunAsUser != nil || c.RunAsGroup != nil) {
				f.addf("Task %s: sidecar %s sets a user or group", name, s.Name)
			}
		}
	}
	for _, run := range r.runs {
		for _, p := range podTemplates(run) {
			if c := p.SecurityContext; c != nil && (c.RunAsUser != nil || c.RunAsGroup != nil) {
				f.addf("PipelineRun %s: a podTemplate sets a user or group", runName(run))
			}
		}
	}
	return f
}

func oneVolume(r repository) []string {
	var f findings
	for name, t := range each(r.tasks) {
		var volumes []string
		for _, w := range t.Spec.Workspaces {
			if !w.Optional || !w.ReadOnly { // else for a Secret or ConfigMap
				volumes = append(volumes, w.Name)
			}
		}
		if len(volumes) > 1 {
			f.addf("Task %s: workspaces %v may all be volumes, and a TaskRun with two is refused", name, volumes)
		}
	}
	return f
}

func noWorkingDir(r repository) []string {
	var f findings
	for name, t := range each(r.tasks) {
		for _, s := range t.Spec.Steps {
			if s.WorkingDir != "" {
				f.addf("Task %s: step %s has a workingDir", name, s.Name)
			}
		}
		if t.Spec.StepTemplate != nil && t.Spec.StepTemplate.WorkingDir != "" {
			f.addf("Task %s: stepTemplate has a workingDir", name)
		}
	}
	return f
}

func resourcesOnce(r repository) []string {
	var f findings
	for name, t := range each(r.tasks) {
		var steps []string
		for _, s := range t.Spec.Steps {
			if len(s.ComputeResources.Requests)+len(s.ComputeResources.Limits) > 0 {
				steps = append(steps, s.Name)
			}
		}
		if c := t.Spec.StepTemplate; c != nil && len(c.ComputeResources.Requests)+len(c.ComputeResources.Limits) > 0 {
			steps = append(steps, "stepTemplate")
		}
		if len(steps) > 1 || len(steps) == 1 && steps[0] == "stepTemplate" {
			f.addf("Task %s: resources on %v; a pod's requests are those of its steps together", name, steps)
		}
	}
	return f
}

func commands(r repository) []string {
	var f findings
	for name, t := range each(r.tasks) {
		for _, s := range t.Spec.Steps {
			if len(s.Command) == 0 {
				f.addf("Task %s: step %s has no command", name, s.Name)
			}
		}
	}
	return f
}

func pinnedImages(r repository) []string {
	if err := manifest.CheckImages(true, r.objects...); err != nil {
		return []string{err.Error()}
	}
	return nil
}

func trainIsOneStep(r repository) []string {
	train, ok := r.tasks["train"]
	if !ok {
		return []string{"there is no Task train"}
	}
	if n := len(train.Spec.Steps) + len(train.Spec.Sidecars); n != 1 {
		return []string{"Task train: has more than one container, and a TaskRun whose first ends by a kill hangs"}
	}
	return nil
}

func programs(r repository) []string {
	own := map[string][]string{
		manifest.Placeholder: {toolimage.Program, toolimage.Trainer},
		"$(params.image)":    {"/cnb/process/trainer"},
	}
	var f findings
	for name, t := range each(r.tasks) {
		for _, s := range t.Spec.Steps {
			want, ok := own[s.Image]
			if ok && (len(s.Command) != 1 || !contains(want, s.Command[0])) {
				f.addf("Task %s: step %s runs %v of %s, want one of %v", name, s.Name, s.Command, s.Image, want)
			}
		}
	}
	return f
}

func securityContext(r repository) []string {
	var f findings
	for name, t := range each(r.tasks) {
		steps, err := pipelinev1.MergeStepsWithStepTemplate(t.Spec.StepTemplate, append([]pipelinev1.Step(nil), t.Spec.Steps...))
		if err != nil {
			f.addf("Task %s: %v", name, err)
			continue
		}
		for _, s := range steps {
			c := s.SecurityContext
			switch {
			case c == nil:
				f.addf("Task %s: step %s has no securityContext", name, s.Name)
			case (c.ReadOnlyRootFilesystem == nil || !*c.ReadOnlyRootFilesystem) && s.Image != "$(params.builder-image)": // buildpacks write
				f.addf("Task %s: step %s may write to its root file system", name, s.Name)
			case c.Capabilities == nil || len(c.Capabilities.Drop) != 1 || c.Capabilities.Drop[0] != "ALL":
				f.addf("Task %s: step %s keeps capabilities", name, s.Name)
			}
		}
	}
	return f
}

// Resolvers before tektoncd/pipeline#8388 was mended read 32 KiB of a layer and took
// the rest for zeros; the tar's header is part of it. Small objects work with all.
const maxObjectBytes = 30 << 10

func smallObjects(r repository) []string {
	var f findings
	for _, o := range r.objects {
		// The placeholder and names in place of bundles grow when rendered; see files_test.go.
		if len(o.JSON) > maxObjectBytes {
			f.addf("%s: %s has %d bytes, more than %d", o.File, o, len(o.JSON), maxObjectBytes)
		}
	}
	return f
}
