package doctor

import (
	"context"
	"net"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/internal/kubeclient"
)

// Dialer opens connections, as net.Dialer does.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// reachable says whether a server can be asked from here. The name of a Service is
// known inside the cluster only: then what can be told from outside is whether a
// pod stands behind it.
func (e *exam) reachable(ctx context.Context, check, role, host string) (bool, error) {
	bare := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		bare = h
	}
	service, inside := kubeclient.ParseServiceHost(bare, e.o.Namespace)
	if !inside {
		return true, nil
	}
	if !strings.Contains(bare, ".") {
		// A short name may as well be a host that this machine knows.
		if _, err := e.Kube.CoreV1().Services(service.Namespace).Get(ctx, service.Name, metav1.GetOptions{}); err != nil {
			return true, nil
		}
	}
	ready, err := e.serviceReady(ctx, check, role, service)
	if err != nil || !ready {
		return false, err
	}
	if e.InCluster {
		return true, nil
	}
	e.warn(check, "run this again with --port-forward, or in a pod", "%s %s is a Service of the cluster, whose name means nothing from here: whether it takes the credentials was not tried", role, host)
	return false, nil
}

// serviceReady examines that a Service exists and has a pod that is ready.
func (e *exam) serviceReady(ctx context.Context, check, role string, s kubeclient.Service) (bool, error) {
	_, err := e.Kube.CoreV1().Services(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		e.problem(check, "correct the address, or install what it names", "%s: there is no Service %s in namespace %s", role, s.Name, s.Namespace)
		return false, nil
	}
	if err != nil {
		return true, e.cannotSee(check, "services of namespace "+s.Namespace, err)
	}
	slices, err := e.Kube.DiscoveryV1().EndpointSlices(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + s.Name})
	if err != nil {
		return true, e.cannotSee(check, "endpoint slices of namespace "+s.Namespace, err)
	}
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				return true, nil
			}
		}
	}
	e.problem(check, "kubectl get pods --namespace "+s.Namespace+": start what should stand behind the Service", "%s is down: no pod behind Service %s/%s is ready", role, s.Namespace, s.Name)
	return false, nil
}

// split reads a list that is separated by commas or spaces.
func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
}
