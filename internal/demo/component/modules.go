package component

// Modules returns every module of components: the small tools that other steps
// wait for come first.
func Modules() []Module {
	return []Module{
		{
			Name: "cluster",
			Stamps: []Stamp{
				{"k8s.io/component-base/version.gitVersion", "k8s.io/kubernetes"},
				{"github.com/tektoncd/cli/pkg/cmd/version.clientVersion", "github.com/tektoncd/cli"},
				// lifecycle.toml, which names the same version, has no v.
				{"github.com/buildpacks/lifecycle/cmd.Version", "github.com/buildpacks/lifecycle"},
			},
			Programs: []Program{
				{"sigs.k8s.io/kind", "kind"},
				{"./cmd/registry", "registry"},
				{"./cmd/pause", "pause"},
				{"./cmd/coredns", "coredns"},
				{"github.com/buildpacks/lifecycle/cmd/launcher", "launcher"},
				{"github.com/buildpacks/lifecycle/cmd/lifecycle", "lifecycle"},
				{"github.com/versity/versitygw/cmd/versitygw", "versitygw"},
				{"github.com/rancher/local-path-provisioner", "local-path-provisioner"},
				{"k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver"},
				{"k8s.io/kubernetes/cmd/kube-controller-manager", "kube-controller-manager"},
				{"k8s.io/kubernetes/cmd/kube-proxy", "kube-proxy"},
				{"k8s.io/kubernetes/cmd/kube-scheduler", "kube-scheduler"},
				{"k8s.io/kubernetes/cmd/kubeadm", "kubeadm"},
				{"k8s.io/kubernetes/cmd/kubectl", "kubectl"},
				{"k8s.io/kubernetes/cmd/kubelet", "kubelet"},
				{"github.com/tektoncd/cli/cmd/tkn", "tkn"},
				{"github.com/tektoncd/pipeline/cmd/controller", "pipeline-controller"},
				{"github.com/tektoncd/pipeline/cmd/entrypoint", "pipeline-entrypoint"},
				{"github.com/tektoncd/pipeline/cmd/events", "pipeline-events"},
				{"github.com/tektoncd/pipeline/cmd/nop", "pipeline-nop"},
				{"github.com/tektoncd/pipeline/cmd/resolvers", "pipeline-resolvers"},
				{"github.com/tektoncd/pipeline/cmd/sidecarlogresults", "pipeline-sidecarlogresults"},
				{"github.com/tektoncd/pipeline/cmd/webhook", "pipeline-webhook"},
				{"github.com/tektoncd/pipeline/cmd/workingdirinit", "pipeline-workingdirinit"},
				{"github.com/tektoncd/triggers/cmd/controller", "triggers-controller"},
				{"github.com/tektoncd/triggers/cmd/eventlistenersink", "triggers-eventlistenersink"},
				{"github.com/tektoncd/triggers/cmd/interceptors", "triggers-interceptors"},
				{"github.com/tektoncd/triggers/cmd/webhook", "triggers-webhook"},
			},
		},
		{Name: "etcd", Programs: []Program{{"go.etcd.io/etcd/server/v3", "etcd"}}},
		{
			Name: "containerd",
			Tags: []string{"no_aufs", "no_zfs", "no_btrfs", "no_devmapper"},
			Programs: []Program{
				{"github.com/containerd/containerd/v2/cmd/containerd", "containerd"},
				{"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2", "containerd-shim-runc-v2"},
				{"github.com/containerd/containerd/v2/cmd/ctr", "ctr"},
			},
		},
	}
}
