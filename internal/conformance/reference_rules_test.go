package conformance

import (
	"slices"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
)

// Tekton validates objects one by one; these look across them, at what a controller
// would find out when a run exists.
func referenceRules() []rule {
	return []rule{
		{"pipelines and tasks agree", pipelinesMatchTasks, [][2]string{
			{"        - name: max-iters\n", "        - name: max-iter\n"},
			{"        - {name: app-image, value: $(params.app-image)}\n", ""},
			{"          value: [\"--a\"]\n", "          value: a\n"},
			{"      taskRef: {name: report}\n", "      taskRef: {name: reports}\n"},
			{"        - {name: shared, workspace: shared} # train\n", ""},
			{"      value: $(tasks.build-image.results.IMAGE_REF) # of the pipeline\n", "      value: $(tasks.build-image.results.IMAGE)\n"},
		}},
		{"runs and pipelines agree", runsMatchPipelines, [][2]string{
			{"    name: train-and-promote # of the run\n", "    name: train\n"},
			{"    - {name: app-image, value: registry.example/app}\n", ""},
			{"    - {name: app-image, value: registry.example/app}\n", "    - {name: app-image, value: registry.example/app}\n    - {name: colour, value: red}\n"},
			{"    - name: shared # of the run\n", "    - name: share\n"},
			{"    - pipelineTaskName: train\n", "    - pipelineTaskName: training\n"},
			{"    serviceAccountName: trainyard-train\n", "    serviceAccountName: default\n"},
			{"      serviceAccountName: trainyard-build\n", "      serviceAccountName: builder\n"},
		}},
		{"I-73: a run needs no question answered", noQuestions, [][2]string{
			{"    - {name: corpus, description: The corpus., default: store:corpora/a.txt}\n", "    - {name: corpus, description: The corpus.}\n"},
		}},
	}
}

// checkParams compares what is passed with what is declared.
func checkParams(f *findings, who string, passed pipelinev1.Params, declared pipelinev1.ParamSpecs) {
	for _, p := range passed {
		i := slices.IndexFunc(declared, func(d pipelinev1.ParamSpec) bool { return d.Name == p.Name })
		if i < 0 {
			f.addf("%s: passes the parameter %s, which does not exist", who, p.Name)
			continue
		}
		want := declared[i].Type
		if want == "" {
			want = pipelinev1.ParamTypeString
		}
		// A whole array or object is handed on as one reference in a string.
		whole := p.Value.Type == pipelinev1.ParamTypeString && len(p.Value.StringVal) > 4 && p.Value.StringVal[:2] == "$(" && p.Value.StringVal[len(p.Value.StringVal)-4:] == "[*])"
		if p.Value.Type != want && !whole {
			f.addf("%s: parameter %s is of type %s, want %s", who, p.Name, p.Value.Type, want)
		}
	}
	for _, d := range declared {
		given := slices.ContainsFunc(passed, func(p pipelinev1.Param) bool { return p.Name == d.Name })
		if d.Default == nil && !given {
			f.addf("%s: does not pass the parameter %s, which has no default", who, d.Name)
		}
	}
}

func pipelinesMatchTasks(r repository) []string {
	var f findings
	for name, p := range each(r.pipelines) {
		taskOf := map[string]*pipelinev1.Task{}
		all := slices.Concat(p.Spec.Tasks, p.Spec.Finally)
		for _, t := range all {
			who := "Pipeline " + name + ", task " + t.Name
			if t.TaskRef == nil || r.tasks[t.TaskRef.Name] == nil {
				f.addf("%s: there is no such task in tasks/", who)
				continue
			}
			task := r.tasks[t.TaskRef.Name]
			taskOf[t.Name] = task
			checkParams(&f, who, t.Params, task.Spec.Params)
			for _, w := range task.Spec.Workspaces {
				bound := slices.ContainsFunc(t.Workspaces, func(b pipelinev1.WorkspacePipelineTaskBinding) bool { return b.Name == w.Name })
				if !w.Optional && !bound {
					f.addf("%s: does not bind the workspace %s", who, w.Name)
				}
			}
			for _, b := range t.Workspaces {
				if !slices.ContainsFunc(task.Spec.Workspaces, func(w pipelinev1.WorkspaceDeclaration) bool { return w.Name == b.Name }) {
					f.addf("%s: binds the workspace %s, which does not exist", who, b.Name)
				}
			}
		}
		for _, m := range resultRef.FindAllStringSubmatch(text(p.Spec), -1) {
			task := taskOf[m[2]]
			if task == nil || !slices.ContainsFunc(task.Spec.Results, func(r pipelinev1.TaskResult) bool { return r.Name == m[3] }) {
				f.addf("Pipeline %s: refers to %s, which no task has", name, m[0])
			}
		}
	}
	return f
}

func runsMatchPipelines(r repository) []string {
	var f findings
	for _, run := range r.runs {
		who := "PipelineRun " + runName(run)
		if run.Spec.PipelineRef == nil || r.pipelines[run.Spec.PipelineRef.Name] == nil {
			f.addf("%s: there is no such pipeline in pipelines/", who)
			continue
		}
		p := r.pipelines[run.Spec.PipelineRef.Name]
		checkParams(&f, who, run.Spec.Params, p.Spec.Params)
		for _, w := range p.Spec.Workspaces {
			if !w.Optional && !slices.ContainsFunc(run.Spec.Workspaces, func(b pipelinev1.WorkspaceBinding) bool { return b.Name == w.Name }) {
				f.addf("%s: does not bind the workspace %s", who, w.Name)
			}
		}
		for _, b := range run.Spec.Workspaces {
			if !slices.ContainsFunc(p.Spec.Workspaces, func(w pipelinev1.PipelineWorkspaceDeclaration) bool { return w.Name == b.Name }) {
				f.addf("%s: binds the workspace %s, which does not exist", who, b.Name)
			}
		}
		for _, s := range run.Spec.TaskRunSpecs {
			if !slices.ContainsFunc(slices.Concat(p.Spec.Tasks, p.Spec.Finally), func(t pipelinev1.PipelineTask) bool { return t.Name == s.PipelineTaskName }) {
				f.addf("%s: taskRunSpecs name the task %s, which does not exist", who, s.PipelineTaskName)
			}
			if s.ServiceAccountName != "" && r.accounts[s.ServiceAccountName] == nil {
				f.addf("%s: there is no ServiceAccount %s in sa/", who, s.ServiceAccountName)
			}
		}
		if r.accounts[run.Spec.TaskRunTemplate.ServiceAccountName] == nil {
			f.addf("%s: there is no ServiceAccount %q in sa/", who, run.Spec.TaskRunTemplate.ServiceAccountName)
		}
	}
	return f
}

// asked are the parameters for which there is no sensible default.
func asked() []string { return []string{"image", "app-image", "builder-image", "url"} }

func noQuestions(r repository) []string {
	var f findings
	for name, p := range each(r.pipelines) {
		for _, param := range p.Spec.Params {
			if param.Default == nil && !slices.Contains(asked(), param.Name) {
				f.addf("Pipeline %s: parameter %s has no default, so that tkn pipeline start asks for it", name, param.Name)
			}
		}
	}
	return f
}
