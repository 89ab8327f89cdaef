package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	triggersfake "github.com/tektoncd/triggers/pkg/client/clientset/versioned/fake"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"
)

// file adds an object of the repository as it is after kubectl apply.
func (w *world) file(path string, edit ...string) {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join("../../triggers", path))
	if err != nil {
		w.t.Fatal(err)
	}
	text := strings.Replace(string(data), "\nmetadata:\n", "\nmetadata:\n  namespace: team\n", 1)
	for i := 0; i < len(edit); i += 2 {
		if !strings.Contains(text, edit[i]) {
			w.t.Fatalf("%s has no %q", path, edit[i])
		}
		text = strings.ReplaceAll(text, edit[i], edit[i+1])
	}
	w.yaml(text)
}

// installed adds what triggers/ installs, before anybody has set anything up.
func installed(w *world) {
	for _, path := range []string{"trainyard.yaml", "github.yaml", "gitlab.yaml", "gitea.yaml", "push.yaml", "training.yaml", "train-on-push.yaml", "service-account.yaml", "queue/service-account.yaml"} {
		w.file(path)
	}
	w.file("queue/deployment.yaml", "image: ghcr.io/trainyard/yard", "image: ghcr.io/trainyard/yard@sha256:"+strings.Repeat("a", 64))
	w.up("trainyard-queue", 1)
	w.yaml(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: el-trainyard, namespace: team}
spec: {selector: {matchLabels: {eventlistener: trainyard}}}
status: {availableReplicas: 1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: tekton-triggers-controller, namespace: tekton-pipelines, labels: {app.kubernetes.io/version: v0.37.0}}
status: {availableReplicas: 1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: tekton-triggers-core-interceptors, namespace: tekton-pipelines}
status: {availableReplicas: 1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: tekton-triggers-webhook, namespace: tekton-pipelines}
status: {availableReplicas: 1}`)
}

// setUp is a namespace where pushes of GitHub start runs.
func setUp(w *world) {
	installed(w)
	w.file("training.yaml", "registry.example.com/", "registry.team.example/", strings.Repeat("0", 64), strings.Repeat("b", 64))
	w.yaml("apiVersion: v1\nkind: Secret\nmetadata: {name: github-webhook, namespace: team}\ndata: {secret: czNjcmV0}")
}

// up sets how many pods of a deployment are ready.
func (w *world) up(name string, pods int32) {
	w.t.Helper()
	for _, o := range w.kube {
		if d, ok := o.(*appsv1.Deployment); ok && d.Name == name {
			d.Status.AvailableReplicas = pods
			return
		}
	}
	w.t.Fatalf("no deployment %s", name)
}

func TestAPushStartsRunsWhereAllIsInOrder(t *testing.T) {
	w := newWorld(t)
	setUp(w)
	r := w.examine("")
	if r.Count(Problem)+r.Count(Warning) > 0 {
		t.Error("something is said to be wrong")
	}
	w.golden("trigger", r)
}

func TestPushTrigger(t *testing.T) {
	webhook := func(data string) func(*world) {
		return func(w *world) {
			w.yaml("apiVersion: v1\nkind: Secret\nmetadata: {name: github-webhook, namespace: team}\ndata: {" + data + "}")
		}
	}
	deny := func(verb, resource string) func(*world) {
		return func(w *world) {
			w.denied = func(a authorizationv1.ResourceAttributes) bool { return a.Verb == verb && a.Resource == resource }
		}
	}
	tells := func(tokens string) func(*world) {
		return func(w *world) {
			w.file("commit-status/service-account.yaml")
			w.file("commit-status/deployment.yaml", "image: ghcr.io/trainyard/yard", "image: x@sha256:"+strings.Repeat("a", 64))
			w.up("trainyard-commit-status", 1)
			w.yaml("apiVersion: v1\nkind: Secret\nmetadata: {name: commit-status-tokens, namespace: team}\ndata: {" + tokens + "}")
		}
	}
	for name, c := range map[string]struct {
		before func(*world)
		broken func(*world)
		want   []expectation
		ok     string // in a finding that is ok
	}{
		"no listener": {func(*world) {}, func(*world) {}, nil, ""},
		"installed, and not set up": {installed, func(*world) {}, nil,
			"listener trainyard takes no push until there is a Secret gitea-webhook, github-webhook or gitlab-webhook"},
		"not set up, and without a queue": {installed, func(w *world) { w.remove("Deployment", "trainyard-queue") },
			[]expectation{{Warning, "trigger", []string{"there is no deployment trainyard-queue"}}}, ""},
		"one forge of three": {setUp, func(*world) {}, nil, "Trigger gitlab takes no push: there is no Secret gitlab-webhook"},
		"settings that nobody wrote": {setUp, func(w *world) { w.file("training.yaml") }, []expectation{
			{Problem, "trigger", []string{"TriggerBinding training: image-repository is still the placeholder registry.example.com/trainyard/trainer", "name your registry"}},
			{Problem, "trigger", []string{"TriggerBinding training: builder-image is still the placeholder with a digest of zeros", "yard plan"}}}, ""},
		"settings in the Trigger itself": {setUp, func(w *world) {
			w.file("github.yaml", "- ref: training", "- {name: image-repository, value: registry.example.com/x}")
		}, []expectation{{Problem, "trigger", []string{"Trigger github: image-repository is still the placeholder"}}}, ""},
		"Secret with another key": {setUp, webhook("token: czNjcmV0"),
			[]expectation{{Problem, "trigger", []string{"Secret github-webhook has no key secret, only token: Trigger github refuses every push", "--from-literal=secret="}}}, ""},
		"Secret without any": {setUp, webhook(""),
			[]expectation{{Problem, "trigger", []string{"has no key secret and no other"}}}, ""},
		"Secret that is empty": {setUp, webhook(`secret: ""`),
			[]expectation{{Problem, "trigger", []string{"the value of secret is empty"}}}, ""},
		"Secret with a line break": {setUp, webhook("secret: czNjcmV0Cg=="),
			[]expectation{{Problem, "trigger", []string{"a space or line break at an end", "printf, not echo"}}}, ""},
		"Trigger without a Secret": {setUp, func(w *world) { w.file("gitea.yaml", "secretRef", "other") },
			[]expectation{{Warning, "trigger", []string{"Trigger gitea checks no secret: whoever reaches the listener may start runs"}}}, ""},
		"no binding": {setUp, func(w *world) {
			w.remove("TriggerBinding", "push")
			w.remove("Trigger", "gitlab")
			w.remove("Trigger", "gitea")
		},
			[]expectation{{Problem, "trigger", []string{"Trigger github refers to TriggerBinding push, which does not exist"}}}, ""},
		"no template": {setUp, func(w *world) {
			w.remove("TriggerTemplate", "train-on-push")
			w.remove("Trigger", "gitlab")
			w.remove("Trigger", "gitea")
		}, []expectation{{Problem, "trigger", []string{"Trigger github refers to TriggerTemplate train-on-push, which does not exist"}}}, ""},
		"Triggers with other labels": {setUp, func(w *world) {
			w.file("trainyard.yaml", "trainyard.dev/listener: push", "trainyard.dev/listener: other")
		},
			[]expectation{{Warning, "trigger", []string{"listener trainyard has no Trigger"}}}, ""},
		"listener that names a Trigger which is gone": {setUp, func(w *world) {
			w.file("trainyard.yaml", "  labelSelector:\n    matchLabels:\n      trainyard.dev/listener: push\n", "  triggers: [{triggerRef: github}, {triggerRef: bitbucket}]\n")
		}, []expectation{{Warning, "trigger", []string{"names Trigger bitbucket, which does not exist"}}}, "Trigger github takes the pushes that are signed with Secret github-webhook"},
		"listener without a deployment": {setUp, func(w *world) { w.remove("Deployment", "el-trainyard") },
			[]expectation{{Problem, "trigger", []string{"listener trainyard has no deployment el-trainyard: nobody answers the forge"}}}, ""},
		"listener whose pod ends": {setUp, func(w *world) {
			w.up("el-trainyard", 0)
			w.yaml("apiVersion: v1\nkind: Pod\nmetadata: {name: el-1, namespace: team, labels: {eventlistener: trainyard}, creationTimestamp: 2026-11-30T11:00:00Z}\nspec: {nodeName: node-1, containers: [{name: c}]}\n" +
				"status: {phase: Running, containerStatuses: [{name: c, state: {waiting: {reason: CrashLoopBackOff, message: back-off}}}]}")
			w.logs = func(pod, container string) []string {
				if pod != "el-1" || container != "c" {
					t.Errorf("asked for the log of %s %s", pod, container)
				}
				return []string{"starting", "failed to sync cache for clusterinterceptors", ""}
			}
		}, []expectation{
			{Problem, "trigger", []string{"deployment el-trainyard has no pod that is ready: nobody answers the forge", "el-1 says: failed to sync cache for clusterinterceptors"}},
			{Problem, "pod", []string{"the pod of deployment el-trainyard (el-1): container c cannot be started (CrashLoopBackOff)"}}}, ""},
		"listener that was made just now": {setUp, func(w *world) {
			w.yaml("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: el-trainyard, namespace: team, creationTimestamp: 2026-11-30T11:59:50Z}\nspec: {selector: {matchLabels: {eventlistener: trainyard}}}")
		}, []expectation{{Warning, "trigger", []string{"was made a moment ago"}}}, ""},
		"no queue": {setUp, func(w *world) { w.remove("Deployment", "trainyard-queue") },
			[]expectation{{Problem, "trigger", []string{"there is no deployment trainyard-queue: the runs that pushes start stay pending for ever", "triggers/queue"}}}, ""},
		"queue that is scaled down": {setUp, func(w *world) {
			w.file("queue/deployment.yaml", "replicas: 1", "replicas: 0", "image: ghcr.io/trainyard/yard", "image: x@sha256:"+strings.Repeat("a", 64))
		}, []expectation{{Problem, "trigger", []string{"trainyard-queue is scaled down to nothing", "--replicas=1"}}}, ""},
		"queue that was not rendered": {setUp, func(w *world) { w.file("queue/deployment.yaml"); w.up("trainyard-queue", 1) },
			[]expectation{{Problem, "trigger", []string{"has the placeholder ghcr.io/trainyard/yard for an image: the runs that pushes start stay pending"}}}, ""},
		"queue with a digest of zeros": {setUp, func(w *world) {
			w.file("queue/deployment.yaml", "image: ghcr.io/trainyard/yard", "image: x@sha256:"+strings.Repeat("0", 64))
			w.up("trainyard-queue", 1)
		}, []expectation{{Problem, "trigger", []string{"has the placeholder x@sha256:0"}}}, ""},
		"forges that are told": {setUp, tells("github: dA==, gitlab: \"\""), nil, "Secret commit-status-tokens has tokens for github"},
		"forges for which there is no token": {setUp, tells(`github: ""`),
			[]expectation{{Warning, "trigger", []string{"Secret commit-status-tokens has no token for it: no forge is told", "--from-file=github="}}}, ""},
		"forges that are told by nobody": {setUp, func(w *world) { tells("gitea: dA==")(w); w.up("trainyard-commit-status", 0) },
			[]expectation{{Problem, "trigger", []string{"deployment trainyard-commit-status has no pod that is ready: no forge is told"}}}, ""},
		"listener that may not read what is of the cluster": {setUp, deny("list", "clusterinterceptors"),
			[]expectation{{Problem, "trigger", []string{"ServiceAccount trainyard-listener lacks rights that it needs", "list clusterinterceptors.triggers.tekton.dev in the cluster", "cluster-role-binding.yaml"}}}, ""},
		"listener that may start nothing": {setUp, deny("create", "pipelineruns"),
			[]expectation{{Problem, "trigger", []string{"create pipelineruns.tekton.dev in the namespace"}}}, ""},
		"queue that may change nothing": {setUp, deny("patch", "pipelineruns"),
			[]expectation{{Problem, "trigger", []string{"ServiceAccount trainyard-queue lacks rights that it needs", "patch pipelineruns.tekton.dev", "triggers/queue"}}}, ""},
		"user who may not ask for the rights of others": {setUp, func(w *world) { w.change = forbid("subjectaccessreviews") },
			[]expectation{{Warning, "trigger", []string{"cannot be told with these rights", "subjectaccessreviews"}}}, ""},
		"no account": {setUp, func(w *world) { w.remove("ServiceAccount", "trainyard-listener") },
			[]expectation{{Problem, "trigger", []string{"ServiceAccount trainyard-listener does not exist"}}}, ""},
		"Triggers of long ago": {setUp, func(w *world) {
			w.yaml("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: triggers-info, namespace: tekton-pipelines}\ndata: {version: v0.20.0}")
		}, []expectation{{Warning, "trigger", []string{"Tekton Triggers v0.20.0 in namespace tekton-pipelines is older than 0.37.0"}}}, ""},
		"no interceptors": {setUp, func(w *world) { w.remove("Deployment", "tekton-triggers-core-interceptors") },
			[]expectation{{Problem, "trigger", []string{"tekton-pipelines/tekton-triggers-core-interceptors has no pod that is ready: every push fails its checks"}}}, ""},
		"Triggers in a place of its own": {setUp, func(w *world) { w.remove("Deployment", "tekton-triggers-controller") },
			[]expectation{{Warning, "trigger", []string{"no deployment tekton-triggers-controller"}}}, ""},
		"user who may not see the Secrets": {setUp, func(w *world) { w.change = forbid("secrets") },
			[]expectation{{Warning, "secret", []string{"may not be seen"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.before(w)
			c.broken(w)
			r := w.examine("")
			for _, x := range c.want {
				if !x.met(r) {
					t.Errorf("no %s of %s that says %q", x.level, x.check, x.says)
				}
			}
			if bad := r.Count(Problem) + r.Count(Warning); bad != len(c.want) {
				t.Errorf("%d findings are not ok, want %d", bad, len(c.want))
			}
			if c.ok != "" && !(expectation{OK, "trigger", []string{c.ok}}).met(r) {
				t.Errorf("it does not say %q", c.ok)
			}
			for _, f := range r.Findings {
				if f.Level != OK && f.Remedy == "" {
					t.Errorf("no remedy for: %s", f.Message)
				}
			}
			if t.Failed() {
				r.Write(testWriter{t})
			}
		})
	}
}

func TestListenersThatCannotBeSeen(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want []expectation
	}{
		"not allowed": {apierrors.NewForbidden(schema.GroupResource{Resource: "eventlisteners"}, "", errors.New("you may not")),
			[]expectation{{Warning, "trigger", []string{"event listeners may not be seen with these rights"}}}},
		"no Triggers in the cluster": {apierrors.NewNotFound(schema.GroupResource{Resource: "eventlisteners"}, ""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			d := w.doctor()
			d.Triggers.(*triggersfake.Clientset).PrependReactor("list", "eventlisteners", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.err })
			r, err := d.BeforeStart(t.Context(), Options{Namespace: ns, InsecureRegistries: w.insecureHosts})
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range c.want {
				if !x.met(r) {
					t.Errorf("no %s of %s that says %q", x.level, x.check, x.says)
				}
			}
			if bad := r.Count(Problem) + r.Count(Warning); bad != len(c.want) {
				t.Errorf("%d findings are not ok, want %d", bad, len(c.want))
			}
		})
	}
}

// What doctor asks for is what the roles give: with less it would miss a role that lost
// a rule, with more it would call every installation broken.
func TestWhatIsAskedForIsWhatTheRolesGive(t *testing.T) {
	rules := func(path string) []rbacv1.PolicyRule {
		data, err := os.ReadFile(filepath.Join("../../triggers", path))
		if err != nil {
			t.Fatal(err)
		}
		var role rbacv1.Role
		if err := yaml.Unmarshal(data, &role); err != nil {
			t.Fatal(err)
		}
		return role.Rules
	}
	for name, c := range map[string]struct {
		needs []right
		here  []rbacv1.PolicyRule
		all   []rbacv1.PolicyRule
	}{
		"listener":      {listenerNeeds(), rules("role.yaml"), rules("cluster-role.yaml")},
		"queue":         {queueNeeds(), rules("queue/role.yaml"), nil},
		"commit status": {statusNeeds(), rules("commit-status/role.yaml"), nil},
	} {
		var given, asked []string
		flat := func(rules []rbacv1.PolicyRule, where string) {
			for _, rule := range rules {
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						for _, verb := range rule.Verbs {
							if group != "" { // events are for people: nobody fails without
								given = append(given, strings.Join([]string{where, group, resource, verb}, " "))
							}
						}
					}
				}
			}
		}
		flat(c.here, "here")
		flat(c.all, "everywhere")
		for _, r := range c.needs {
			where := map[bool]string{false: "here", true: "everywhere"}[r.everywhere]
			for _, verb := range r.verbs {
				asked = append(asked, strings.Join([]string{where, r.group, r.resource, verb}, " "))
			}
		}
		slices.Sort(given)
		slices.Sort(asked)
		if !slices.Equal(given, asked) {
			t.Errorf("%s: the roles give\n%s\ndoctor asks for\n%s", name, strings.Join(given, "\n"), strings.Join(asked, "\n"))
		}
	}
}
