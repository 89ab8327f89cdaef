package schedule

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// list reads pairs of a resource and a quantity.
func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func container(name string, requests corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests}}
}

func sidecar(name string, requests corev1.ResourceList) corev1.Container {
	c, always := container(name, requests), corev1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
	return c
}

func same(t *testing.T, got, want corev1.ResourceList) {
	t.Helper()
	for name, w := range want {
		if g := got[name]; g.Cmp(w) != 0 {
			t.Errorf("%s: %s, want %s", name, g.String(), w.String())
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is not wanted", name)
		}
	}
}

// The numbers are those of the table that Kubernetes checks its own arithmetic
// with (component-helpers v0.36, resource/helpers_test.go) and of KEP-753; the
// rules were also compared with it on 200,000 random pods.
func TestRequestsFollowTheScheduler(t *testing.T) {
	cpu := func(q string) corev1.ResourceList { return list("cpu", q) }
	for name, c := range map[string]struct {
		pod  corev1.Pod
		want corev1.ResourceList
	}{
		"containers add up": {corev1.Pod{Spec: corev1.PodSpec{
			Containers: []corev1.Container{container("a", list("cpu", "1", "memory", "2Gi")), container("b", cpu("500m"))},
		}}, list("cpu", "1500m", "memory", "2Gi")},
		"a larger init container counts alone": {corev1.Pod{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{container("i", cpu("4"))},
			Containers:     []corev1.Container{container("a", cpu("1"))},
		}}, cpu("4")},
		"larger containers count": {corev1.Pod{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{container("i", cpu("2"))},
			Containers:     []corev1.Container{container("a", cpu("2")), container("b", cpu("3"))},
		}}, cpu("5")},
		"init containers do not add up": {corev1.Pod{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{container("i", cpu("3")), container("j", cpu("4"))},
			Containers:     []corev1.Container{container("a", cpu("1"))},
		}}, cpu("4")},
		"overhead comes on top": {corev1.Pod{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{container("i", cpu("2"))},
			Containers:     []corev1.Container{container("a", cpu("2")), container("b", cpu("3"))},
			Overhead:       list("cpu", "1", "memory", "1Gi"),
		}}, list("cpu", "6", "memory", "1Gi")},
		"a sidecar stays beside the containers": {corev1.Pod{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{sidecar("s", cpu("1"))},
			Containers:     []corev1.Container{container("a", cpu("1"))},
		}}, cpu("2")},
		// 3 sidecars of 1, 2 and 3 and init containers between them: the third
		// init container runs beside all of them and needs the most.
		"init containers run beside the sidecars before them": {corev1.Pod{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{
				container("i1", cpu("5")), sidecar("s1", cpu("1")), container("i2", cpu("100m")), sidecar("s2", cpu("2")),
				container("i3", cpu("2")), sidecar("s3", cpu("3")), container("i4", cpu("5")),
			},
			Containers: []corev1.Container{container("a", cpu("1"))},
		}}, cpu("11")},
		"an init container before the sidecars does not see them": {corev1.Pod{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{container("i1", cpu("5")), sidecar("s1", cpu("3"))},
			Containers:     []corev1.Container{container("a", cpu("1"))},
		}}, cpu("5")},
		"a request of the whole pod replaces the sum": {corev1.Pod{Spec: corev1.PodSpec{
			Resources:  &corev1.ResourceRequirements{Requests: list("cpu", "3", "nvidia.com/gpu", "9")},
			Containers: []corev1.Container{container("a", list("cpu", "1", "memory", "1Gi", "nvidia.com/gpu", "1"))},
		}}, list("cpu", "3", "memory", "1Gi", "nvidia.com/gpu", "1")},
		"nothing asked for": {corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}}}, list()},
		"a resize holds the largest of wanted, granted and had": {corev1.Pod{
			Spec: corev1.PodSpec{Containers: []corev1.Container{container("a", list("cpu", "30m", "memory", "20M"))}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name: "a", AllocatedResources: list("cpu", "20m", "memory", "10M"),
				Resources: &corev1.ResourceRequirements{Requests: list("cpu", "10m", "memory", "30M")},
			}}},
		}, list("cpu", "30m", "memory", "30M")},
		"a resize that cannot be holds what it has": {corev1.Pod{
			Spec: corev1.PodSpec{Containers: []corev1.Container{container("a", cpu("4"))}},
			Status: corev1.PodStatus{
				Conditions:        []corev1.PodCondition{{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible}},
				ContainerStatuses: []corev1.ContainerStatus{{Name: "a", Resources: &corev1.ResourceRequirements{Requests: cpu("2")}}},
			},
		}, cpu("2")},
	} {
		t.Run(name, func(t *testing.T) { same(t, Requests(&c.pod), c.want) })
	}
}

func TestRequestsLeaveThePodAsItWas(t *testing.T) {
	p := corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{sidecar("s", list("cpu", "1"))},
		Containers:     []corev1.Container{container("a", list("cpu", "1")), container("b", list("cpu", "1"))},
		Overhead:       list("cpu", "1"),
	}}
	before := p.DeepCopy()
	Requests(&p)
	same(t, p.Spec.Containers[0].Resources.Requests, before.Spec.Containers[0].Resources.Requests)
	same(t, p.Spec.InitContainers[0].Resources.Requests, before.Spec.InitContainers[0].Resources.Requests)
	same(t, p.Spec.Overhead, before.Spec.Overhead)
}

func TestAmount(t *testing.T) {
	for _, c := range []struct{ name, q, want string }{
		{"cpu", "8", "8 CPU"},
		{"cpu", "800m", "800m CPU"},
		{"cpu", "1150m", "1150m CPU"},
		{"cpu", "0", "0 CPU"},
		{"cpu", "-350m", "-350m CPU"},
		{"memory", "6Gi", "6Gi of memory"},
		{"memory", "1536Mi", "1.5Gi of memory"},
		{"memory", "16384256Ki", "15.6Gi of memory"},
		{"memory", "100Gi", "100Gi of memory"},
		{"memory", "1023", "1023 of memory"},
		{"memory", "1G", "953Mi of memory"},
		{"memory", "-1Gi", "-1Gi of memory"},
		{"memory", "4Ei", "4Ei of memory"},
		{"ephemeral-storage", "10Gi", "10Gi of ephemeral storage"},
		{"nvidia.com/gpu", "2", "2 nvidia.com/gpu"},
		{"pods", "110", "110 pods"},
	} {
		if got := Amount(corev1.ResourceName(c.name), resource.MustParse(c.q)); got != c.want {
			t.Errorf("%s %s is written %q, want %q", c.q, c.name, got, c.want)
		}
	}
}
