package schedule

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func node(name string, allocatable corev1.ResourceList, change ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name, "disk": "ssd"}},
		Status:     corev1.NodeStatus{Allocatable: allocatable},
	}
	for _, c := range change {
		c(&n)
	}
	return n
}

func pod(name, on string, requests corev1.ResourceList, change ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: on, Containers: []corev1.Container{container("c", requests)}},
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

func inNamespace(ns string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Namespace = ns } }

func phase(ph corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = ph } }

func ownedBy(kind string) func(*corev1.Pod) {
	yes := true
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "x", Controller: &yes}}
	}
}

// Requests hold a node, not use: pods that ended, or wait, or are elsewhere do not.
func TestWhoHoldsTheNode(t *testing.T) {
	c := Cluster{
		Nodes: []corev1.Node{node("n", list("cpu", "2", "memory", "8Gi", "pods", "110"))},
		Pods: []corev1.Pod{
			pod("small", "n", list("cpu", "100m")),
			pod("big", "n", list("cpu", "800m")),
			pod("same-as-big", "n", list("cpu", "800m"), inNamespace("a")),
			pod("proxy", "n", list("cpu", "150m"), ownedBy("DaemonSet")),
			pod("api", "n", list("cpu", "50m"), inNamespace("kube-system")),
			pod("done", "n", list("cpu", "2"), phase(corev1.PodSucceeded)),
			pod("failed", "n", list("cpu", "2"), phase(corev1.PodFailed)),
			pod("elsewhere", "other", list("cpu", "2")),
			pod("waiting", "", list("cpu", "2")),
			pod("idle", "n", nil),
		},
	}
	p := pod("train", "", list("cpu", "1", "memory", "2Gi"))
	v := c.Explain(&p)
	if len(v.Nodes) != 1 || len(v.Nodes[0].Obstacles) != 0 || len(v.Nodes[0].Shortages) != 1 {
		t.Fatalf("%+v", v)
	}
	s := v.Nodes[0].Shortages[0]
	for what, c := range map[string][2]string{
		"resource": {string(s.Resource), "cpu"}, "asked": {s.Requested.String(), "1"}, "allocatable": {s.Allocatable.String(), "2"},
		"held": {s.Held.String(), "1900m"}, "free": {s.Free.String(), "100m"}, "fixed": {s.Fixed.String(), "200m"},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %s, want %s", what, c[0], c[1])
		}
	}
	var order []string
	for _, h := range s.Holders {
		order = append(order, h.Namespace+"/"+h.Name)
	}
	if got, want := strings.Join(order, " "), "a/same-as-big team/big team/proxy team/small kube-system/api"; got != want || s.Pods != 5 {
		t.Errorf("holders: %s (%d), want %s", got, s.Pods, want)
	}
	if _, ok := v.Fits(); ok {
		t.Error("it is said to fit")
	}
}

func TestFitsExactly(t *testing.T) {
	c := Cluster{Nodes: []corev1.Node{node("n", list("cpu", "2", "pods", "2"))}, Pods: []corev1.Pod{pod("a", "n", list("cpu", "1500m"))}}
	p := pod("b", "", list("cpu", "500m", "nvidia.com/gpu", "0"))
	if n, ok := c.Explain(&p).Fits(); !ok || n != "n" {
		t.Errorf("%+v", c.Explain(&p))
	}
}

func TestTheNumberOfPodsIsAResource(t *testing.T) {
	c := Cluster{Nodes: []corev1.Node{node("n", list("cpu", "2", "pods", "1"))}, Pods: []corev1.Pod{pod("a", "n", nil)}}
	p := pod("b", "", nil)
	v := c.Explain(&p)
	if len(v.Nodes[0].Shortages) != 1 || v.Nodes[0].Shortages[0].Resource != "pods" {
		t.Errorf("%+v", v.Nodes[0])
	}
}

func TestNodesThatLackLeastComeFirst(t *testing.T) {
	c := Cluster{Nodes: []corev1.Node{
		node("tainted-and-large", list("cpu", "64", "pods", "9"), func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		}),
		node("far", list("cpu", "4", "memory", "9Gi", "pods", "9")),
		node("near, but without memory", list("cpu", "7", "memory", "7Gi", "pods", "9")),
		node("near", list("cpu", "7", "memory", "9Gi", "pods", "9")),
	}}
	p := pod("p", "", list("cpu", "8", "memory", "8Gi"))
	var names []string
	for _, n := range c.Explain(&p).Lacking() {
		names = append(names, n.Name)
	}
	if got, want := strings.Join(names, "; "), "near; near, but without memory; far"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestObstacles(t *testing.T) {
	always := list("cpu", "4", "pods", "9")
	term := func(app string, change ...func(*corev1.PodAffinityTerm)) []corev1.PodAffinityTerm {
		a := corev1.PodAffinityTerm{TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
		for _, c := range change {
			c(&a)
		}
		return []corev1.PodAffinityTerm{a}
	}
	beside := func(terms []corev1.PodAffinityTerm) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
		}
	}
	apart := func(terms []corev1.PodAffinityTerm) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
		}
	}
	taint := func(key, value string, e corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: e})
		}
	}
	tolerate := func(tol corev1.Toleration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, tol) }
	}
	nodeTerms := func(terms ...corev1.NodeSelectorTerm) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
		}
	}
	expr := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	cordon := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	for name, c := range map[string]struct {
		node   corev1.Node
		pod    corev1.Pod
		others []corev1.Pod
		want   string // part of the one obstacle; empty: none
	}{
		"nothing":  {node("n", always), pod("p", "", nil), nil, ""},
		"cordoned": {node("n", always, cordon), pod("p", "", nil), nil, "cordoned"},
		"cordoned, and its taint says so too": {node("n", always, cordon, taint(corev1.TaintNodeUnschedulable, "", corev1.TaintEffectNoSchedule)),
			pod("p", "", nil), nil, "cordoned"},
		"taint":          {node("n", always, taint("gpu", "a100", corev1.TaintEffectNoSchedule)), pod("p", "", nil), nil, "does not tolerate its taint gpu=a100:NoSchedule"},
		"taint, softly":  {node("n", always, taint("gpu", "a100", corev1.TaintEffectPreferNoSchedule)), pod("p", "", nil), nil, ""},
		"not ready":      {node("n", always, taint(corev1.TaintNodeNotReady, "", corev1.TaintEffectNoExecute)), pod("p", "", nil), nil, "not ready"},
		"disk pressure":  {node("n", always, taint(corev1.TaintNodeDiskPressure, "", corev1.TaintEffectNoSchedule)), pod("p", "", nil), nil, "disk is nearly full"},
		"tolerated":      {node("n", always, taint("gpu", "a100", corev1.TaintEffectNoSchedule)), pod("p", "", nil, tolerate(corev1.Toleration{Key: "gpu", Value: "a100"})), nil, ""},
		"wrong value":    {node("n", always, taint("gpu", "a100", corev1.TaintEffectNoSchedule)), pod("p", "", nil, tolerate(corev1.Toleration{Key: "gpu", Value: "h100"})), nil, "gpu=a100"},
		"tolerates all":  {node("n", always, taint("gpu", "a100", corev1.TaintEffectNoExecute)), pod("p", "", nil, tolerate(corev1.Toleration{Operator: corev1.TolerationOpExists})), nil, ""},
		"nodeSelector":   {node("n", always), pod("p", "", nil, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "nvme"} }), nil, "nodeSelector: disk=nvme"},
		"node affinity":  {node("n", always), pod("p", "", nil, nodeTerms(expr("disk", corev1.NodeSelectorOpIn, "nvme", "tape"))), nil, "disk In nvme,tape"},
		"second term":    {node("n", always), pod("p", "", nil, nodeTerms(expr("disk", corev1.NodeSelectorOpIn, "nvme"), expr("disk", corev1.NodeSelectorOpExists))), nil, ""},
		"empty term":     {node("n", always), pod("p", "", nil, nodeTerms(corev1.NodeSelectorTerm{})), nil, "node affinity"},
		"unreadable":     {node("n", always), pod("p", "", nil, nodeTerms(expr("disk", corev1.NodeSelectorOpGt, "much"))), nil, "node affinity"},
		"greater than":   {node("n", always, func(n *corev1.Node) { n.Labels["cores"] = "16" }), pod("p", "", nil, nodeTerms(expr("cores", corev1.NodeSelectorOpGt, "8"))), nil, ""},
		"field":          {node("n", always), pod("p", "", nil, nodeTerms(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"m"}}}})), nil, "metadata.name In m"},
		"assistant here": {node("n", always), pod("p", "", nil, beside(term("aa"))), []corev1.Pod{pod("aa", "n", nil)}, ""},
		"assistant on another node": {node("n", always), pod("p", "", nil, beside(term("aa"))),
			[]corev1.Pod{pod("aa", "m", nil)}, "must be beside team/aa, which is on node m"},
		"assistant on no node": {node("n", always), pod("p", "", nil, beside(term("aa"))), []corev1.Pod{pod("aa", "", nil)}, "none is on a node"},
		"assistant has ended":  {node("n", always), pod("p", "", nil, beside(term("aa"))), []corev1.Pod{pod("aa", "n", nil, phase(corev1.PodFailed))}, "none is on a node"},
		"assistant in another namespace": {node("n", always), pod("p", "", nil, beside(term("aa"))),
			[]corev1.Pod{pod("aa", "n", nil, inNamespace("x"))}, "none is on a node"},
		"in a namespace that is named": {node("n", always), pod("p", "", nil, beside(term("aa", func(a *corev1.PodAffinityTerm) { a.Namespaces = []string{"x"} }))),
			[]corev1.Pod{pod("aa", "n", nil, inNamespace("x"))}, ""},
		"in all namespaces": {node("n", always), pod("p", "", nil, beside(term("aa", func(a *corev1.PodAffinityTerm) { a.NamespaceSelector = &metav1.LabelSelector{} }))),
			[]corev1.Pod{pod("aa", "n", nil, inNamespace("x"))}, ""},
		"the first of its kind": {node("n", always), pod("p", "", nil, beside(term("p"))), nil, ""},
		"apart from one here":   {node("n", always), pod("p", "", nil, apart(term("q"))), []corev1.Pod{pod("q", "n", nil)}, "may not be beside team/q"},
		"apart from one there":  {node("n", always), pod("p", "", nil, apart(term("q"))), []corev1.Pod{pod("q", "m", nil)}, ""},
		"one here wants to be apart": {node("n", always), pod("p", "", nil),
			[]corev1.Pod{pod("q", "n", nil, apart(term("p")))}, "team/q lets no such pod beside it"},
	} {
		t.Run(name, func(t *testing.T) {
			cl := Cluster{Nodes: []corev1.Node{c.node, node("m", always)}, Pods: c.others}
			got := cl.obstacles(&c.pod, c.node)
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
				t.Errorf("obstacles %q, want %q", got, c.want)
			}
		})
	}
}

func TestVolumeOnAnotherNode(t *testing.T) {
	on := func(host string) corev1.PersistentVolume {
		return corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: []string{host}}},
			}}}},
		}}
	}
	p := pod("p", "", nil, func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "w", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	})
	claim := corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}
	n := node("n", list("pods", "9"))
	for host, blocked := range map[string]bool{"n": false, "m": true} {
		c := Cluster{Nodes: []corev1.Node{n}, Claims: map[string]corev1.PersistentVolumeClaim{"data": claim}, Volumes: map[string]corev1.PersistentVolume{"pv": on(host)}}
		got := c.obstacles(&p, n)
		if (len(got) > 0) != blocked {
			t.Errorf("volume on %s: %q", host, got)
		}
	}
	if got := (Cluster{}).obstacles(&p, n); len(got) > 0 {
		t.Errorf("a claim that is not bound ties to no node: %q", got)
	}
}

func TestRelief(t *testing.T) {
	n := node("n", list("cpu", "4", "memory", "8Gi", "pods", "9"))
	api := pod("api", "n", list("cpu", "1"), inNamespace("kube-system"))
	for name, c := range map[string]struct {
		pods []corev1.Pod
		ask  corev1.ResourceList
		want string // the pods that would have to go; "never" when none would do
	}{
		"the largest is enough":             {[]corev1.Pod{api, pod("a", "n", list("cpu", "1")), pod("b", "n", list("cpu", "2"))}, list("cpu", "2"), "b"},
		"it takes two":                      {[]corev1.Pod{api, pod("a", "n", list("cpu", "1")), pod("b", "n", list("cpu", "2"))}, list("cpu", "3"), "b a"},
		"the node's own pods stay":          {[]corev1.Pod{api, pod("a", "n", list("cpu", "3"))}, list("cpu", "4"), "never"},
		"larger than the node":              {nil, list("cpu", "8"), "never"},
		"one pod holds both that are short": {[]corev1.Pod{pod("a", "n", list("cpu", "2", "memory", "6Gi")), pod("b", "n", list("cpu", "1", "memory", "1Gi"))}, list("cpu", "3", "memory", "4Gi"), "a"},
		"each holds one that is short":      {[]corev1.Pod{pod("a", "n", list("cpu", "3")), pod("b", "n", list("memory", "6Gi"))}, list("cpu", "3", "memory", "4Gi"), "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod("p", "", c.ask)
			v := Cluster{Nodes: []corev1.Node{n}, Pods: c.pods}.Explain(&p)
			holders, enough := v.Lacking()[0].Relief()
			var names []string
			for _, h := range holders {
				names = append(names, h.Name)
			}
			got := strings.Join(names, " ")
			if !enough {
				got = "never"
			}
			if got != c.want {
				t.Errorf("%q would have to go, want %q", got, c.want)
			}
		})
	}
}

func TestRoomAndFreed(t *testing.T) {
	c := Cluster{Nodes: []corev1.Node{node("n", list("cpu", "4", "pods", "9"))}, Pods: []corev1.Pod{
		pod("api", "n", list("cpu", "1"), inNamespace("kube-system")), pod("a", "n", list("cpu", "2"))}}
	p := pod("p", "", list("cpu", "2"))
	n := c.Explain(&p).Nodes[0]
	if room := n.Shortages[0].Room(); room.String() != "3" {
		t.Errorf("room for %s, want 3", room.String())
	}
	if freed := n.Freed("cpu", []Holder{{Namespace: "team", Name: "a"}}); freed.String() != "2" {
		t.Errorf("%s freed, want 2", freed.String())
	}
}
