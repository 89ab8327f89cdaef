package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/manifest"
)

// replaceImages puts image where a field "image" is the placeholder, at any depth:
// steps, sidecars, embedded tasks, pods.
func replaceImages(node any, image string) {
	switch n := node.(type) {
	case map[string]any:
		for key, value := range n {
			if key == "image" && value == manifest.Placeholder {
				n[key] = image
				continue
			}
			replaceImages(value, image)
		}
	case []any:
		for _, value := range n {
			replaceImages(value, image)
		}
	}
}

// placeholders returns the paths of values that are the placeholder, with a tag or
// a digest or not.
func placeholders(path string, node any) []string {
	switch n := node.(type) {
	case map[string]any:
		var found []string
		for _, key := range slices.Sorted(maps.Keys(n)) {
			found = append(found, placeholders(strings.TrimPrefix(path+"."+key, "."), n[key])...)
		}
		return found
	case []any:
		var found []string
		for i, value := range n {
			found = append(found, placeholders(fmt.Sprintf("%s[%d]", path, i), value)...)
		}
		return found
	case string:
		rest, ok := strings.CutPrefix(n, manifest.Placeholder)
		// A digest is what rendering itself writes, where the registry is that one.
		if ok && (rest == "" || rest[0] == ':') {
			return []string{path}
		}
	}
	return nil
}

// at follows keys through maps; it returns nil where one is missing.
func at(node any, keys ...string) any {
	for _, key := range keys {
		m, ok := node.(map[string]any)
		if !ok {
			return nil
		}
		node = m[key]
	}
	return node
}

// list returns a list of maps, leaving out what is no map.
func list(node any) []map[string]any {
	var maps []map[string]any
	items, _ := node.([]any)
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			maps = append(maps, m)
		}
	}
	return maps
}

// references turns references by name into references to bundles.
func (o Options) references(kind string, tree map[string]any) {
	switch kind {
	case "Pipeline":
		o.pipelineSpec(at(tree, "spec"))
	case "PipelineRun":
		o.reference(at(tree, "spec"), "pipelineRef", "pipeline", o.PipelineBundle)
		o.pipelineSpec(at(tree, "spec", "pipelineSpec"))
	case "TaskRun":
		o.reference(at(tree, "spec"), "taskRef", "task", o.TaskBundle)
	case "TriggerTemplate":
		for _, t := range list(at(tree, "spec", "resourcetemplates")) {
			inner, _ := t["kind"].(string)
			o.references(inner, t)
		}
	}
}

func (o Options) pipelineSpec(spec any) {
	for _, key := range []string{"tasks", "finally"} {
		for _, task := range list(at(spec, key)) {
			o.reference(task, "taskRef", "task", o.TaskBundle)
		}
	}
}

// reference rewrites node[key] when it refers to a kind of Tekton by name.
func (o Options) reference(node any, key, kind, bundle string) {
	m, _ := node.(map[string]any)
	ref, _ := m[key].(map[string]any)
	name, _ := ref["name"].(string)
	if bundle == "" || name == "" || ref["resolver"] != nil {
		return
	}
	if k, ok := ref["kind"].(string); ok && !strings.EqualFold(k, kind) {
		return // a custom task
	}
	if v, ok := ref["apiVersion"].(string); ok && !strings.HasPrefix(v, "tekton.dev/") {
		return
	}
	param := func(name, value string) map[string]any { return map[string]any{"name": name, "value": value} }
	m[key] = map[string]any{
		"resolver": "bundles",
		"params":   []any{param("bundle", bundle), param("name", name), param("kind", kind)},
	}
}

// clusterScoped are the kinds that have no namespace, of those that a decoder knows
// and that an installation can need.
func clusterScoped(kind string) bool {
	switch kind {
	case "Namespace", "Node", "PersistentVolume", "ClusterRole", "ClusterRoleBinding", "StorageClass", "PriorityClass",
		"CSIDriver", "RuntimeClass", "IngressClass", "ClusterTriggerBinding", "ClusterInterceptor",
		"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return true
	}
	return false
}

// namespace moves an object to another namespace, and the subjects of a binding that
// are ServiceAccounts of this installation with it.
func (o Options) namespace(kind string, tree map[string]any, accounts map[string]bool) {
	meta, ok := tree["metadata"].(map[string]any)
	if !ok || o.Namespace == "" {
		return
	}
	switch {
	case kind == "Namespace":
		meta["name"] = o.Namespace
	case !clusterScoped(kind):
		meta["namespace"] = o.Namespace
	}
	for _, subject := range list(tree["subjects"]) {
		name, _ := subject["name"].(string)
		if subject["kind"] == "ServiceAccount" && accounts[name] {
			subject["namespace"] = o.Namespace
		}
	}
}
