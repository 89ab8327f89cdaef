package conformance

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/trainyard/trainyard/internal/typehint"
)

func resultRules() []rule {
	return []rule{
		{"I-20: results of all steps fit into a pod's messages", resultBudget, [][2]string{
			{"    - name: export\n", manySteps(12) + "    - name: export\n"},
		}},
		{"I-54: results pair as Chains reads them", hintsPair, [][2]string{
			{"    - name: IMAGE_DIGEST\n      description: Digest of the image.\n", "    - name: IMAGE_SHA\n      description: Digest of the image.\n"},
			{"        uri: {type: string}\n", ""},
			{"    - name: CHAINS-GIT_COMMIT\n      description: Commit of the source.\n", "    - name: CHAINS-GIT-COMMIT\n      description: Commit of the source.\n"},
		}},
		{"I-54: pipelines repeat the hints of their tasks", hintsRepeated, [][2]string{
			{"      value: $(tasks.build-image.results.IMAGE_DIGEST)\n", "      value: $(tasks.build-image.results.IMAGE_URL)\n"},
			{"    - name: MODEL_ARTIFACT_OUTPUTS # of the pipeline\n", "    - name: model\n"},
		}},
	}
}

// A step's message may take 1 KiB: the writers of results, ours and the trainer's,
// refuse more. Kubernetes keeps 12 KiB for all containers of a pod, and shares them
// out evenly.
const (
	stepBudget = 1 << 10
	podBudget  = 12 << 10
)

func manySteps(n int) string {
	return strings.Repeat("    - name: more\n      image: $(params.builder-image)\n      command: [/more]\n", n)
}

func resultBudget(r repository) []string {
	var f findings
	for name, t := range each(r.tasks) {
		// Tekton's own first container, prepare, takes part.
		containers := 1 + len(t.Spec.Steps) + len(t.Spec.Sidecars)
		if containers*stepBudget > podBudget {
			f.addf("Task %s: %d containers leave each %d bytes for results, less than %d", name, containers, podBudget/containers, stepBudget)
		}
	}
	return f
}

// sampleResults gives each declared result a value of the kind that its name and type
// promise. What then does not pair cannot pair in a run either.
func sampleResults(results []pipelinev1.TaskResult) []typehint.Result {
	const sum = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	value := func(name string) string {
		switch name = strings.ToLower(name); {
		case strings.HasSuffix(name, "digest"):
			return sum
		case strings.HasSuffix(name, "url"), strings.HasSuffix(name, "uri"):
			return "example.com/app"
		}
		return "value"
	}
	var all []typehint.Result
	for _, r := range results {
		one := typehint.Result{Name: r.Name, Text: value(r.Name)}
		if r.Type == pipelinev1.ResultsTypeObject {
			one.Object = map[string]string{}
			for key := range r.Properties {
				one.Object[key] = value(key)
			}
		}
		all = append(all, one)
	}
	return all
}

func hintsPair(r repository) []string {
	var f findings
	images, models, sources := 0, 0, 0
	for name, t := range each(r.tasks) {
		hints, problems := typehint.Extract(sampleResults(t.Spec.Results))
		for _, p := range problems {
			f.addf("Task %s: result %s", name, p)
		}
		images, models, sources = images+len(hints.Images), models+len(hints.Outputs), sources+len(hints.Git)
	}
	if images == 0 || models == 0 || sources == 0 {
		f.addf("Chains would find %d images, %d models and %d sources, want one of each at least", images, models, sources)
	}
	return f
}

// isHint tells whether Chains reads a result of this name.
func isHint(name string) bool {
	for _, suffix := range []string{"IMAGE_URL", "IMAGE_DIGEST", "ARTIFACT_OUTPUTS", "ARTIFACT_INPUTS"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return name == "IMAGES" || name == "CHAINS-GIT_URL" || name == "CHAINS-GIT_COMMIT"
}

// resultRef matches a reference to a result; the result's name ends before a key or
// an index.
var resultRef = regexp.MustCompile(`\$\((tasks|finally)\.([^.()]+)\.results\.([^.()\[]+)([^()]*)\)`)

func hintsRepeated(r repository) []string {
	var f findings
	for name, p := range each(r.pipelines) {
		repeated := map[string]string{} // what a pipeline result hands on, to its name
		names := map[string]bool{}
		for _, result := range p.Spec.Results {
			names[result.Name] = true
			if m := resultRef.FindStringSubmatch(result.Value.StringVal); m != nil {
				repeated[m[2]+"."+m[3]] = result.Name
			}
		}
		for _, t := range slices.Concat(p.Spec.Tasks, p.Spec.Finally) {
			if t.TaskRef == nil || r.tasks[t.TaskRef.Name] == nil {
				continue
			}
			for _, result := range r.tasks[t.TaskRef.Name].Spec.Results {
				as, ok := repeated[t.Name+"."+result.Name]
				switch {
				case !isHint(result.Name), !ok && names[result.Name]:
					// None, or an earlier task says the same of the same thing.
				case !ok:
					f.addf("Pipeline %s: does not repeat the result %s of task %s", name, result.Name, t.Name)
				case as != result.Name:
					f.addf("Pipeline %s: repeats the result %s of task %s as %s", name, result.Name, t.Name, as)
				}
			}
		}
		// What the pipeline says must pair on its own.
		var results []pipelinev1.TaskResult
		for _, result := range p.Spec.Results {
			results = append(results, pipelinev1.TaskResult{Name: result.Name, Type: result.Type, Properties: propertiesOf(r, p, result)})
		}
		_, problems := typehint.Extract(sampleResults(results))
		for _, problem := range problems {
			f.addf("Pipeline %s: result %s", name, problem)
		}
	}
	return f
}

// propertiesOf finds the keys of an object that a pipeline result hands on.
func propertiesOf(r repository, p *pipelinev1.Pipeline, result pipelinev1.PipelineResult) map[string]pipelinev1.PropertySpec {
	if keys := slices.Collect(maps.Keys(result.Value.ObjectVal)); len(keys) > 0 {
		properties := map[string]pipelinev1.PropertySpec{}
		for _, key := range keys {
			properties[key] = pipelinev1.PropertySpec{Type: pipelinev1.ParamTypeString}
		}
		return properties
	}
	m := resultRef.FindStringSubmatch(result.Value.StringVal)
	if m == nil {
		return nil
	}
	for _, t := range slices.Concat(p.Spec.Tasks, p.Spec.Finally) {
		if t.Name != m[2] || t.TaskRef == nil || r.tasks[t.TaskRef.Name] == nil {
			continue
		}
		for _, declared := range r.tasks[t.TaskRef.Name].Spec.Results {
			if declared.Name == m[3] {
				return declared.Properties
			}
		}
	}
	return nil
}
