package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const route = `apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: r, labels: {a: b}}
spec:
  to: {kind: Service, name: s, weight: 100}
  port: {targetPort: http}
  tls: {termination: edge, insecureEdgeTerminationPolicy: None}
`

func TestARouteIsDecodedStrictly(t *testing.T) {
	got := decode(t, route)[0].Typed.(*Route)
	if got.Spec.To.Name != "s" || got.Spec.TLS.Termination != "edge" || got.Spec.Port.TargetPort != "http" {
		t.Errorf("got %+v", got.Spec)
	}
	_, err := decoder(t).Decode("f.yaml", []byte(strings.Replace(route, "termination:", "terminate:", 1)))
	wantOneLine(t, err, "spec.tls.terminate: unknown field")
}

func TestACopyOfARouteIsItsOwn(t *testing.T) {
	first := decode(t, route)[0].Typed.(*Route)
	second := first.DeepCopyObject().(*Route)
	if d := cmp.Diff(first, second); d != "" {
		t.Fatal(d)
	}
	second.Labels["a"], *second.Spec.To.Weight, second.Spec.Port.TargetPort, second.Spec.TLS.Termination = "c", 1, "x", "passthrough"
	if d := cmp.Diff(decode(t, route)[0].Typed.(*Route), first); d != "" {
		t.Errorf("changed with its copy: %s", d)
	}
}
