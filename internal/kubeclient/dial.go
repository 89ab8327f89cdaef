package kubeclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// ServiceDialer opens connections from outside a cluster to its Services, through
// port forwards to a pod behind each, and to everything else as usual. It keeps
// the names of the addresses: what is signed for or checked against them holds.
type ServiceDialer struct {
	cluster *Cluster
	direct  net.Dialer

	mu       sync.Mutex
	forwards map[string]string // address to the local one that stands for it
	stop     chan struct{}
	closed   bool
}

// NewServiceDialer returns a dialer. Close ends its forwards.
func NewServiceDialer(c *Cluster) *ServiceDialer {
	return &ServiceDialer{cluster: c, forwards: map[string]string{}, stop: make(chan struct{})}
}

// DialContext opens a connection, as net.Dialer's.
func (d *ServiceDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	service, inside := ParseServiceHost(host, d.cluster.Namespace)
	if !inside {
		return d.direct.DialContext(ctx, network, address)
	}
	local, err := d.forward(ctx, address, service, port)
	if err != nil {
		return nil, fmt.Errorf("port forward to %s: %w", address, err)
	}
	return d.direct.DialContext(ctx, "tcp", local)
}

// Close ends all forwards.
func (d *ServiceDialer) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed = true
		close(d.stop)
	}
}

func (d *ServiceDialer) forward(ctx context.Context, address string, s Service, port string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if local, ok := d.forwards[address]; ok {
		return local, nil
	}
	if d.closed {
		return "", net.ErrClosed
	}
	pod, target, err := d.cluster.behind(ctx, s, port)
	if err != nil {
		return "", err
	}
	transport, upgrader, err := spdy.RoundTripperFor(d.cluster.REST)
	if err != nil {
		return "", err
	}
	u := d.cluster.Kube.CoreV1().RESTClient().Post().Resource("pods").Namespace(s.Namespace).Name(pod).SubResource("portforward").URL()
	ready := make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(
		spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, u),
		[]string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", target)}, d.stop, ready, io.Discard, io.Discard)
	if err != nil {
		return "", err
	}
	failed := make(chan error, 1)
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case err := <-failed:
		return "", err
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return "", err
	}
	local := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(ports[0].Local)))
	d.forwards[address] = local
	return local, nil
}

// behind finds a ready pod behind a port of a Service, and the pod's own port.
func (c *Cluster) behind(ctx context.Context, s Service, port string) (pod string, target int32, err error) {
	service, err := c.Kube.CoreV1().Services(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
	if err != nil {
		return "", 0, err
	}
	name, found := "", false
	for _, p := range service.Spec.Ports {
		if strconv.Itoa(int(p.Port)) == port {
			name, found = p.Name, true
		}
	}
	if !found {
		return "", 0, fmt.Errorf("service %s/%s has no port %s", s.Namespace, s.Name, port)
	}
	slices, err := c.Kube.DiscoveryV1().EndpointSlices(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + s.Name})
	if err != nil {
		return "", 0, err
	}
	for _, slice := range slices.Items {
		for _, p := range slice.Ports {
			if p.Port == nil || (p.Name != nil && *p.Name != name) || (p.Name == nil && name != "") {
				continue
			}
			for _, e := range slice.Endpoints {
				if e.TargetRef != nil && e.TargetRef.Kind == "Pod" && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
					return e.TargetRef.Name, *p.Port, nil
				}
			}
		}
	}
	return "", 0, errors.New("no pod behind it is ready")
}
