package doctor

import (
	"maps"
	"regexp"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
)

// params are the values of string parameters, as far as they are known before a
// run: what comes from the result of a task is not.
type params map[string]string

var paramReference = regexp.MustCompile(`\$\(params(?:\.([A-Za-z0-9_.-]+)|\[["']([^"']+)["']\])\)`)

// fill puts parameters into a value; known is false when something stays that only
// a run will know.
func (p params) fill(value string) (filled string, known bool) {
	filled = paramReference.ReplaceAllStringFunc(value, func(ref string) string {
		m := paramReference.FindStringSubmatch(ref)
		if v, ok := p[m[1]+m[2]]; ok {
			return v
		}
		return ref
	})
	return filled, !strings.Contains(filled, "$(")
}

// withDefaults adds what the specification gives as defaults.
func (p params) withDefaults(specs pipelinev1.ParamSpecs) params {
	all := params{}
	for _, s := range specs {
		if s.Default != nil && (s.Default.Type == pipelinev1.ParamTypeString || s.Default.Type == "") {
			all[s.Name] = s.Default.StringVal
		}
	}
	maps.Copy(all, p)
	return all
}

// inner are the values that a task gets from a pipeline.
func (p params) inner(given pipelinev1.Params) params {
	in := params{}
	for _, g := range given {
		if g.Value.Type != pipelinev1.ParamTypeString && g.Value.Type != "" {
			continue
		}
		if v, known := p.fill(g.Value.StringVal); known {
			in[g.Name] = v
		}
	}
	return in
}

// unknown marks parameters whose value only the run will tell, so that a default
// is not taken for it.
func (p params) without(given pipelinev1.Params) params {
	out := maps.Clone(p)
	for _, g := range given {
		delete(out, g.Name)
	}
	return out
}
