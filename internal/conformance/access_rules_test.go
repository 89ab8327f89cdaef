package conformance

import (
	"encoding/json"
	"slices"

	triggersv1beta1 "github.com/tektoncd/triggers/pkg/apis/triggers/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/trainyard/trainyard/internal/manifest"
)

func accessRules() []rule {
	return []rule{
		{"steps have no rights in the cluster", noRights, [][2]string{
			{"automountServiceAccountToken: false # build\n", ""},
			{"subjects: [{kind: ServiceAccount, name: somebody, namespace: trainyard}]\n", "subjects: [{kind: ServiceAccount, name: trainyard-train, namespace: trainyard}]\n"},
		}},
		{"secrets are examples without values", emptySecrets, [][2]string{
			{"  access-key-id: \"\"\n", "  access-key-id: AKIA\n"},
			{`"password": ""`, `"password": "hunter2"`},
		}},
		{"I-77: an event listener may read what it needs, in the namespace and in the cluster", listenerRights, [][2]string{
			{"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tekton-triggers-eventlistener-clusterroles}\n", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\n"},
			{"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tekton-triggers-eventlistener-roles}\n", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\n"},
			{"  serviceAccountName: listener\n", ""},
			{"subjects: [{kind: ServiceAccount, name: own-listener, namespace: trainyard}] # namespace\n", "subjects: [{kind: ServiceAccount, name: other, namespace: trainyard}]\n"},
			{"subjects: [{kind: ServiceAccount, name: own-listener, namespace: trainyard}] # cluster\n", "subjects: [{kind: ServiceAccount, name: other, namespace: trainyard}]\n"},
			{"    resources: [eventlisteners, triggers, triggerbindings, triggertemplates, interceptors]\n", "    resources: [eventlisteners, triggers, triggerbindings, triggertemplates]\n"},
			{"    resources: [pipelineruns] # of the listener\n", "    resources: [taskruns]\n"},
			{"    resources: [clustertriggerbindings, clusterinterceptors]\n", "    resources: [clusterinterceptors]\n"},
			{"    verbs: [get, list, watch] # of the cluster\n", "    verbs: [get, list]\n"},
			{"    verbs: [get, list, watch] # of the namespace\n", "    verbs: [get, list, watch]\n    resourceNames: [push]\n"},
		}},
		{"roles give neither secrets nor everything", leastRights, [][2]string{
			{"    resources: [clustertriggerbindings, clusterinterceptors]\n", "    resources: [clustertriggerbindings, clusterinterceptors, secrets]\n"},
			{"    verbs: [get, list, watch] # of the cluster\n", "    verbs: [\"*\"]\n"},
			{"    verbs: [create] # of the listener\n", "    verbs: [create, impersonate]\n"},
			{"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: something}\n", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n"},
		}},
		{"bindings follow their accounts into any namespace", freeBindings, [][2]string{
			{"subjects: [{kind: ServiceAccount, name: trainyard-helper}]\n", "subjects: [{kind: ServiceAccount, name: trainyard-helper, namespace: trainyard}]\n"},
		}},
		{"the names that everybody relies on", names, [][2]string{
			{"metadata: {name: s3-credentials}\n", "metadata: {name: s3-credential}\n"},
			{"  secret-access-key: \"\"\n", ""},
			{"metadata: {name: trainyard-train}\n", "metadata: {name: trainer}\n"},
		}},
	}
}

func noRights(r repository) []string {
	var f findings
	steps := map[string]bool{} // accounts that steps run as
	for _, run := range r.runs {
		steps[run.Spec.TaskRunTemplate.ServiceAccountName] = true
		for _, s := range run.Spec.TaskRunSpecs {
			steps[s.ServiceAccountName] = true
		}
	}
	for name, a := range each(r.accounts) {
		if !steps[name] {
			continue
		}
		if a.AutomountServiceAccountToken == nil || *a.AutomountServiceAccountToken {
			f.addf("ServiceAccount %s: its token is mounted into every step", name)
		}
	}
	for _, o := range r.objects {
		b, _ := bindingOf(o)
		for _, s := range b.subjects {
			if s.Kind == "ServiceAccount" && steps[s.Name] {
				f.addf("%s: %s gives rights to %s, whose steps run code of users", o.File, o, s.Name)
			}
		}
	}
	return f
}

// listenerNeeds is what the listener of Triggers v0.37 asks for, read in its source: it
// follows objects of its namespace and of the cluster (without the latter its pod ends
// again and again), and creates what templates say, here runs.
func listenerNeeds() map[string][]rbacv1.PolicyRule {
	look := []string{"get", "list", "watch"}
	return map[string][]rbacv1.PolicyRule{
		"RoleBinding": {
			{APIGroups: []string{"triggers.tekton.dev"}, Resources: []string{"eventlisteners", "triggers", "triggerbindings", "triggertemplates", "interceptors"}, Verbs: look},
			{APIGroups: []string{"tekton.dev"}, Resources: []string{"pipelineruns"}, Verbs: []string{"create"}},
		},
		"ClusterRoleBinding": {
			{APIGroups: []string{"triggers.tekton.dev"}, Resources: []string{"clustertriggerbindings", "clusterinterceptors"}, Verbs: look},
		},
	}
}

// tektonRoles are Triggers' own, which give more than that.
func tektonRoles() map[string]string {
	return map[string]string{"RoleBinding": "tekton-triggers-eventlistener-roles", "ClusterRoleBinding": "tekton-triggers-eventlistener-clusterroles"}
}

// binding is a RoleBinding or a ClusterRoleBinding.
type binding struct {
	kind     string
	role     rbacv1.RoleRef
	subjects []rbacv1.Subject
}

func bindingOf(o manifest.Object) (binding, bool) {
	switch b := o.Typed.(type) {
	case *rbacv1.RoleBinding:
		return binding{o.Kind.Kind, b.RoleRef, b.Subjects}, true
	case *rbacv1.ClusterRoleBinding:
		return binding{o.Kind.Kind, b.RoleRef, b.Subjects}, true
	}
	return binding{}, false
}

// given are the rules that an account has by bindings of one kind.
func given(r repository, kind, account string) (rules []rbacv1.PolicyRule, roles []string) {
	defined := map[string][]rbacv1.PolicyRule{}
	for _, o := range r.objects {
		switch role := o.Typed.(type) {
		case *rbacv1.Role:
			defined["Role "+role.Name] = role.Rules
		case *rbacv1.ClusterRole:
			defined["ClusterRole "+role.Name] = role.Rules
		}
	}
	for _, o := range r.objects {
		b, ok := bindingOf(o)
		if !ok || b.kind != kind {
			continue
		}
		if slices.ContainsFunc(b.subjects, func(s rbacv1.Subject) bool { return s.Kind == "ServiceAccount" && s.Name == account }) {
			roles = append(roles, b.role.Name)
			rules = append(rules, defined[b.role.Kind+" "+b.role.Name]...)
		}
	}
	return rules, roles
}

// allows tells whether rules permit a verb on all objects of a resource.
func allows(rules []rbacv1.PolicyRule, group, resource, verb string) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb) && len(r.ResourceNames) == 0
	})
}

// listenerRights looks for both bindings of each listener's account, to Triggers' roles
// or to roles that give what the listener needs.
func listenerRights(r repository) []string {
	var f findings
	for _, o := range r.objects {
		l, ok := o.Typed.(*triggersv1beta1.EventListener)
		if !ok {
			continue
		}
		for kind, needs := range listenerNeeds() {
			rules, roles := given(r, kind, l.Spec.ServiceAccountName)
			if slices.Contains(roles, tektonRoles()[kind]) {
				continue
			}
			if len(roles) == 0 {
				f.addf("EventListener %s: no %s of its ServiceAccount %q", l.Name, kind, l.Spec.ServiceAccountName)
			}
			for _, need := range needs {
				for _, resource := range need.Resources {
					for _, verb := range need.Verbs {
						if !allows(rules, need.APIGroups[0], resource, verb) {
							f.addf("EventListener %s: no %s lets it %s %s.%s", l.Name, kind, verb, resource, need.APIGroups[0])
						}
					}
				}
			}
		}
	}
	return f
}

// leastRights looks for what no account of ours may do, least of all one that answers
// the internet: read secrets, act as another, or whatever a wildcard allows.
func leastRights(r repository) []string {
	var f findings
	for _, o := range r.objects {
		var rules []rbacv1.PolicyRule
		switch role := o.Typed.(type) {
		case *rbacv1.Role:
			rules = role.Rules
		case *rbacv1.ClusterRole:
			rules = role.Rules
		}
		for _, rule := range rules {
			if slices.Contains(rule.Resources, "secrets") && len(rule.ResourceNames) == 0 {
				f.addf("%s: %s gives every secret", o.File, o)
			}
			for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
				if word == "*" || word == "impersonate" || word == "escalate" || word == "bind" {
					f.addf("%s: %s gives %q", o.File, o, word)
				}
			}
		}
		if b, ok := bindingOf(o); ok && b.role.Name == "cluster-admin" {
			f.addf("%s: %s gives everything", o.File, o)
		}
	}
	return f
}

// freeBindings looks for namespaces in bindings of accounts that are installed with them:
// kustomize leaves such a subject where it is when it moves the account.
func freeBindings(r repository) []string {
	var f findings
	for _, o := range r.objects {
		b, _ := bindingOf(o)
		for _, s := range b.subjects {
			if r.accounts[s.Name] != nil && s.Namespace != "" {
				f.addf("%s: %s names the namespace of %s, so that it holds in no other", o.File, o, s.Name)
			}
		}
	}
	return f
}

func emptySecrets(r repository) []string {
	var f findings
	for _, o := range r.objects {
		s, ok := o.Typed.(*corev1.Secret)
		if !ok {
			continue
		}
		for key, value := range s.Data {
			if len(value) > 0 {
				f.addf("Secret %s: %s has a value", s.Name, key)
			}
		}
		for key, value := range s.StringData {
			if hasValue(key, value) {
				f.addf("Secret %s: %s has a value", s.Name, key)
			}
		}
	}
	return f
}

// hasValue tells whether an example says more than its own form.
func hasValue(key, value string) bool {
	if key != corev1.DockerConfigJsonKey {
		return value != ""
	}
	var config struct {
		Auths map[string]map[string]string `json:"auths"`
	}
	if err := json.Unmarshal([]byte(value), &config); err != nil {
		return true
	}
	for _, auth := range config.Auths {
		for _, v := range auth {
			if v != "" {
				return true
			}
		}
	}
	return false
}

func names(r repository) []string {
	var f findings
	for _, name := range []string{"trainyard-build", "trainyard-train"} {
		if r.accounts[name] == nil {
			f.addf("there is no ServiceAccount %s", name)
		}
	}
	found := false
	for _, o := range r.objects {
		if s, ok := o.Typed.(*corev1.Secret); ok && s.Name == "s3-credentials" {
			found = true
			for _, key := range []string{"access-key-id", "secret-access-key"} {
				if _, ok := s.StringData[key]; !ok {
					f.addf("Secret %s has no key %s", s.Name, key)
				}
			}
		}
	}
	if !found {
		f.addf("there is no Secret s3-credentials")
	}
	return f
}
