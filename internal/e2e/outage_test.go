//go:build e2e

package e2e

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// outage is something that a run needs and does not get.
type outage struct {
	task, step string // the first to fail; no step where none began
	log        string // what its step prints, or else what Tekton says of the task
	reasons    string // what the run's results say
	before     string // what yard doctor says before a start, with beforeArgs
	beforeArgs []string
	after      string // what yard doctor says of the run
}

// check starts a run and makes sure that it fails soon, says why in all places where
// somebody may look, and promotes nothing.
func (s stages) check(t *testing.T, o outage, run *pipelinev1.PipelineRun, meanwhile func()) {
	t.Helper()
	if o.before != "" {
		s.finds(t, o.before, o.beforeArgs...)
	}
	began := time.Now()
	created := s.create(t, run)
	if meanwhile != nil {
		meanwhile()
	}
	run = s.wait(t, 20*time.Minute, created)
	t.Logf("failed after %v: %v", time.Since(began).Round(time.Second), results(run))
	if !run.Status.GetCondition("Succeeded").IsFalse() {
		t.Fatalf("the run is %s", message(run))
	}
	failed := s.tasks(t, run.Name)[o.task]
	if !failed.Status.GetCondition("Succeeded").IsFalse() {
		t.Fatalf("task %s is %+v", o.task, failed.Status.GetCondition("Succeeded"))
	}
	log := failed.Status.GetCondition("Succeeded").Message
	if o.step != "" {
		log = s.log(t, failed, o.step)
	}
	if !strings.Contains(log, o.log) {
		t.Errorf("task %s does not say %q:\n%s", o.task, o.log, log)
	}
	if got := results(run); !strings.Contains(got["reasons"], o.reasons) || got["verdict"] == "pass" || got["model-uri"] != "" {
		t.Errorf("results %v, want reasons with %q", got, o.reasons)
	}
	s.finds(t, o.after, run.Name, "--port-forward")
	s.checkNothingPromoted(t)
}

func TestOutages(t *testing.T) {
	e := connect(t)
	e.trainer(t) // built once, before those that need it begin together
	for name, test := range map[string]func(*testing.T, env){
		"the registry to push to is down":   registryDown,
		"the registry to pull from is down": imageGone,
		"the store goes down during a run":  storeDown,
		"the store's secret key is wrong":   storeSecret,
		"the volume is full":                volumeFull,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, e)
		})
	}
}

// nobody is an address of the demo's network where nothing listens.
func (e env) nobody(t *testing.T) string {
	t.Helper()
	host, _, err := net.SplitHostPort(e.Registry)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(host, "5999")
}

func registryDown(t *testing.T, e env) {
	s := e.stages(t)
	e.applyTasks(t, s.namespace)
	s.putCorpus(t)
	dead := e.nobody(t)
	image := dead + "/e2e/trainer:test"
	params := with(s.small(s.sourceAndBuild(t)...), param("image", image), param("insecure-registries", dead+","+e.Registry))
	run := s.pinned("registry-down", params)
	run.Spec.PipelineRef.Name = "train-and-promote"
	s.check(t, outage{
		task: "build-image", step: "plan",
		log:        "dial tcp " + dead + ": connect: connection refused",
		reasons:    "build-image failed",
		beforeArgs: []string{"--image=" + image, "--builder=" + e.Images["builder"], "--insecure-registry=" + dead, "--insecure-registry=" + e.Registry, "--port-forward"},
		before:     "dial tcp " + dead + ": connect: connection refused",
		after:      "nothing listens at this address: the server is down or the port is wrong",
	}, run, nil)
}

func imageGone(t *testing.T, e env) {
	s := e.stages(t)
	e.applyTasks(t, s.namespace)
	dead := e.nobody(t)
	s.image = dead + "/e2e/trainer@sha256:" + strings.Repeat("0", 64)
	s.check(t, outage{
		task:    "prepare",
		log:     "dial tcp " + dead + ": connect: connection refused",
		reasons: "prepare failed",
		before:  "dial tcp " + dead + ": connect: connection refused", beforeArgs: []string{
			"--pipeline=train-pinned", "--image=" + s.image, "--insecure-registry=" + dead, "--port-forward",
		},
		after: "dial tcp " + dead + ": connect: connection refused",
	}, s.pinned("image-gone", s.small()), nil)
}

// storeDown has a Service of its own before the demo's S3 server, which it takes away
// while the training runs.
func storeDown(t *testing.T, e env) {
	s := e.pinnedStages(t)
	cut := s.ownService(t)
	run := s.pinned("store-down", s.small())
	s.check(t, outage{
		task: "evaluate", step: "evaluate",
		log:     "the server cannot be reached or gave no answer: check endpoint, network and certificates: dial tcp",
		reasons: "evaluate failed: baseline: ",
		after:   "the store is down: no pod behind Service " + s.namespace + "/store is ready",
	}, run, func() {
		s.atStep(t, run.Name, 1)
		cut()
	})
	// Training itself has the volume.
	if log := s.log(t, s.tasks(t, run.Name)["train"], "train"); !strings.Contains(log, "checkpoint not copied to the store") {
		t.Errorf("training does not say that it copied nothing:\n%s", log)
	}
	s.finds(t, "the store is down: no pod behind Service "+s.namespace+"/store is ready", "--pipeline=train-pinned")
}

// ownService makes ConfigMap trainyard-store name a Service of the namespace, and
// returns what takes the server from behind it.
func (s stages) ownService(t *testing.T) (cut func()) {
	t.Helper()
	address, err := url.Parse(s.S3InCluster)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseInt(address.Port(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	port := int32(number)
	name, namespace, _ := strings.Cut(address.Hostname(), ".")
	namespace, _, _ = strings.Cut(namespace, ".")
	behind, err := s.kube.CoreV1().Services(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, services, endpoints := t.Context(), s.kube.CoreV1().Services(s.namespace), s.kube.DiscoveryV1().EndpointSlices(s.namespace)
	ports := []corev1.ServicePort{{Name: "http", Port: port}}
	if _, err := services.Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "store"}, Spec: corev1.ServiceSpec{Ports: ports}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods, err := s.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: behind.Spec.Selector})})
	if err != nil || len(pods.Items) == 0 {
		t.Fatalf("%d pods of the store, %v", len(pods.Items), err)
	}
	pod := pods.Items[0].Status.PodIP
	http := "http"
	if _, err := endpoints.Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "store", Labels: map[string]string{discoveryv1.LabelServiceName: "store"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{pod}}},
		Ports:       []discoveryv1.EndpointPort{{Name: &http, Port: &port}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.setStore(t, "endpoint", "http://store."+s.namespace+".svc.cluster.local:"+address.Port())
	return func() {
		if err := endpoints.Delete(ctx, "store", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func storeSecret(t *testing.T, e env) {
	s := e.pinnedStages(t)
	secrets := s.kube.CoreV1().Secrets(s.namespace)
	secret, err := secrets.Get(t.Context(), "s3-credentials", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret.Data["secret-access-key"] = []byte("not-the-key")
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	const wrong = "the store knows the access key, but the secret key is wrong"
	s.check(t, outage{
		task: "prepare", step: "prepare",
		log:     "check the access key, its secret and the permissions",
		reasons: "prepare failed: ",
		before:  wrong, beforeArgs: []string{"--pipeline=train-pinned", "--port-forward"},
		after: wrong,
	}, s.pinned("wrong-secret", s.small()), nil)
}

func volumeFull(t *testing.T, e env) {
	s := e.pinnedStages(t)
	// Enough for the data, too little for a checkpoint.
	s.tinyVolume(t, "tiny", 4<<20)
	run := s.pinned("volume-full", s.small())
	run.Spec.Workspaces = []pipelinev1.WorkspaceBinding{claimed("tiny")}
	s.check(t, outage{
		task: "train", step: "train",
		log:     "no space left on device",
		reasons: "no space left on device",
		after:   "a disk is full",
	}, run, nil)
}

// claimed binds the workspace of a run to a claim that exists.
func claimed(claim string) pipelinev1.WorkspaceBinding {
	return pipelinev1.WorkspaceBinding{Name: "shared", PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}
}

// tinyVolume makes a volume of some bytes in the node's memory, and a claim that has it.
func (s stages) tinyVolume(t *testing.T, claim string, bytes int64) {
	t.Helper()
	node, volume := s.Name+"-control-plane", "e2e-"+s.namespace
	folder := "/var/lib/" + volume
	docker := func(ctx context.Context, args ...string) error {
		_, err := s.try(ctx, s.Checkout, nil, "docker", append([]string{"exec", node}, args...)...)
		return err
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.kube.CoreV1().PersistentVolumes().Delete(ctx, volume, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		// Pods that have ended still hold it.
		if err := docker(ctx, "umount", "--lazy", folder); err != nil {
			t.Error(err)
		}
		if err := docker(ctx, "rmdir", folder); err != nil {
			t.Error(err)
		}
	})
	for _, args := range [][]string{
		{"mkdir", folder},
		{"mount", "-t", "tmpfs", "-o", "mode=2775,gid=1000,size=" + strconv.FormatInt(bytes, 10), "tmpfs", folder},
	} {
		if err := docker(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	directory, none := corev1.HostPathDirectory, ""
	modes, size := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(bytes, resource.BinarySI)}
	if _, err := s.kube.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volume},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:               &corev1.ObjectReference{Namespace: s.namespace, Name: claim},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder, Type: &directory}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.kube.CoreV1().PersistentVolumeClaims(s.namespace).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: claim},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, StorageClassName: &none, VolumeName: volume,
			Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
