package cluster

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// Host is what a cluster's configuration must take into account.
type Host struct {
	// CgroupV1 says that the kernel has the older control groups, which the
	// kubelet refuses unless told otherwise.
	CgroupV1 bool
	// NoResourceCapability says that containers cannot have CAP_SYS_RESOURCE.
	NoResourceCapability bool
}

// Config is a change to the configuration in kind-config.yaml.
type Config struct {
	Host Host
	// Name of the cluster.
	Name string
	// Image of every node.
	Image string
	// OwnNetwork leaves out kind's default CNI, whose image a node from source
	// does not have: Network sets up the pods' network then.
	OwnNetwork bool
	// Ports are other host ports, by the port in the node.
	Ports map[int]int
}

// Render returns kind's configuration: the file's, with the changes.
func (c Config) Render(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var config map[string]any
	if err := yaml.UnmarshalStrict(data, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	config["name"] = c.Name
	if c.OwnNetwork {
		networking, _ := config["networking"].(map[string]any)
		if networking == nil {
			networking = map[string]any{}
		}
		networking["disableDefaultCNI"] = true
		config["networking"] = networking
	}
	nodes, _ := config["nodes"].([]any)
	if len(nodes) == 0 {
		return nil, fmt.Errorf("%s: it names no nodes", file)
	}
	for _, node := range nodes {
		node, ok := node.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: nodes: each must be an object", file)
		}
		if node["image"] == nil {
			node["image"] = c.Image
		}
		if err := c.movePorts(node); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	c.Host.patch(config)
	return yaml.Marshal(config)
}

func (c Config) movePorts(node map[string]any) error {
	mappings, _ := node["extraPortMappings"].([]any)
	for _, mapping := range mappings {
		mapping, ok := mapping.(map[string]any)
		if !ok {
			return fmt.Errorf("extraPortMappings: each must be an object")
		}
		inside, _ := mapping["containerPort"].(float64)
		if port := c.Ports[int(inside)]; port != 0 {
			mapping["hostPort"] = port
		}
	}
	return nil
}

// patch adds what the host needs.
func (h Host) patch(config map[string]any) {
	kubelet := map[string]any{"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1"}
	if h.CgroupV1 {
		kubelet["failCgroupV1"] = false
	}
	if h.NoResourceCapability {
		// What rootless containers need too: neither a limit nor an OOM score can
		// be raised.
		kubelet["featureGates"] = map[string]any{"KubeletInUserNamespace": true}
		config["containerdConfigPatches"] = appendTo(config["containerdConfigPatches"],
			"[plugins.\"io.containerd.grpc.v1.cri\"]\n  restrict_oom_score_adj = true\n")
	}
	if len(kubelet) > 2 {
		patch, err := yaml.Marshal(kubelet)
		if err != nil {
			panic(err) // a map of strings and booleans
		}
		config["kubeadmConfigPatches"] = appendTo(config["kubeadmConfigPatches"], string(patch))
	}
}

func appendTo(list any, value string) []any {
	values, _ := list.([]any)
	return append(values, value)
}
