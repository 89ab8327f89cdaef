package cluster

import (
	"errors"
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
	if err := c.change(config); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return yaml.Marshal(config)
}

func (c Config) change(config map[string]any) error {
	nodes, err := objects(config, "nodes")
	if err != nil {
		return err
	}
	if len(nodes) == 0 {
		return errors.New("it names no nodes")
	}
	config["name"] = c.Name
	if c.OwnNetwork {
		networking, err := object(config, "networking")
		if err != nil {
			return err
		}
		networking["disableDefaultCNI"] = true
	}
	for _, node := range nodes {
		if node["image"] == nil {
			node["image"] = c.Image
		}
		mappings, err := objects(node, "extraPortMappings")
		if err != nil {
			return fmt.Errorf("nodes: %w", err)
		}
		for _, mapping := range mappings {
			inside, _ := mapping["containerPort"].(float64)
			if port := c.Ports[int(inside)]; port != 0 {
				mapping["hostPort"] = port
			}
		}
	}
	return c.Host.patch(config)
}

// object returns an object in another, made if it is not there.
func object(in map[string]any, key string) (map[string]any, error) {
	if in[key] == nil {
		in[key] = map[string]any{}
	}
	out, ok := in[key].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: want an object", key)
	}
	return out, nil
}

// objects returns a list of objects, empty if it is not there.
func objects(in map[string]any, key string) ([]map[string]any, error) {
	list, ok := in[key].([]any)
	if in[key] != nil && !ok {
		return nil, fmt.Errorf("%s: want a list", key)
	}
	out := make([]map[string]any, len(list))
	for i, item := range list {
		if out[i], ok = item.(map[string]any); !ok {
			return nil, fmt.Errorf("%s: want a list of objects", key)
		}
	}
	return out, nil
}

// patch adds what the host needs.
func (h Host) patch(config map[string]any) error {
	kubelet := map[string]any{"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1"}
	if h.CgroupV1 {
		kubelet["failCgroupV1"] = false
	}
	if h.NoResourceCapability {
		// What rootless containers need too: neither a limit nor an OOM score can
		// be raised.
		kubelet["featureGates"] = map[string]any{"KubeletInUserNamespace": true}
		err := appendTo(config, "containerdConfigPatches",
			"[plugins.\"io.containerd.grpc.v1.cri\"]\n  restrict_oom_score_adj = true\n")
		if err != nil {
			return err
		}
	}
	if len(kubelet) == 2 {
		return nil
	}
	patch, err := yaml.Marshal(kubelet)
	if err != nil {
		return err
	}
	return appendTo(config, "kubeadmConfigPatches", string(patch))
}

// appendTo adds to a list, made if it is not there.
func appendTo(config map[string]any, key, value string) error {
	list, ok := config[key].([]any)
	if config[key] != nil && !ok {
		return fmt.Errorf("%s: want a list", key)
	}
	config[key] = append(list, value)
	return nil
}
