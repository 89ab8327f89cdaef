package manifest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Route is OpenShift's way of giving a Service an address, as much of it as an example
// needs: its API is in a module that nothing else here asks for.
type Route struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RouteSpec `json:"spec"`
}

// RouteSpec says what is reached, and how.
type RouteSpec struct {
	Host string      `json:"host,omitempty"`
	Path string      `json:"path,omitempty"`
	To   RouteTarget `json:"to"`
	Port *RoutePort  `json:"port,omitempty"`
	TLS  *RouteTLS   `json:"tls,omitempty"`
}

// RouteTarget is the Service.
type RouteTarget struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Weight *int32 `json:"weight,omitempty"`
}

// RoutePort is the Service's port by name.
type RoutePort struct {
	TargetPort string `json:"targetPort"`
}

// RouteTLS says where TLS ends, and what becomes of plain http.
type RouteTLS struct {
	Termination                   string `json:"termination"`
	InsecureEdgeTerminationPolicy string `json:"insecureEdgeTerminationPolicy,omitempty"`
}

func addRoute(s *runtime.Scheme) error {
	s.AddKnownTypes(schema.GroupVersion{Group: "route.openshift.io", Version: "v1"}, &Route{})
	return nil
}

// DeepCopyObject makes a Route an object of a scheme.
func (r *Route) DeepCopyObject() runtime.Object {
	c := *r
	r.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec.To.Weight = copied(r.Spec.To.Weight)
	c.Spec.Port = copied(r.Spec.Port)
	c.Spec.TLS = copied(r.Spec.TLS)
	return &c
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
