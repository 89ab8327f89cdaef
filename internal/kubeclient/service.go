package kubeclient

import (
	"net"
	"strings"
)

// Service names a Service of the cluster.
type Service struct{ Namespace, Name string }

// ParseServiceHost tells whether a host name is that of a Service, which only the
// DNS of the cluster knows: name.namespace.svc, with or without the cluster's
// domain. A name without a dot is a Service of the namespace that asks.
//
// name.namespace alone is not taken for one: it looks like any host on the Internet.
func ParseServiceHost(host, namespace string) (Service, bool) {
	host = strings.TrimSuffix(host, ".")
	if host == "" || net.ParseIP(strings.Trim(host, "[]")) != nil || host == "localhost" {
		return Service{}, false
	}
	parts := strings.Split(host, ".")
	switch {
	case len(parts) == 1:
		return Service{namespace, parts[0]}, true
	case len(parts) >= 3 && parts[2] == "svc" && parts[0] != "" && parts[1] != "":
		return Service{parts[1], parts[0]}, true
	}
	return Service{}, false
}
