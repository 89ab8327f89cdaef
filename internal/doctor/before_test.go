package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// forbid lets a user not see a kind of object.
func forbid(resources ...string) func(*fake.Clientset) {
	return func(c *fake.Clientset) {
		for _, r := range resources {
			c.PrependReactor("*", r, func(a kubetesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: r}, "", errors.New("you may not"))
			})
		}
	}
}

// expectation is one finding that a scenario must give.
type expectation struct {
	level Level
	check string
	says  []string // parts of message, details or remedy
}

func (x expectation) met(r *Report) bool {
	for _, f := range r.Findings {
		if f.Level != x.level || f.Check != x.check {
			continue
		}
		all := strings.Join(append([]string{f.Message, f.Remedy}, f.Details...), "\n")
		found := true
		for _, s := range x.says {
			found = found && strings.Contains(all, s)
		}
		if found {
			return true
		}
	}
	return false
}

func TestHealthyNamespace(t *testing.T) {
	w := newWorld(t)
	r := w.examine("")
	if r.Count(Problem)+r.Count(Warning) > 0 {
		t.Error("something is said to be wrong")
	}
	w.golden("healthy", r)
}

// Each case breaks one thing; exactly one finding that is not "ok" must come of it,
// unless the case says otherwise.
func TestBeforeStart(t *testing.T) {
	for _, c := range []struct {
		name   string
		broken func(*world)
		want   []expectation
		more   int // further findings that are not ok
	}{
		{"no namespace", func(w *world) { w.remove("Namespace", "team") },
			[]expectation{{Problem, "namespace", []string{"namespace team does not exist"}}}, 0},
		{"namespace without Pod Security", func(w *world) { w.yaml("apiVersion: v1\nkind: Namespace\nmetadata: {name: team}") },
			[]expectation{{Warning, "namespace", []string{"enforces no Pod Security level", "kubectl label namespace team pod-security.kubernetes.io/enforce=restricted"}}}, 0},
		{"namespace that is going away", func(w *world) {
			w.yaml("apiVersion: v1\nkind: Namespace\nmetadata: {name: team, deletionTimestamp: 2026-11-30T11:00:00Z, finalizers: [x]}")
		}, []expectation{{Problem, "namespace", []string{"being deleted"}}}, 0},
		{"no service account", func(w *world) { w.remove("ServiceAccount", "trainyard-train") },
			[]expectation{{Problem, "service-account", []string{"trainyard-train does not exist in namespace team"}}}, 0},
		{"account with a secret that is not there", func(w *world) {
			w.yaml("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: trainyard-build, namespace: team}\nsecrets: [{name: gone}]\nimagePullSecrets: [{name: away}]")
		}, []expectation{{Problem, "service-account", []string{"Secret gone", "no pod of it can start"}}, {Warning, "service-account", []string{"Secret away", "imagePullSecrets"}}}, 0},
		{"no store secret", func(w *world) { w.remove("Secret", "s3-credentials") },
			[]expectation{
				{Problem, "secret", []string{"Secret s3-credentials does not exist", "access-key-id"}},
				{Problem, "reference", []string{"task train needs Secret s3-credentials", "until the run times out"}}, // I-37
			}, 0},
		{"store secret with another key", func(w *world) {
			w.yaml("apiVersion: v1\nkind: Secret\nmetadata: {name: s3-credentials, namespace: team}\ndata: {accesskey: a2V5, secret-access-key: c2VjcmV0}")
		}, []expectation{
			{Problem, "secret", []string{"has no key access-key-id", "accesskey, secret-access-key"}},
			{Problem, "reference", []string{"task train needs the key access-key-id of Secret s3-credentials"}},
		}, 0},
		{"store secret with a line break", func(w *world) {
			w.yaml("apiVersion: v1\nkind: Secret\nmetadata: {name: s3-credentials, namespace: team}\ndata: {access-key-id: a2V5Cg==, secret-access-key: c2VjcmV0}")
		}, []expectation{{Problem, "secret", []string{"the value of access-key-id has a space or line break", "printf"}}}, 0},
		{"store secret that is empty", func(w *world) {
			w.yaml("apiVersion: v1\nkind: Secret\nmetadata: {name: s3-credentials, namespace: team}\ndata: {access-key-id: a2V5, secret-access-key: \"\"}")
		}, []expectation{{Problem, "secret", []string{"the value of secret-access-key is empty"}}}, 0},
		{"registry secret of the wrong type", func(w *world) {
			w.yaml("apiVersion: v1\nkind: Secret\nmetadata: {name: registry-credentials, namespace: team}\ntype: Opaque\ndata: {}")
		}, []expectation{{Problem, "secret", []string{"has type Opaque, not kubernetes.io/dockerconfigjson", "kubectl create secret docker-registry"}}}, 0},
		{"registry secret that is no JSON", func(w *world) {
			w.yaml("apiVersion: v1\nkind: Secret\nmetadata: {name: registry-credentials, namespace: team}\ntype: kubernetes.io/dockerconfigjson\ndata: {.dockerconfigjson: bm8=}")
		}, []expectation{{Problem, "secret", []string{"not a docker configuration"}}}, 0},
		{"pipeline is not there", func(w *world) { w.remove("Pipeline", "train-and-promote") },
			[]expectation{{Problem, "pipeline", []string{"pipeline train-and-promote does not exist in namespace team"}}}, 0},
		{"task is not there", func(w *world) { w.remove("Task", "report") },
			[]expectation{{Problem, "pipeline", []string{"refers to Task report, which does not exist", "tasks/report.yaml"}}}, 0},
		{"tasks that were not rendered", func(w *world) {
			w.yaml("apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: report, namespace: team}\nspec:\n  params: [{name: tool, default: \"r.example/yard@sha256:" + strings.Repeat("0", 64) + "\"}]\n  steps: [{name: s, image: ghcr.io/trainyard/yard, command: [c]}, {name: t, image: $(params.tool), command: [c]}]")
		}, []expectation{{Problem, "pipeline", []string{"task report: step s has the placeholder ghcr.io/trainyard/yard"}}, {Problem, "pipeline", []string{"step t has an image whose digest is zeros"}}}, 0},
		{"config map that a task needs", func(w *world) {
			w.yaml("apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: report, namespace: team}\nspec:\n  params: [{name: map, default: settings}]\n  steps: [{name: s, image: i, command: [c], envFrom: [{configMapRef: {name: $(params.map)}}]}]")
		}, []expectation{{Problem, "reference", []string{"task report needs ConfigMap settings, which does not exist"}}}, 0},
		{"references that may be missing, or that only the run will know", func(w *world) {
			w.yaml("apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: report, namespace: team}\nspec:\n  params: [{name: map, type: string}]\n  steps: [{name: s, image: i, command: [c], envFrom: [{configMapRef: {name: $(params.map)}}, {secretRef: {name: maybe, optional: true}}]}]\n  volumes: [{name: ca, configMap: {name: ca, optional: true}}, {name: p, projected: {sources: [{secret: {name: x, optional: true}}]}}]")
		}, nil, 0},
		{"bundle by tag", func(w *world) {
			w.push("bundle", nil)
			w.yaml("apiVersion: tekton.dev/v1\nkind: Pipeline\nmetadata: {name: train-and-promote, namespace: team}\nspec:\n  tasks: [{name: train, taskRef: {resolver: bundles, params: [{name: bundle, value: " + w.host() + "/bundle:latest}, {name: name, value: train}, {name: kind, value: task}]}}]")
		}, []expectation{{Warning, "pipeline", []string{"referred to by tag"}}}, 0},
		{"bundle that is not there", func(w *world) {
			w.yaml("apiVersion: tekton.dev/v1\nkind: Pipeline\nmetadata: {name: train-and-promote, namespace: team}\nspec:\n  tasks: [{name: train, taskRef: {resolver: bundles, params: [{name: bundle, value: \"" + w.host() + "/none@sha256:" + strings.Repeat("0", 64) + "\"}]}}]")
		}, []expectation{{Problem, "bundle", []string{"404", "push the image"}}}, 0},
		{"task that would not fit", func(w *world) {
			w.yaml("apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: train, namespace: team}\nspec:\n  stepTemplate: {computeResources: {requests: {memory: 1Gi}}}\n  steps: [{name: train, image: i, command: [c], computeResources: {limits: {cpu: \"2\"}}}]")
		}, []expectation{{Warning, "capacity", []string{
			"task train would wait for a node: it asks for 2 CPU and 1Gi of memory",
			"node node-1: 2 CPU asked, 1400m free: of 4 allocatable, 4 pods hold 2600m",
			"most is held by research/notebook-0 1500m, research/database-0 800m, kube-system/kube-apiserver 250m",
			"it fits on node node-1 when research/notebook-0 ends or is scaled down (it holds 1500m CPU); or at once when it asks for at most 1400m CPU",
		}}}, 0},
		{"task that fits no node ever", func(w *world) {
			w.yaml("apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: train, namespace: team}\nspec:\n  steps: [{name: train, image: i, command: [c], computeResources: {requests: {cpu: \"16\"}}}]")
		}, []expectation{{Problem, "capacity", []string{"no pod's end would help: beside its own pods, node node-1 has room for at most 3750m CPU", "add a larger node"}}}, 0},
		{"no Tekton", func(w *world) { w.remove("Deployment", "tekton-pipelines-controller") },
			[]expectation{{Warning, "tekton", []string{"tekton-pipelines or openshift-pipelines"}}}, 0},
		{"Tekton's controller is down", func(w *world) {
			w.yaml("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: tekton-pipelines-controller, namespace: tekton-pipelines}")
		}, []expectation{{Problem, "tekton", []string{"tekton-pipelines/tekton-pipelines-controller has no pod that is ready: no run makes progress"}}}, 0},
		{"Tekton is too old", func(w *world) {
			w.yaml("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: pipelines-info, namespace: tekton-pipelines}\ndata: {version: v0.59.0}")
		}, []expectation{{Problem, "tekton", []string{"v0.59.0", "older than 1.0.0"}}}, 0},
		{"set-security-context is off", func(w *world) { w.remove("ConfigMap", "feature-flags") },
			[]expectation{{Problem, "tekton", []string{"set-security-context is not true", `kubectl patch configmap feature-flags --namespace tekton-pipelines --type merge --patch '{"data":{"set-security-context":"true"}}'`}}}, 0},
		{"other flags", func(w *world) {
			w.yaml("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: feature-flags, namespace: tekton-pipelines}\ndata: {set-security-context: \"true\", coschedule: disabled, results-from: sidecar-logs}")
		}, []expectation{{Warning, "tekton", []string{"coschedule is disabled"}}, {Warning, "tekton", []string{"results-from is sidecar-logs"}}}, 0},
		{"no default storage class", func(w *world) {
			w.yaml("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: standard}\nprovisioner: x")
		}, []expectation{{Warning, "claim", []string{"no default StorageClass (it has standard)"}}}, 0},
		{"quota used up", func(w *world) {
			w.yaml("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: team}\nstatus: {hard: {pods: \"2\", limits.cpu: \"8\"}, used: {pods: \"2\", limits.cpu: \"1\"}}")
		}, []expectation{{Warning, "quota", []string{"quota q is used up for pods: 2 of 2"}}}, 0},
		{"builder is none", func(w *world) { w.options.Builder = w.push("plain", nil) },
			[]expectation{{Problem, "builder", []string{"not a builder", "yard builder create"}}}, 0},
		{"builder is root", func(w *world) {
			w.options.Builder = w.push("root", builderLabels(), "CNB_USER_ID=0", "CNB_GROUP_ID=0")
		}, []expectation{{Problem, "builder", []string{"a number that is not root's"}}}, 0},
		{"builder for other nodes", func(w *world) {
			w.yaml("apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nstatus: {allocatable: {cpu: \"4\", memory: 16Gi, pods: \"110\"}, nodeInfo: {architecture: arm64}}")
		}, []expectation{{Problem, "builder", []string{"is for linux/amd64"}}}, 0},
		{"image that exists already", func(w *world) { w.options.Image = w.push("trainer", nil) }, nil, 0},
		{"image without a tag", func(w *world) { w.options.Image = w.host() + "/trainer" },
			[]expectation{{Problem, "registry", []string{"has no tag", "/trainer:TAG"}}}, 0},
		{"image by digest that is gone", func(w *world) { w.options.Image = w.host() + "/trainer@sha256:" + strings.Repeat("1", 64) },
			[]expectation{{Problem, "image", []string{"404"}}}, 0},
		{"registry in plain http that the run lists", func(w *world) {
			w.insecureHosts = nil
			w.pipeline().Spec.Params = append(w.pipeline().Spec.Params, param("insecure-registries", "other.example:5000,"+w.host()))
		}, nil, 0},
		{"identity from the platform", func(w *world) {
			w.remove("Secret", "s3-credentials")
			w.remove("ConfigMap", "trainyard-store")
			w.optionalCredentials()
		}, []expectation{{Warning, "secret", []string{"the pods need credentials for AWS from their platform"}}, {Warning, "config", []string{"taken to be AWS"}}}, 0},
		{"store on the volume", func(w *world) {
			w.remove("Secret", "s3-credentials")
			w.optionalCredentials()
			w.pipeline().Spec.Params = append(w.pipeline().Spec.Params, param("store", "file:///workspace/shared/store"))
		}, nil, 0},
		{"registry secret by parameter", func(w *world) {
			w.pipeline().Spec.Params = append(w.pipeline().Spec.Params, param("registry-secret", "mine"))
			w.yaml("apiVersion: v1\nkind: Secret\nmetadata: {name: mine, namespace: team}\ntype: Opaque")
		}, []expectation{{Problem, "secret", []string{"Secret mine has type Opaque"}}}, 0},
		{"account with the registry's secret, which may be missing", func(w *world) {
			w.yaml("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: trainyard-build, namespace: team}\nimagePullSecrets: [{name: registry-credentials}]")
		}, nil, 0},
		{"builder by tag", func(w *world) { w.options.Builder = w.host() + "/builder:latest" },
			[]expectation{{Warning, "builder", []string{"named by tag", "name it as", "@sha256:"}}}, 0},
		{"builder that is not there", func(w *world) { w.options.Builder = w.host() + "/builder:gone" },
			[]expectation{{Problem, "builder", []string{"404", "correct the name, or push the image"}}}, 0},
		{"registry is down", func(w *world) { w.registry.Close() },
			[]expectation{{Problem, "builder", []string{"connection refused", "start the server"}}, {Problem, "registry", []string{"connection refused"}}}, 0},
		{"registry in plain http that only nodes pull from", func(w *world) { w.insecureHosts = nil },
			[]expectation{{Warning, "builder", []string{"plain http", "--insecure-registry"}}, {Warning, "registry", []string{"it was not looked at"}}}, 0},
		{"registry in plain http that the run does not list", func(w *world) {
			w.insecureHosts = nil
			w.pipeline().Spec.Params = append(w.pipeline().Spec.Params, param("insecure-registries", ""))
		},
			[]expectation{{Problem, "builder", []string{"insecure registry"}}, {Problem, "registry", []string{"insecure registry"}}}, 0},
		{"store is down", func(w *world) { w.store.Close() },
			[]expectation{{Problem, "store", []string{"bucket models of the store http://STORE: nothing listens at this address", "start the server"}}}, 0},
		{"store does not know the key", func(w *world) { w.store.refuse = "InvalidAccessKeyId" },
			[]expectation{{Problem, "store", []string{"does not know the access key", "correct access-key-id", "the server's words"}}}, 0},
		{"store with another secret key", func(w *world) { w.store.refuse = "SignatureDoesNotMatch" },
			[]expectation{{Problem, "store", []string{"the secret key is wrong", "correct secret-access-key"}}}, 0},
		{"bucket is not there", func(w *world) { w.options.Bucket = "other" },
			[]expectation{{Problem, "store", []string{"bucket other", "the bucket does not exist", "create it"}}}, 0},
		{"store is a web page", func(w *world) { w.store.refuse = "HTML" },
			[]expectation{{Problem, "store", nil}}, 0},
		{"store may not be written", func(w *world) { w.store.noWrite, w.options.WriteProbe = true, true },
			[]expectation{{Problem, "store", []string{"writing to bucket models", "do not allow this"}}}, 0},
		{"endpoint is no address", func(w *world) { w.options.Endpoint = "s3.example.com:9000" },
			[]expectation{{Problem, "store", []string{"no address"}}}, 0},
		{"endpoint with a password", func(w *world) { w.options.Endpoint = "http://me:hunter2@s3.example.com" },
			[]expectation{{Problem, "store", []string{"no address", "http://me:xxxxx@s3.example.com"}}}, 0},
		{"config with a line break", func(w *world) {
			w.yaml("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: trainyard-store, namespace: team}\ndata: {endpoint: \"" + w.store.URL + "\\n\", bucket: models}")
		}, []expectation{{Problem, "config", []string{"the value of endpoint has a space or line break"}}}, 0},
		{"service of the cluster, seen from outside", func(w *world) { inside(w); w.inCluster = false },
			[]expectation{{Warning, "store", []string{"is a Service of the cluster, whose name means nothing from here", "--port-forward"}}}, 0},
		{"service of the cluster, through a port forward", inside, nil, 0},
		{"service of the cluster without a pod", func(w *world) {
			inside(w)
			w.remove("EndpointSlice", "s3-x")
		}, []expectation{{Problem, "store", []string{"no pod behind Service system/s3 is ready"}}}, 0},
		{"service that does not exist", func(w *world) { w.options.Endpoint = "http://s4.system.svc.cluster.local" },
			[]expectation{{Problem, "store", []string{"there is no Service s4 in namespace system"}}}, 0},
		{"user may not see nodes", func(w *world) { w.change = forbid("nodes") },
			[]expectation{{Warning, "capacity", []string{"nodes may not be seen with these rights"}}}, 0},
		{"user may not see Tekton's deployments", func(w *world) {
			w.change = forbid("deployments")
			w.yaml("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: pipelines-info, namespace: tekton-pipelines}\ndata: {version: v0.59.0}")
		}, []expectation{{Warning, "tekton", []string{"may not be seen with these rights"}}, {Problem, "tekton", []string{"v0.59.0"}}}, 0},
		{"user may not see secrets", func(w *world) { w.change = forbid("secrets") },
			[]expectation{{Warning, "secret", []string{"secrets may not be seen with these rights"}}}, 0},
		{"user may see hardly anything", func(w *world) {
			w.change = forbid("nodes", "secrets", "pods", "deployments", "storageclasses", "configmaps", "resourcequotas", "namespaces", "serviceaccounts")
		}, []expectation{{Warning, "namespace", []string{"may not be seen"}}}, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.broken(w)
			r := w.examine("")
			for i, f := range r.Findings {
				r.Findings[i].Message = strings.ReplaceAll(f.Message, w.store.Listener.Addr().String(), "STORE")
			}
			for _, x := range c.want {
				if !x.met(r) {
					t.Errorf("no %s of %s that says %q", x.level, x.check, x.says)
				}
			}
			if bad := r.Count(Problem) + r.Count(Warning); bad != len(c.want)+c.more {
				t.Errorf("%d findings are not ok, want %d", bad, len(c.want)+c.more)
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

// inside moves the store behind a Service.
func inside(w *world) {
	w.inCluster = true
	w.options.Endpoint = "http://s3.system.svc.cluster.local:7070"
	w.yaml("apiVersion: v1\nkind: Service\nmetadata: {name: s3, namespace: system}\nspec: {ports: [{port: 7070}]}\n---\n" +
		"apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: s3-x, namespace: system, labels: {kubernetes.io/service-name: s3}}\naddressType: IPv4\nendpoints: [{addresses: [10.0.0.1], conditions: {ready: true}}]")
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

func TestRegistryCredentialsAreThoseOfTheSecret(t *testing.T) {
	w := newWorld(t)
	inner := w.registry.Config.Handler
	w.registry.Config.Handler = basicAuth("robot", "s3cr:et", inner)
	if r := w.examine(""); !(expectation{Problem, "registry", []string{"401", "correct the credentials in Secret registry-credentials"}}).met(r) {
		r.Write(testWriter{t})
		t.Error("a push without credentials is not reported")
	}
	auth, _ := json.Marshal(map[string]any{"auths": map[string]any{"http://" + w.host() + "/v2/": map[string]string{"username": "robot", "password": "s3cr:et"}}})
	w.yaml("apiVersion: v1\nkind: Secret\nmetadata: {name: registry-credentials, namespace: team}\ntype: kubernetes.io/dockerconfigjson\nstringData: {}\ndata: {.dockerconfigjson: " + base64Of(auth) + "}")
	r := w.examine("")
	if r.Count(Problem) > 0 || !(expectation{OK, "registry", []string{"can be pushed to"}}).met(r) {
		r.Write(testWriter{t})
		t.Error("the credentials of the Secret are not used")
	}
}

func TestWriteProbeLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.options.WriteProbe = true
	r := w.examine("")
	if !(expectation{OK, "store", []string{"can be listed and written"}}).met(r) || len(w.store.objects) != 0 {
		r.Write(testWriter{t})
		t.Errorf("left: %v", w.store.objects)
	}
}

func TestAnApiThatFailsEndsTheExamination(t *testing.T) {
	w := newWorld(t)
	w.change = func(c *fake.Clientset) {
		c.PrependReactor("get", "namespaces", func(kubetesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("etcdserver: request timed out")
		})
	}
	_, err := w.doctor().BeforeStart(t.Context(), Options{Namespace: ns})
	if exitcode.Of(err) != exitcode.IO || !strings.Contains(err.Error(), "request timed out") {
		t.Errorf("%v", err)
	}
}

func TestCancelEndsTheExamination(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.doctor().BeforeStart(ctx, Options{Namespace: ns, Image: w.host() + "/x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
