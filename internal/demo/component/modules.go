package component

// Modules returns every module of components: the small tools that other steps
// wait for come first.
func Modules() []Module {
	return []Module{
		{
			Name: "cluster",
			Stamps: []Stamp{
				{Variable: "k8s.io/component-base/version.gitVersion", Module: "k8s.io/kubernetes"},
				{Variable: "github.com/tektoncd/cli/pkg/cmd/version.clientVersion", Module: "github.com/tektoncd/cli"},
				// lifecycle.toml, which names the same version, has no v.
				{Variable: "github.com/buildpacks/lifecycle/cmd.Version", Module: "github.com/buildpacks/lifecycle"},
			},
			Programs: []Program{
				{Package: "sigs.k8s.io/kind", Name: "kind"},
				{Package: "./cmd/registry", Name: "registry"},
				{Package: "./cmd/pause", Name: "pause"},
				{Package: "./cmd/coredns", Name: "coredns"},
				{Package: "github.com/buildpacks/lifecycle/cmd/launcher", Name: "launcher"},
				{Package: "github.com/buildpacks/lifecycle/cmd/lifecycle", Name: "lifecycle"},
				{Package: "github.com/versity/versitygw/cmd/versitygw", Name: "versitygw"},
				{Package: "github.com/rancher/local-path-provisioner", Name: "local-path-provisioner", Alone: true},
				{Package: "k8s.io/kubernetes/cmd/kube-apiserver", Name: "kube-apiserver"},
				{Package: "k8s.io/kubernetes/cmd/kube-controller-manager", Name: "kube-controller-manager"},
				{Package: "k8s.io/kubernetes/cmd/kube-proxy", Name: "kube-proxy"},
				{Package: "k8s.io/kubernetes/cmd/kube-scheduler", Name: "kube-scheduler"},
				{Package: "k8s.io/kubernetes/cmd/kubeadm", Name: "kubeadm"},
				{Package: "k8s.io/kubernetes/cmd/kubectl", Name: "kubectl"},
				{Package: "k8s.io/kubernetes/cmd/kubelet", Name: "kubelet"},
				{Package: "github.com/tektoncd/cli/cmd/tkn", Name: "tkn"},
				{Package: "github.com/tektoncd/pipeline/cmd/controller", Name: "pipeline-controller"},
				{Package: "github.com/tektoncd/pipeline/cmd/entrypoint", Name: "pipeline-entrypoint"},
				{Package: "github.com/tektoncd/pipeline/cmd/events", Name: "pipeline-events"},
				{Package: "github.com/tektoncd/pipeline/cmd/nop", Name: "pipeline-nop"},
				{Package: "github.com/tektoncd/pipeline/cmd/resolvers", Name: "pipeline-resolvers"},
				{Package: "github.com/tektoncd/pipeline/cmd/sidecarlogresults", Name: "pipeline-sidecarlogresults"},
				{Package: "github.com/tektoncd/pipeline/cmd/webhook", Name: "pipeline-webhook"},
				{Package: "github.com/tektoncd/pipeline/cmd/workingdirinit", Name: "pipeline-workingdirinit"},
				{Package: "github.com/tektoncd/triggers/cmd/controller", Name: "triggers-controller"},
				{Package: "github.com/tektoncd/triggers/cmd/eventlistenersink", Name: "triggers-eventlistenersink"},
				{Package: "github.com/tektoncd/triggers/cmd/interceptors", Name: "triggers-interceptors"},
				{Package: "github.com/tektoncd/triggers/cmd/webhook", Name: "triggers-webhook"},
			},
		},
		{Name: "etcd", Programs: []Program{{Package: "go.etcd.io/etcd/server/v3", Name: "etcd"}}},
		{
			Name: "containerd",
			Tags: []string{"no_aufs", "no_zfs", "no_btrfs", "no_devmapper"},
			Programs: []Program{
				{Package: "github.com/containerd/containerd/v2/cmd/containerd", Name: "containerd"},
				{Package: "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2", Name: "containerd-shim-runc-v2"},
				{Package: "github.com/containerd/containerd/v2/cmd/ctr", Name: "ctr"},
			},
		},
	}
}
