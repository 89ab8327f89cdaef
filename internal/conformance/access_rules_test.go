package conformance

import (
	"encoding/json"

	triggersv1beta1 "github.com/tektoncd/triggers/pkg/apis/triggers/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
		var subjects []rbacv1.Subject
		switch b := o.Typed.(type) {
		case *rbacv1.RoleBinding:
			subjects = b.Subjects
		case *rbacv1.ClusterRoleBinding:
			subjects = b.Subjects
		}
		for _, s := range subjects {
			if s.Kind == "ServiceAccount" && steps[s.Name] {
				f.addf("%s: %s gives rights to %s, whose steps run code of users", o.File, o, s.Name)
			}
		}
	}
	return f
}

// listenerRights looks for the two bindings of each listener's account. Without the one
// for the cluster its pod ends again and again.
func listenerRights(r repository) []string {
	var f findings
	bound := map[string]bool{} // kind of binding, role, account
	for _, o := range r.objects {
		var role rbacv1.RoleRef
		var subjects []rbacv1.Subject
		switch b := o.Typed.(type) {
		case *rbacv1.RoleBinding:
			role, subjects = b.RoleRef, b.Subjects
		case *rbacv1.ClusterRoleBinding:
			role, subjects = b.RoleRef, b.Subjects
		}
		for _, s := range subjects {
			if s.Kind == "ServiceAccount" && role.Kind == "ClusterRole" {
				bound[o.Kind.Kind+" "+role.Name+" "+s.Name] = true
			}
		}
	}
	for _, o := range r.objects {
		l, ok := o.Typed.(*triggersv1beta1.EventListener)
		if !ok {
			continue
		}
		for kind, role := range map[string]string{"RoleBinding": "tekton-triggers-eventlistener-roles", "ClusterRoleBinding": "tekton-triggers-eventlistener-clusterroles"} {
			if !bound[kind+" "+role+" "+l.Spec.ServiceAccountName] {
				f.addf("EventListener %s: no %s gives %s to the ServiceAccount %q", l.Name, kind, role, l.Spec.ServiceAccountName)
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
