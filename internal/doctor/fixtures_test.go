package doctor

import (
	"bytes"
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonfake "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/fake"
	triggersv1 "github.com/tektoncd/triggers/pkg/apis/triggers/v1beta1"
	triggersfake "github.com/tektoncd/triggers/pkg/client/clientset/versioned/fake"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// noon is when every examination takes place.
func noon() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// world is a cluster in which everything is in order, until a test changes it.
type world struct {
	t             *testing.T
	kube          []runtime.Object
	tekton        []runtime.Object
	triggers      []runtime.Object
	denied        func(authorizationv1.ResourceAttributes) bool // what accounts may not do
	registry      *httptest.Server
	builder       string
	store         *s3Server
	logs          func(pod, container string) []string
	inCluster     bool
	change        func(*fake.Clientset)
	options       Options
	insecureHosts []string
}

const ns = "team"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, store: newS3Server(t), registry: httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))}
	t.Cleanup(w.registry.Close)
	w.builder = w.push("builder", builderLabels(), "CNB_USER_ID=1001", "CNB_GROUP_ID=1000")
	w.insecureHosts = []string{w.host()}
	w.yaml(fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: team, labels: {pod-security.kubernetes.io/enforce: restricted}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: trainyard-build, namespace: team}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: trainyard-train, namespace: team}
---
apiVersion: v1
kind: Secret
metadata: {name: s3-credentials, namespace: team}
type: Opaque
data: {access-key-id: a2V5, secret-access-key: c2VjcmV0}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: trainyard-store, namespace: team}
data: {endpoint: "%s", region: us-east-1, bucket: models}
---
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {kubernetes.io/hostname: node-1}}
status:
  allocatable: {cpu: "4", memory: 16Gi, pods: "110"}
  conditions: [{type: Ready, status: "True"}]
  nodeInfo: {architecture: amd64}
---
apiVersion: v1
kind: Pod
metadata: {name: kube-apiserver, namespace: kube-system, uid: api}
spec: {nodeName: node-1, containers: [{name: c, resources: {requests: {cpu: 250m, memory: 512Mi}}}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: notebook-0, namespace: research, uid: notebook}
spec: {nodeName: node-1, containers: [{name: c, resources: {requests: {cpu: 1500m, memory: 4Gi}}}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: database-0, namespace: research, uid: database}
spec: {nodeName: node-1, containers: [{name: c, resources: {requests: {cpu: 800m, memory: 2Gi}}}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: proxy, namespace: research, uid: proxy}
spec: {nodeName: node-1, containers: [{name: c, resources: {requests: {cpu: 50m, memory: 64Mi}}}]}
status: {phase: Running}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: standard, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: rancher.io/local-path
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: tekton-pipelines-controller, namespace: tekton-pipelines}
status: {availableReplicas: 1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: tekton-pipelines-webhook, namespace: tekton-pipelines}
status: {availableReplicas: 1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: tekton-pipelines-remote-resolvers, namespace: tekton-pipelines-resolvers}
status: {availableReplicas: 1}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: pipelines-info, namespace: tekton-pipelines}
data: {version: v1.15.0}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: feature-flags, namespace: tekton-pipelines}
data: {set-security-context: "true", coschedule: workspaces}
---
apiVersion: tekton.dev/v1
kind: Pipeline
metadata: {name: train-and-promote, namespace: team}
spec:
  params:
  - {name: url, type: string}
  - {name: builder-image, type: string, default: "%s"}
  - {name: image, type: string, default: "%s/models/trainer:latest"}
  tasks:
  - {name: train, taskRef: {name: train}}
  finally:
  - {name: report, taskRef: {name: report}}
---
apiVersion: tekton.dev/v1
kind: Task
metadata: {name: train, namespace: team}
spec:
  steps:
  - name: train
    image: example.com/trainer
    command: [/cnb/process/trainer]
    computeResources: {requests: {cpu: "1", memory: 2Gi}}
    env:
    - {name: AWS_ACCESS_KEY_ID, valueFrom: {secretKeyRef: {name: s3-credentials, key: access-key-id}}}
    - {name: ENDPOINT, valueFrom: {configMapKeyRef: {name: trainyard-store, key: endpoint, optional: true}}}
---
apiVersion: tekton.dev/v1
kind: Task
metadata: {name: report, namespace: team}
spec:
  steps:
  - {name: report, image: example.com/trainer, command: [/cnb/process/trainer]}
`, w.store.URL, w.builder, w.host()))
	return w
}

// builderLabels are those of the smallest builder.
func builderLabels() map[string]string {
	return map[string]string{
		"io.buildpacks.builder.metadata": `{"lifecycle": {"version": "0.21.17", "apis": {"platform": {"supported": ["0.13"]}, "buildpack": {"supported": ["0.10"]}}}}`,
		"io.buildpacks.buildpack.layers": "{}", "io.buildpacks.buildpack.order": "[]",
	}
}

func (w *world) host() string { return strings.TrimPrefix(w.registry.URL, "http://") }

// push puts an image into the registry and returns its reference by digest.
func (w *world) push(repository string, labels map[string]string, env ...string) string {
	w.t.Helper()
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: "amd64", RootFS: v1.RootFS{Type: "layers"}, Config: v1.Config{User: "1001:1000", Labels: labels, Env: env}})
	if err != nil {
		w.t.Fatal(err)
	}
	d, err := img.Digest()
	if err != nil {
		w.t.Fatal(err)
	}
	ref, err := name.NewDigest(w.host()+"/"+repository+"@"+d.String(), name.Insecure)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := remote.Write(ref.Tag("latest"), img); err != nil {
		w.t.Fatal(err)
	}
	return ref.Name()
}

// yaml adds objects, and replaces those of the same kind and name.
func (w *world) yaml(documents string) {
	w.t.Helper()
	kinds := map[string]func() runtime.Object{
		"Namespace": func() runtime.Object { return &corev1.Namespace{} }, "ServiceAccount": func() runtime.Object { return &corev1.ServiceAccount{} },
		"Secret": func() runtime.Object { return &corev1.Secret{} }, "ConfigMap": func() runtime.Object { return &corev1.ConfigMap{} },
		"Node": func() runtime.Object { return &corev1.Node{} }, "Pod": func() runtime.Object { return &corev1.Pod{} },
		"Event": func() runtime.Object { return &corev1.Event{} }, "Service": func() runtime.Object { return &corev1.Service{} },
		"PersistentVolumeClaim": func() runtime.Object { return &corev1.PersistentVolumeClaim{} }, "PersistentVolume": func() runtime.Object { return &corev1.PersistentVolume{} },
		"ResourceQuota": func() runtime.Object { return &corev1.ResourceQuota{} }, "StorageClass": func() runtime.Object { return &storagev1.StorageClass{} },
		"EndpointSlice": func() runtime.Object { return &discoveryv1.EndpointSlice{} },
		"Deployment":    func() runtime.Object { return &appsv1.Deployment{} }, "StatefulSet": func() runtime.Object { return &appsv1.StatefulSet{} },
		"Pipeline": func() runtime.Object { return &pipelinev1.Pipeline{} }, "Task": func() runtime.Object { return &pipelinev1.Task{} },
		"PipelineRun": func() runtime.Object { return &pipelinev1.PipelineRun{} }, "TaskRun": func() runtime.Object { return &pipelinev1.TaskRun{} },
		"EventListener": func() runtime.Object { return &triggersv1.EventListener{} }, "Trigger": func() runtime.Object { return &triggersv1.Trigger{} },
		"TriggerBinding": func() runtime.Object { return &triggersv1.TriggerBinding{} }, "TriggerTemplate": func() runtime.Object { return &triggersv1.TriggerTemplate{} },
	}
	for _, doc := range strings.Split(documents, "\n---\n") {
		var head metav1.PartialObjectMetadata
		if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
			w.t.Fatalf("%v in\n%s", err, doc)
		}
		make, ok := kinds[head.Kind]
		if !ok {
			w.t.Fatalf("no kind %q known here", head.Kind)
		}
		o := make()
		if err := yaml.UnmarshalStrict([]byte(doc), o); err != nil {
			w.t.Fatalf("%v in\n%s", err, doc)
		}
		w.remove(head.Kind, head.Name)
		switch {
		case strings.HasPrefix(head.APIVersion, "tekton.dev/"):
			w.tekton = append(w.tekton, o)
		case strings.HasPrefix(head.APIVersion, "triggers.tekton.dev/"):
			w.triggers = append(w.triggers, o)
		default:
			w.kube = append(w.kube, o)
		}
	}
}

func (w *world) remove(kind, name string) {
	keep := func(list []runtime.Object) []runtime.Object {
		var kept []runtime.Object
		for _, o := range list {
			if m := o.(metav1.Object); o.GetObjectKind().GroupVersionKind().Kind != kind || m.GetName() != name {
				kept = append(kept, o)
			}
		}
		return kept
	}
	w.kube, w.tekton, w.triggers = keep(w.kube), keep(w.tekton), keep(w.triggers)
}

func (w *world) doctor() *Doctor {
	kube := fake.NewClientset(w.kube...)
	kube.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		if !strings.HasPrefix(review.Spec.User, "system:serviceaccount:team:") {
			w.t.Errorf("asked what %q may do", review.Spec.User)
		}
		review.Status.Allowed = w.denied == nil || !w.denied(*review.Spec.ResourceAttributes)
		return true, review, nil
	})
	if w.change != nil {
		w.change(kube)
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasSuffix(strings.Split(address, ":")[0], ".svc.cluster.local") {
			address = w.store.Listener.Addr().String() // as a port forward would
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return &Doctor{Kube: kube, Tekton: tektonfake.NewSimpleClientset(w.tekton...), Triggers: triggersfake.NewSimpleClientset(w.triggers...), Now: noon, Dial: dial, InCluster: w.inCluster, Logs: func(pod, container string) []string {
		if w.logs == nil {
			return nil
		}
		return w.logs(pod, container)
	}}
}

// examine runs the doctor: on a run when it has a name.
func (w *world) examine(run string) *Report {
	w.t.Helper()
	o := w.options
	o.Namespace = ns
	if o.Pipeline == "" {
		o.Pipeline = "train-and-promote"
	}
	o.InsecureRegistries = w.insecureHosts
	var r *Report
	var err error
	if run == "" {
		r, err = w.doctor().BeforeStart(w.t.Context(), o)
	} else {
		r, err = w.doctor().Run(w.t.Context(), run, o)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// golden compares what is printed with testdata/NAME.golden, addresses aside.
func (w *world) golden(name string, r *Report) {
	w.t.Helper()
	var out bytes.Buffer
	r.Write(&out)
	got := strings.NewReplacer(w.host(), "REGISTRY", w.store.Listener.Addr().String(), "STORE").Replace(out.String())
	path := filepath.Join("testdata", strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(name)+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatalf("%v (go test -update writes it)", err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		w.t.Errorf("output differs from %s (-want +got):\n%s", path, d)
	}
}

// s3Server answers as a store with one bucket, models, and one pair of keys.
type s3Server struct {
	*httptest.Server
	refuse  string // an error code for every request
	noWrite bool
	objects map[string]bool
}

func newS3Server(t *testing.T) *s3Server {
	s := &s3Server{objects: map[string]bool{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *s3Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fail := func(status int, code string) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>the server's words</Message></Error>", code)
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case s.refuse == "HTML":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html>log in</html>")
	case s.refuse != "":
		fail(http.StatusForbidden, s.refuse)
	case !strings.Contains(r.Header.Get("Authorization"), "Credential=key/"):
		fail(http.StatusForbidden, "InvalidAccessKeyId")
	case bucket == "":
		fmt.Fprint(w, "<ListAllMyBucketsResult><Buckets/></ListAllMyBucketsResult>")
	case bucket != "models":
		fail(http.StatusNotFound, "NoSuchBucket")
	case key == "":
		fmt.Fprint(w, "<ListBucketResult><Name>models</Name></ListBucketResult>")
	case s.noWrite:
		fail(http.StatusForbidden, "AccessDenied")
	case r.Method == http.MethodPut:
		s.objects[key] = true
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	}
}

func basicAuth(user, password string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, ok := r.BasicAuth(); !ok || u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func (w *world) find(kind, name string) *pipelinev1.PipelineRun {
	for _, o := range w.tekton {
		if pr, ok := o.(*pipelinev1.PipelineRun); ok && kind == "PipelineRun" && pr.Name == name {
			return pr
		}
	}
	w.t.Fatalf("no %s %s", kind, name)
	return nil
}

func (w *world) pipelineSpec(text string) *pipelinev1.PipelineSpec {
	var s pipelinev1.PipelineSpec
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		w.t.Fatal(err)
	}
	return &s
}

func (w *world) pipeline() *pipelinev1.Pipeline {
	for _, o := range w.tekton {
		if p, ok := o.(*pipelinev1.Pipeline); ok {
			return p
		}
	}
	w.t.Fatal("no pipeline")
	return nil
}

func param(name, value string) pipelinev1.ParamSpec {
	return pipelinev1.ParamSpec{Name: name, Default: pipelinev1.NewStructuredValues(value)}
}

// optionalCredentials makes the task train do without the Secret of the store.
func (w *world) optionalCredentials() {
	yes := true
	for _, o := range w.tekton {
		if task, ok := o.(*pipelinev1.Task); ok && task.Name == "train" {
			task.Spec.Steps[0].Env[0].ValueFrom.SecretKeyRef.Optional = &yes
		}
	}
}

func (w *world) taskRunSpecs(text string) []pipelinev1.PipelineTaskRunSpec {
	var s []pipelinev1.PipelineTaskRunSpec
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		w.t.Fatal(err)
	}
	return s
}
