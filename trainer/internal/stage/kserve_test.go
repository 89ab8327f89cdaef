package stage

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
)

// cluster is an API server and what a pod knows of it.
func cluster(t *testing.T, h http.HandlerFunc) (getenv func(string) string, dir string) {
	t.Helper()
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for name, b := range map[string][]byte{
		"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		"token":  []byte("secret\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"KUBERNETES_SERVICE_HOST": u.Hostname(), "KUBERNETES_SERVICE_PORT": u.Port()}
	return func(k string) string { return env[k] }, dir
}

func TestKServePatchesTheService(t *testing.T) {
	var got struct {
		Metadata struct{ Annotations map[string]string }
		Spec     struct {
			Predictor struct {
				Model struct{ StorageURI string }
			}
		}
	}
	getenv, dir := cluster(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPatch || r.URL.Path != "/apis/serving.kserve.io/v1beta1/namespaces/models/inferenceservices/llm" {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		if r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("Content-Type") != "application/merge-patch+json" {
			t.Errorf("headers %v", r.Header)
		}
		b, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(b, &got); err != nil {
			t.Errorf("body %s: %v", b, err)
		}
	})
	k, err := NewKServe(getenv, dir, "models/llm")
	if err != nil {
		t.Fatal(err)
	}
	p := Promotion{Name: "llm", Version: strings.Repeat("a", 64), Location: "s3://b/models/llm/" + strings.Repeat("a", 64), RunID: "run1", CodeImage: "x@sha256:1"}
	if err := k.Announce(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	a := got.Metadata.Annotations
	if got.Spec.Predictor.Model.StorageURI != p.Location || a["trainyard.dev/model-digest"] != "sha256:"+p.Version || a["trainyard.dev/code-image"] != p.CodeImage || a["trainyard.dev/run"] != "run1" {
		t.Errorf("got %+v", got)
	}
}

func TestKServeErrorsSayWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"no CRD":        {404, "", "is KServe installed"},
		"no permission": {403, "", "verb patch"},
		"invalid":       {422, `{"message":"storageUri: bad"}`, "storageUri: bad"},
		"proxy's page":  {502, "<html>", "502"},
	} {
		t.Run(name, func(t *testing.T) {
			getenv, dir := cluster(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			k, err := NewKServe(getenv, dir, "models/llm")
			if err != nil {
				t.Fatal(err)
			}
			err = k.Announce(context.Background(), Promotion{})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestNewKServeRefuses(t *testing.T) {
	getenv, dir := cluster(t, func(http.ResponseWriter, *http.Request) {})
	for _, service := range []string{"", "llm", "a/b/c", "models/../x", "Models/llm"} {
		if _, err := NewKServe(getenv, dir, service); code(err) != exitcode.Usage {
			t.Errorf("%q: %v", service, err)
		}
	}
	if _, err := NewKServe(func(string) string { return "" }, dir, "models/llm"); code(err) != exitcode.Usage {
		t.Errorf("no cluster: %v", err)
	}
	if _, err := NewKServe(getenv, t.TempDir(), "models/llm"); code(err) != exitcode.Usage {
		t.Errorf("no service account: %v", err)
	}
}
