package tekton

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Group is a set of objects to apply together, before the next group is.
type Group struct {
	// Name is one of Definitions, Configuration, Workloads, Resources.
	Name string
	// Objects are in the order in which to apply them.
	Objects []*unstructured.Unstructured
}

// The groups, in their order.
const (
	// Definitions are namespaces and custom resource definitions: wait until the
	// latter are established.
	Definitions = "definitions"
	// Configuration is what the workloads read when they start.
	Configuration = "configuration"
	// Workloads are deployments and their webhooks: wait until they are available.
	Workloads = "workloads"
	// Resources are objects of the kinds that Definitions define. The webhooks
	// check them, and refuse them until they run.
	Resources = "resources"
)

// order returns the kinds of a group in the order in which they are applied;
// those that it does not name come last.
func order(groupName string) []string {
	switch groupName {
	case Definitions:
		return []string{"Namespace", "CustomResourceDefinition"}
	case Configuration:
		return []string{"ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding", "ConfigMap", "Secret", "Service"}
	case Workloads:
		return []string{"Deployment", "HorizontalPodAutoscaler", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
	}
	return nil
}

// YAML returns the group as one stream of documents, the same bytes for the same
// objects.
func (g Group) YAML() ([]byte, error) {
	var stream bytes.Buffer
	for _, one := range g.Objects {
		document, err := yaml.Marshal(one.Object)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", one.GetKind(), one.GetName(), err)
		}
		stream.WriteString("---\n")
		stream.Write(document)
	}
	return stream.Bytes(), nil
}

// group sorts objects into the four groups. One object given twice is an error:
// the second would undo the first.
func group(objects []object) ([]Group, error) {
	type identity struct {
		kind            schema.GroupKind
		namespace, name string
	}
	files := make(map[identity]string)
	custom := make(map[string]bool) // API groups that the definitions define
	for _, one := range objects {
		id := identity{one.GroupVersionKind().GroupKind(), one.GetNamespace(), one.GetName()}
		if first, twice := files[id]; twice {
			return nil, fmt.Errorf("%s %s is in %s and in %s", one.GetKind(), one.GetName(), first, one.file)
		}
		files[id] = one.file
		if one.GetKind() == "CustomResourceDefinition" {
			apiGroup, _, err := unstructured.NestedString(one.Object, "spec", "group")
			if err != nil {
				return nil, fmt.Errorf("%s: %w", one.file, err)
			}
			custom[apiGroup] = true
		}
	}
	groups := []Group{{Name: Definitions}, {Name: Configuration}, {Name: Workloads}, {Name: Resources}}
	for _, one := range objects {
		at := slices.IndexFunc(groups, func(g Group) bool { return g.Name == groupOf(one, custom) })
		groups[at].Objects = append(groups[at].Objects, one.Unstructured)
	}
	for _, g := range groups {
		slices.SortFunc(g.Objects, func(a, b *unstructured.Unstructured) int {
			return cmp.Or(
				cmp.Compare(rank(g.Name, a.GetKind()), rank(g.Name, b.GetKind())),
				cmp.Compare(a.GetKind(), b.GetKind()),
				cmp.Compare(a.GetNamespace(), b.GetNamespace()),
				cmp.Compare(a.GetName(), b.GetName()))
		})
	}
	return groups, nil
}

func groupOf(one object, custom map[string]bool) string {
	switch {
	case custom[one.GroupVersionKind().Group]:
		return Resources
	case slices.Contains(order(Definitions), one.GetKind()):
		return Definitions
	case slices.Contains(order(Workloads), one.GetKind()):
		return Workloads
	}
	return Configuration
}

func rank(groupName, kind string) int {
	known := order(groupName)
	if at := slices.Index(known, kind); at >= 0 {
		return at
	}
	return len(known)
}
