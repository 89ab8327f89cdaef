package kubeclient

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// alone hides whatever cluster the machine of the test knows.
func alone(t *testing.T) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
}

func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text := `apiVersion: v1
kind: Config
current-context: a
clusters:
- {name: c, cluster: {server: "` + server + `"}}
contexts:
- {name: a, context: {cluster: c, namespace: from-a}}
- {name: b, context: {cluster: c}}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConnectTakesNamespaceAndContextAsKubectlDoes(t *testing.T) {
	alone(t)
	path := kubeconfig(t, "https://cluster.example:6443")
	for name, c := range map[string]struct {
		choice Choice
		want   string
	}{
		"the context's":      {Choice{Kubeconfig: path}, "from-a"},
		"another context":    {Choice{Kubeconfig: path, Context: "b"}, "default"},
		"a flag wins":        {Choice{Kubeconfig: path, Namespace: "team"}, "team"},
		"from KUBECONFIG":    {Choice{}, "from-a"},
		"flag over variable": {Choice{Kubeconfig: path, Context: "b", Namespace: "team"}, "team"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", path)
			got, err := Connect(c.choice)
			if err != nil || got.Namespace != c.want || got.REST.Host != "https://cluster.example:6443" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestConnectWithoutACluster(t *testing.T) {
	alone(t)
	path := kubeconfig(t, "https://cluster.example:6443")
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("clusters: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		choice Choice
		say    string
	}{
		"nothing named":   {Choice{}, "give --kubeconfig or KUBECONFIG"},
		"no such file":    {Choice{Kubeconfig: path + "x"}, path + "x"},
		"not YAML":        {Choice{Kubeconfig: broken}, broken},
		"no such context": {Choice{Kubeconfig: path, Context: "z"}, `"z"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Connect(c.choice)
			if exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), c.say) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestPing(t *testing.T) {
	alone(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"gitVersion": "v1.36.3"}`))
	}))
	c, err := Connect(Choice{Kubeconfig: kubeconfig(t, server.URL)})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := c.Ping(t.Context()); err != nil || v != "v1.36.3" {
		t.Errorf("%q, %v", v, err)
	}
	server.Close()
	if _, err := c.Ping(t.Context()); exitcode.Of(err) != exitcode.IO || !strings.Contains(err.Error(), server.URL) {
		t.Errorf("a server that is down: %v", err)
	}
}

func TestParseServiceHost(t *testing.T) {
	for host, want := range map[string]string{
		"s3.trainyard-system.svc.cluster.local":  "trainyard-system/s3",
		"s3.trainyard-system.svc.cluster.local.": "trainyard-system/s3",
		"s3.trainyard-system.svc":                "trainyard-system/s3",
		"s3.system.svc.corp.example":             "system/s3",
		"registry":                               "team/registry",
		"s3.amazonaws.com":                       "",
		"example.com":                            "", // and not Service example of namespace com
		"svc.svc.example":                        "",
		"172.30.77.200":                          "",
		"::1":                                    "",
		"[::1]":                                  "",
		"localhost":                              "",
		"":                                       "",
		"..svc":                                  "",
	} {
		s, ok := ParseServiceHost(host, "team")
		got := ""
		if ok {
			got = s.Namespace + "/" + s.Name
		}
		if got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
}

func FuzzParseServiceHost(f *testing.F) {
	for _, seed := range []string{"a.b.svc", "registry", "1.2.3.4", "", "."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, host string) {
		if s, ok := ParseServiceHost(host, "ns"); ok && (s.Name == "" || s.Namespace == "") {
			t.Errorf("%q is Service %+v", host, s)
		}
	})
}

func TestPodBehindAService(t *testing.T) {
	yes, no := true, false
	port, metrics := int32(9000), int32(9100)
	web, other := "web", "metrics"
	endpoint := func(pod string, ready *bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}
	}
	c := &Cluster{Kube: fake.NewClientset(
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s3"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: web, Port: 80}, {Name: other, Port: 81}}}},
		&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s3-x", Labels: map[string]string{discoveryv1.LabelServiceName: "s3"}},
			Ports:      []discoveryv1.EndpointPort{{Name: &other, Port: &metrics}, {Name: &web, Port: &port}},
			Endpoints:  []discoveryv1.Endpoint{endpoint("starting", &no), endpoint("up", &yes)},
		},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "down"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
	)}
	if pod, target, err := c.behind(t.Context(), Service{"ns", "s3"}, "80"); err != nil || pod != "up" || target != port {
		t.Errorf("%s:%d, %v", pod, target, err)
	}
	for name, ask := range map[string]struct{ service, port, say string }{
		"a port it has not": {"s3", "443", "no port 443"},
		"no pod is ready":   {"down", "80", "no pod behind it is ready"},
		"no such service":   {"gone", "80", "not found"},
	} {
		if _, _, err := c.behind(t.Context(), Service{"ns", ask.service}, ask.port); err == nil || !strings.Contains(err.Error(), ask.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestServiceDialerLeavesOtherAddressesAlone(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	d := NewServiceDialer(&Cluster{Namespace: "ns", Kube: fake.NewClientset()})
	conn, err := d.DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if _, err := d.DialContext(t.Context(), "tcp", "s3.ns.svc:80"); err == nil || !strings.Contains(err.Error(), "s3.ns.svc:80") {
		t.Errorf("a Service that does not exist: %v", err)
	}
	d.Close()
	d.Close()
	if _, err := d.DialContext(t.Context(), "tcp", "s3.ns.svc:80"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
