package conformance

import (
	"encoding/json"

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
		{"the names that everybody relies on", names, [][2]string{
			{"metadata: {name: s3-credentials}\n", "metadata: {name: s3-credential}\n"},
			{"  secret-access-key: \"\"\n", ""},
			{"metadata: {name: trainyard-train}\n", "metadata: {name: trainer}\n"},
		}},
	}
}

func noRights(r repository) []string {
	var f findings
	for name, a := range each(r.accounts) {
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
			if s.Kind == "ServiceAccount" && (s.Name == "trainyard-build" || s.Name == "trainyard-train") {
				f.addf("%s: %s gives rights to %s, whose steps run code of users", o.File, o, s.Name)
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
