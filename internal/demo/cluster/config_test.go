package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"sigs.k8s.io/yaml"
)

// kindConfig has the fields of kind.x-k8s.io/v1alpha4 that the demo's file and
// its changes may use: kind refuses others too.
type kindConfig struct {
	Kind                    string          `json:"kind"`
	APIVersion              string          `json:"apiVersion"`
	Name                    string          `json:"name"`
	Nodes                   []kindNode      `json:"nodes"`
	Networking              kindNetworking  `json:"networking"`
	FeatureGates            map[string]bool `json:"featureGates"`
	KubeadmConfigPatches    []string        `json:"kubeadmConfigPatches"`
	ContainerdConfigPatches []string        `json:"containerdConfigPatches"`
}

type kindNode struct {
	Role              string            `json:"role"`
	Image             string            `json:"image"`
	Labels            map[string]string `json:"labels"`
	ExtraPortMappings []kindPort        `json:"extraPortMappings"`
}

type kindPort struct {
	ContainerPort int32  `json:"containerPort"`
	HostPort      int32  `json:"hostPort"`
	ListenAddress string `json:"listenAddress"`
}

type kindNetworking struct {
	DisableDefaultCNI bool   `json:"disableDefaultCNI"`
	PodSubnet         string `json:"podSubnet"`
}

// real is the file at the top of the repository.
const real = "../../../kind-config.yaml"

func render(t *testing.T, file string, config Config) kindConfig {
	t.Helper()
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := config.Render(file)
	if err != nil {
		t.Fatal(err)
	}
	var got kindConfig
	if err := yaml.UnmarshalStrict(data, &got); err != nil {
		t.Fatalf("%v in:\n%s", err, data)
	}
	after, err := os.ReadFile(file)
	if err != nil || string(after) != string(before) {
		t.Errorf("the file itself was changed (%v)", err)
	}
	return got
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kind-config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRenderOfTheDemosFile(t *testing.T) {
	got := render(t, real, Config{
		Name: "second", Image: "trainyard/node:v1", Ports: map[int]int{30070: 17070, 30080: 8080},
	})
	want := kindConfig{
		Kind: "Cluster", APIVersion: "kind.x-k8s.io/v1alpha4", Name: "second",
		Nodes: []kindNode{{
			Role: "control-plane", Image: "trainyard/node:v1",
			ExtraPortMappings: []kindPort{{30070, 17070, "127.0.0.1"}, {30080, 8080, "127.0.0.1"}},
		}},
		ContainerdConfigPatches: got.ContainerdConfigPatches,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(got.ContainerdConfigPatches) != 1 {
		t.Fatalf("%d patches of containerd's configuration", len(got.ContainerdConfigPatches))
	}
	var patch struct {
		Plugins map[string]struct {
			Registry struct {
				ConfigPath string `toml:"config_path"`
			} `toml:"registry"`
		} `toml:"plugins"`
	}
	if err := toml.Unmarshal([]byte(got.ContainerdConfigPatches[0]), &patch); err != nil {
		t.Fatal(err)
	}
	if path := patch.Plugins["io.containerd.grpc.v1.cri"].Registry.ConfigPath; path != "/etc/containerd/certs.d" {
		t.Errorf("containerd reads %q", path)
	}
}

func TestRenderForEveryHost(t *testing.T) {
	for _, v1 := range []bool{false, true} {
		for _, less := range []bool{false, true} {
			for _, own := range []bool{false, true} {
				t.Run(fmt.Sprintf("cgroup v1 %v, no resource capability %v, own network %v", v1, less, own), func(t *testing.T) {
					got := render(t, real, Config{Host: Host{CgroupV1: v1, NoResourceCapability: less}, OwnNetwork: own})
					if got.Networking.DisableDefaultCNI != own {
						t.Errorf("kind's CNI is left out: %v", !own)
					}
					wantKubelet := map[string]any{}
					if v1 {
						wantKubelet["failCgroupV1"] = false
					}
					if less {
						wantKubelet["featureGates"] = map[string]any{"KubeletInUserNamespace": true}
					}
					if diff := cmp.Diff(wantKubelet, kubelet(t, got)); diff != "" {
						t.Errorf("the kubelet's configuration: %s", diff)
					}
					if adjusted := restrictsOOMScore(t, got); adjusted != less {
						t.Errorf("restrict_oom_score_adj is %v", adjusted)
					}
				})
			}
		}
	}
}

// kubelet is what the patches say to the kubelet.
func kubelet(t *testing.T, config kindConfig) map[string]any {
	t.Helper()
	out := map[string]any{}
	if len(config.KubeadmConfigPatches) == 0 {
		return out
	}
	if len(config.KubeadmConfigPatches) > 1 {
		t.Fatalf("%d patches, want one", len(config.KubeadmConfigPatches))
	}
	if err := yaml.UnmarshalStrict([]byte(config.KubeadmConfigPatches[0]), &out); err != nil {
		t.Fatal(err)
	}
	// kind finds what to patch by these.
	if out["kind"] != "KubeletConfiguration" || out["apiVersion"] != "kubelet.config.k8s.io/v1beta1" {
		t.Errorf("a patch of %v %v", out["apiVersion"], out["kind"])
	}
	delete(out, "kind")
	delete(out, "apiVersion")
	return out
}

func restrictsOOMScore(t *testing.T, config kindConfig) bool {
	t.Helper()
	for _, text := range config.ContainerdConfigPatches {
		var patch struct {
			Plugins map[string]struct {
				Restrict bool `toml:"restrict_oom_score_adj"`
			} `toml:"plugins"`
		}
		if err := toml.Unmarshal([]byte(text), &patch); err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		if patch.Plugins["io.containerd.grpc.v1.cri"].Restrict {
			return true
		}
	}
	return false
}

func TestRenderKeepsWhatTheFileSays(t *testing.T) {
	file := write(t, `
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
networking:
  podSubnet: 10.1.0.0/16
kubeadmConfigPatches: ["kind: InitConfiguration"]
containerdConfigPatches: ["version = 2"]
nodes:
  - role: control-plane
    image: my/node:1
    extraPortMappings:
      - containerPort: 30070
        hostPort: 1
      - containerPort: 443
        hostPort: 2
  - role: worker
    labels: {disk: fast}
`)
	got := render(t, file, Config{
		Host: Host{CgroupV1: true, NoResourceCapability: true}, Name: "n", Image: "ours:1", OwnNetwork: true, Ports: map[int]int{30070: 7171, 30080: 8181},
	})
	want := kindConfig{
		Kind: "Cluster", APIVersion: "kind.x-k8s.io/v1alpha4", Name: "n",
		Networking: kindNetworking{DisableDefaultCNI: true, PodSubnet: "10.1.0.0/16"},
		Nodes: []kindNode{
			{Role: "control-plane", Image: "my/node:1", ExtraPortMappings: []kindPort{{30070, 7171, ""}, {443, 2, ""}}},
			{Role: "worker", Image: "ours:1", Labels: map[string]string{"disk": "fast"}},
		},
		KubeadmConfigPatches:    []string{"kind: InitConfiguration", got.KubeadmConfigPatches[len(got.KubeadmConfigPatches)-1]},
		ContainerdConfigPatches: []string{"version = 2", got.ContainerdConfigPatches[len(got.ContainerdConfigPatches)-1]},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRenderRefuses(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"an empty file":                  {"", "names no nodes"},
		"a comment alone":                {"# nothing\n", "names no nodes"},
		"a list":                         {"- a\n", "cannot unmarshal"},
		"no YAML":                        {"{", "yaml"},
		"a key twice":                    {"name: a\nname: b\nnodes: [{}]\n", "name"},
		"no nodes":                       {"kind: Cluster\nnodes: []\n", "names no nodes"},
		"nodes that are an object":       {"nodes: {role: worker}\n", "nodes: want a list"},
		"a node that is a word":          {"nodes: [worker]\n", "nodes: want a list of objects"},
		"a node of nothing":              {"nodes:\n  -\n", "nodes: want a list of objects"},
		"ports that are a number":        {"nodes: [{extraPortMappings: 80}]\n", "extraPortMappings: want a list"},
		"a port that is a number":        {"nodes: [{extraPortMappings: [80]}]\n", "extraPortMappings: want a list of objects"},
		"a network that is a word":       {"networking: none\nnodes: [{}]\n", "networking: want an object"},
		"kubeadm patches in one text":    {"kubeadmConfigPatches: a\nnodes: [{}]\n", "kubeadmConfigPatches: want a list"},
		"containerd patches in one text": {"containerdConfigPatches: a\nnodes: [{}]\n", "containerdConfigPatches: want a list"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := write(t, test.text)
			data, err := Config{Host: Host{true, true}, OwnNetwork: true}.Render(file)
			if err == nil {
				t.Fatalf("it gives:\n%s", data)
			}
			if !strings.HasPrefix(err.Error(), file+": ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with the file and %q", err, test.want)
			}
		})
	}
	if _, err := (Config{}).Render(filepath.Join(t.TempDir(), "none.yaml")); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// FuzzRender: whatever the file says, the result is YAML with the name.
func FuzzRender(f *testing.F) {
	for _, text := range []string{
		"nodes: [{role: worker}]\n", "nodes: [{extraPortMappings: [{containerPort: 30070}]}]\n", "nodes: [{extraPortMappings: [{containerPort: -1e99}]}]\n",
		"", "a: &a [*a]\nnodes: [{}]\n", "name: 1\nnodes: [{image: 2}]\nkubeadmConfigPatches: [1]\n",
	} {
		f.Add(text)
	}
	file := filepath.Join(f.TempDir(), "kind-config.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		data, err := Config{Host: Host{true, true}, Name: "fuzz", OwnNetwork: true, Ports: map[int]int{30070: 1}}.Render(file)
		if err != nil {
			return
		}
		var got struct {
			Name string `json:"name"`
		}
		if err := yaml.Unmarshal(data, &got); err != nil || got.Name != "fuzz" {
			t.Errorf("%q gives %v, name %q:\n%s", text, err, got.Name, data)
		}
	})
}
