package conformance

import (
	"encoding/json"
	"slices"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
)

func pipelineRules() []rule {
	return []rule{
		{"I-45: what always runs refers to no result", finallyRefersToStatuses, [][2]string{
			{"          value: $(tasks.train.status)\n", "          value: $(tasks.train.results.loss)\n"},
			{"      taskRef: {name: report}\n", "      taskRef: {name: report}\n      when: [{input: $(tasks.train.results.loss), operator: in, values: [a]}]\n"},
		}},
		{"I-46, I-47: results come from tasks that always emit", resultsOfCertainTasks, [][2]string{
			{"      value: $(finally.report.results.verdict)\n", "      value: $(tasks.promote.results.model-uri)\n"},
			{"      runAfter: [build-image] # train\n", "      runAfter: [build-image]\n      when: [{input: $(params.corpus), operator: in, values: [a]}]\n"},
		}},
		{"the image that was built is the image that runs", builtImageRuns, [][2]string{
			{"          value: $(tasks.build-image.results.IMAGE_REF) # train\n", "          value: $(params.corpus)\n"},
			{"          value: $(tasks.build-image.results.IMAGE_REF) # promote\n", "          value: $(tasks.build-image.results.IMAGE_URL)\n"},
		}},
	}
}

func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func finallyRefersToStatuses(r repository) []string {
	var f findings
	for name, p := range each(r.pipelines) {
		if len(p.Spec.Finally) == 0 {
			f.addf("Pipeline %s: nothing is done whatever happens", name)
		}
		for _, t := range p.Spec.Finally {
			if m := resultRef.FindString(text(t)); m != "" {
				f.addf("Pipeline %s: %s refers to %s, and would be skipped where that is missing", name, t.Name, m)
			}
			if len(t.When) > 0 {
				f.addf("Pipeline %s: %s does not always run", name, t.Name)
			}
		}
	}
	return f
}

func resultsOfCertainTasks(r repository) []string {
	var f findings
	for name, p := range each(r.pipelines) {
		guarded := map[string]bool{"promote": true}
		for _, t := range p.Spec.Tasks {
			guarded[t.Name] = guarded[t.Name] || len(t.When) > 0
		}
		for _, result := range p.Spec.Results {
			for _, m := range resultRef.FindAllStringSubmatch(text(result.Value), -1) {
				if m[1] == "tasks" && guarded[m[2]] {
					f.addf("Pipeline %s: result %s comes from %s, which may not run", name, result.Name, m[2])
				}
			}
		}
	}
	return f
}

// Every task with a parameter image gets the reference by digest that the build
// pinned, or, without a build, the one that the run was given.
func builtImageRuns(r repository) []string {
	var f findings
	for name, p := range each(r.pipelines) {
		want, given := "$(params.image)", false
		for _, t := range p.Spec.Tasks {
			if t.TaskRef != nil && t.TaskRef.Name == "build-image" {
				want = "$(tasks." + t.Name + ".results.IMAGE_REF)"
			}
		}
		for _, t := range slices.Concat(p.Spec.Tasks, p.Spec.Finally) {
			i := slices.IndexFunc(t.Params, func(p pipelinev1.Param) bool { return p.Name == "image" })
			if i < 0 || t.TaskRef != nil && t.TaskRef.Name == "build-image" {
				continue // to build-image it is the name to push to
			}
			given = true
			if got := t.Params[i].Value.StringVal; got != want {
				f.addf("Pipeline %s: task %s runs image %s, want %s", name, t.Name, got, want)
			}
		}
		if !given {
			f.addf("Pipeline %s: no task runs %s", name, strings.Trim(want, "$()"))
		}
	}
	return f
}
