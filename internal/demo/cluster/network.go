package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/trainyard/trainyard/internal/demo/docker"
)

// Network is the Docker network that nodes, registry and git server share. Its
// addresses are fixed, so that a registry has one name everywhere.
type Network struct {
	Docker docker.CLI
	Name   string
	Subnet netip.Prefix
}

// Address returns the n-th address of the upper half of the network: the lower
// half is Docker's to give.
func (n Network) Address(index byte) netip.Addr {
	address := n.Subnet.Masked().Addr().As4()
	address[3] = 200 + index
	return netip.AddrFrom4(address)
}

// Create makes the network unless it is there.
func (n Network) Create(ctx context.Context) error {
	subnet, err := n.Docker.Run(ctx, "network", "inspect", n.Name, "--format", "{{range .IPAM.Config}}{{.Subnet}}{{end}}")
	switch {
	case docker.Missing(err):
	case err != nil:
		return err
	case subnet != n.Subnet.String():
		return fmt.Errorf("docker's network %s has the subnet %s, not %s: run make down first, or set SUBNET=%s", n.Name, subnet, n.Subnet, subnet)
	default:
		return nil
	}
	lower := netip.PrefixFrom(n.Subnet.Addr(), n.Subnet.Bits()+1)
	_, err = n.Docker.Run(ctx, "network", "create", "--driver=bridge", "--label=dev.trainyard.demo",
		"--subnet="+n.Subnet.String(), "--ip-range="+lower.String(), n.Name)
	if err != nil && strings.Contains(err.Error(), "overlaps") {
		return fmt.Errorf("%w: name a free /24 network with SUBNET=…", err)
	}
	return err
}

// node is what Network needs to know of a cluster's node.
type node struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		PodCIDR string `json:"podCIDR"`
	} `json:"spec"`
	Status struct {
		Addresses []struct {
			Type    string `json:"type"`
			Address string `json:"address"`
		} `json:"addresses"`
	} `json:"status"`
}

func (n node) address() string {
	for _, address := range n.Status.Addresses {
		if address.Type == "InternalIP" {
			return address.Address
		}
	}
	return ""
}

// ConnectPods gives every node a CNI configuration for its range of pod
// addresses, and routes to the other nodes' pods: what kind's default CNI does.
// nodes is the JSON list that kubectl prints.
func (n Network) ConnectPods(ctx context.Context, nodes []byte) error {
	var list struct {
		Items []node `json:"items"`
	}
	if err := json.Unmarshal(nodes, &list); err != nil {
		return fmt.Errorf("read the cluster's nodes: %w", err)
	}
	if len(list.Items) == 0 {
		return errors.New("the cluster has no nodes")
	}
	// All before the first: a half connected cluster is hard to tell from a whole.
	for _, this := range list.Items {
		if this.Spec.PodCIDR == "" {
			return fmt.Errorf("node %s has no range of pod addresses yet", this.Metadata.Name)
		}
		if this.address() == "" {
			return fmt.Errorf("node %s has no address of its own yet", this.Metadata.Name)
		}
	}
	for _, this := range list.Items {
		for _, other := range list.Items {
			if other.Metadata.Name == this.Metadata.Name {
				continue
			}
			_, err := n.Docker.Run(ctx, "exec", this.Metadata.Name, "ip", "route", "replace", other.Spec.PodCIDR, "via", other.address())
			if err != nil {
				return err
			}
		}
		config, err := cni(this.Spec.PodCIDR)
		if err != nil {
			return err
		}
		// Written under another name first: containerd watches the folder.
		_, err = n.Docker.Pipe(ctx, strings.NewReader(config), "exec", "--interactive", this.Metadata.Name,
			"sh", "-euc", "cat >/etc/cni/net.d/.pods && mv /etc/cni/net.d/.pods /etc/cni/net.d/10-pods.conflist")
		if err != nil {
			return err
		}
	}
	return nil
}

// cni is a network configuration with the plugins that kind's own CNI uses: a
// pair of interfaces for each pod, no bridge, so that a pod which calls its own
// service is reached without the bridge's netfilter.
func cni(podCIDR string) (string, error) {
	type object map[string]any
	out, err := json.MarshalIndent(object{
		"cniVersion": "1.0.0",
		"name":       "pods",
		"plugins": []object{
			{
				"type":   "ptp",
				"ipMasq": true,
				"ipam": object{
					"type":   "host-local",
					"ranges": [][]object{{{"subnet": podCIDR}}},
					"routes": []object{{"dst": "0.0.0.0/0"}},
				},
			},
			{"type": "portmap", "capabilities": object{"portMappings": true}},
		},
	}, "", "  ")
	return string(out), err
}
