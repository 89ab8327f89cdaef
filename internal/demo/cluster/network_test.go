package cluster

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/trainyard/internal/demo/docker"
)

// recorder is a docker command that writes its calls, with what they get on
// standard input, into a file, and then runs a script.
type recorder struct {
	docker.CLI
	t     *testing.T
	calls string
}

func record(t *testing.T, script string) recorder {
	t.Helper()
	folder := t.TempDir()
	r := recorder{docker.CLI{Command: filepath.Join(folder, "docker")}, t, filepath.Join(folder, "calls")}
	text := "#!/bin/sh\ncalls=" + r.calls + `
{ printf '%s' "$1"; shift; for arg; do printf '|%s' "$arg"; done; echo; } >>"$calls"
` + script
	if err := os.WriteFile(r.Command, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return r
}

// lines are the calls, one a line.
func (r recorder) lines() []string {
	r.t.Helper()
	data, err := os.ReadFile(r.calls)
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func network(r recorder) Network {
	return Network{Docker: r.CLI, Name: "trainyard", Subnet: netip.MustParsePrefix("172.30.77.0/24")}
}

func TestAddressesAreOfTheUpperHalf(t *testing.T) {
	n := Network{Subnet: netip.MustParsePrefix("10.1.2.0/24")}
	if got := n.Address(0).String(); got != "10.1.2.200" { // docs/demo.md names it
		t.Errorf("the first is %s", got)
	}
	if got := n.Address(1).String(); got != "10.1.2.201" {
		t.Errorf("the second is %s", got)
	}
	dockers := netip.MustParsePrefix("10.1.2.0/25") // --ip-range
	for index := range byte(50) {
		if address := n.Address(index); dockers.Contains(address) || !n.Subnet.Contains(address) {
			t.Errorf("address %d is %s", index, address)
		}
	}
}

func TestCreateMakesTheNetworkOnce(t *testing.T) {
	const inspect = "network|inspect|trainyard|--format|{{range .IPAM.Config}}{{.Subnet}}{{end}}"
	const create = "network|create|--driver=bridge|--label=dev.trainyard.demo|--subnet=172.30.77.0/24|--ip-range=172.30.77.0/25|trainyard"
	tests := map[string]struct {
		script  string
		want    []string
		wantErr string
	}{
		"none yet": {
			`case "$1" in inspect) echo 'network trainyard not found' >&2; exit 1;; esac`, []string{inspect, create}, "",
		},
		"there":               {`echo 172.30.77.0/24`, []string{inspect}, ""},
		"of another subnet":   {`echo 172.30.1.0/24`, []string{inspect}, "run make down first, or set SUBNET=172.30.1.0/24"},
		"an engine that died": {`echo 'Cannot connect to the Docker daemon' >&2; exit 1`, []string{inspect}, "Cannot connect"},
		"a taken subnet": {
			`case "$1" in inspect) echo 'network trainyard not found';; *) echo 'Pool overlaps with other one on this address space';; esac >&2; exit 1`,
			[]string{inspect, create}, "name a free /24 network with SUBNET=",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := record(t, test.script)
			err := network(r).Create(t.Context())
			if (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("error %v, want %q", err, test.wantErr)
			}
			if diff := cmp.Diff(test.want, r.lines()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// twoNodes is what kubectl get nodes --output=json prints, cut to what is read
// and some more.
const twoNodes = `{"apiVersion": "v1", "kind": "List", "items": [
	{"metadata": {"name": "n-control-plane", "labels": {}}, "spec": {"podCIDR": "10.244.0.0/24", "podCIDRs": ["10.244.0.0/24"]},
	 "status": {"addresses": [{"type": "Hostname", "address": "n-control-plane"}, {"type": "InternalIP", "address": "172.30.77.2"}]}},
	{"metadata": {"name": "n-worker"}, "spec": {"podCIDR": "10.244.1.0/24"},
	 "status": {"addresses": [{"type": "InternalIP", "address": "172.30.77.3"}, {"type": "Hostname", "address": "n-worker"}]}}
]}`

func TestConnectPodsOfTwoNodes(t *testing.T) {
	r := record(t, `case "$1" in --interactive) cat >"$(dirname "$0")/cni-$2";; esac`)
	if err := network(r).ConnectPods(t.Context(), []byte(twoNodes)); err != nil {
		t.Fatal(err)
	}
	const move = "|sh|-euc|cat >/etc/cni/net.d/.pods && mv /etc/cni/net.d/.pods /etc/cni/net.d/10-pods.conflist"
	want := []string{
		"exec|n-control-plane|ip|route|replace|10.244.1.0/24|via|172.30.77.3",
		"exec|--interactive|n-control-plane" + move,
		"exec|n-worker|ip|route|replace|10.244.0.0/24|via|172.30.77.2",
		"exec|--interactive|n-worker" + move,
	}
	if diff := cmp.Diff(want, r.lines()); diff != "" {
		t.Error(diff)
	}
	for node, cidr := range map[string]string{"n-control-plane": "10.244.0.0/24", "n-worker": "10.244.1.0/24"} {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(r.Command), "cni-"+node))
		if err != nil {
			t.Fatal(err)
		}
		// The form of a CNI network configuration list, by its specification.
		var got struct {
			CNIVersion, Name string
			Plugins          []struct {
				Type string
				IPAM struct {
					Type   string
					Ranges [][]struct{ Subnet string }
				}
				Capabilities map[string]bool
			}
		}
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if got.CNIVersion != "1.0.0" || got.Name == "" || len(got.Plugins) != 2 {
			t.Fatalf("%s: %s", node, data)
		}
		ptp, portmap := got.Plugins[0], got.Plugins[1]
		if ptp.Type != "ptp" || ptp.IPAM.Type != "host-local" || len(ptp.IPAM.Ranges) != 1 || ptp.IPAM.Ranges[0][0].Subnet != cidr {
			t.Errorf("%s: pods get their addresses by %+v", node, ptp)
		}
		if portmap.Type != "portmap" || !portmap.Capabilities["portMappings"] {
			t.Errorf("%s: ports of nodes are mapped by %+v", node, portmap)
		}
	}
}

func TestConnectPodsRefusesBeforeItChangesANode(t *testing.T) {
	tests := map[string]struct{ nodes, want string }{
		"no JSON":          {"error: no cluster", "read the cluster's nodes"},
		"no nodes":         {`{"items": []}`, "no nodes"},
		"no pod addresses": {strings.Replace(twoNodes, `"podCIDR": "10.244.1.0/24"`, `"podCIDR": ""`, 1), "node n-worker has no range of pod addresses yet"},
		"no address of a node": {strings.Replace(twoNodes, `"InternalIP", "address": "172.30.77.3"`, `"ExternalIP", "address": "1.2.3.4"`, 1),
			"node n-worker has no address of its own yet"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := record(t, "")
			err := network(r).ConnectPods(t.Context(), []byte(test.nodes))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
			if calls := r.lines(); calls[0] != "" {
				t.Errorf("docker was called: %q", calls)
			}
		})
	}
}

func TestConnectPodsStopsAtTheFirstNodeThatFails(t *testing.T) {
	for name, script := range map[string]string{
		"a route":         `case "$2" in ip) echo 'no route' >&2; exit 1;; esac`,
		"a configuration": `case "$1" in --interactive) cat >/dev/null; echo 'no space' >&2; exit 1;; esac`,
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t, script)
			err := network(r).ConnectPods(t.Context(), []byte(twoNodes))
			if err == nil || !strings.Contains(err.Error(), "no ") {
				t.Errorf("error %v, want docker's", err)
			}
			for _, call := range r.lines() {
				if strings.Contains(call, "n-worker|") {
					t.Errorf("went on with %q", call)
				}
			}
		})
	}
}
