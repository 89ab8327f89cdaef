package stage

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
)

// ServiceAccountDir is where a pod finds what it needs to talk to its cluster.
const ServiceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// KServe points an InferenceService at the promoted version: its storageUri,
// which names immutable content, so that a change rolls out by itself, and
// annotations that say what it is. It patches nothing else.
type KServe struct {
	client             *http.Client
	url                string // of the API server
	tokenFile          string // read each time: tokens expire
	namespace, service string
}

var _ Announcer = (*KServe)(nil)

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// NewKServe returns an announcer for "namespace/name" in the cluster that this
// process runs in, as getenv and the files in dir describe it.
func NewKServe(getenv func(string) string, dir, service string) (*KServe, error) {
	namespace, name, ok := strings.Cut(service, "/")
	if !ok || !dnsLabel.MatchString(namespace) || !dnsLabel.MatchString(name) {
		return nil, exitcode.Errorf(exitcode.Usage, "kserve-service is %q: want namespace/name", service)
	}
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, exitcode.Errorf(exitcode.Usage, "kserve-service: this is no pod of a cluster: KUBERNETES_SERVICE_HOST is not set")
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, exitcode.Errorf(exitcode.Usage, "kserve-service: %w: mount the service account's token", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, exitcode.Errorf(exitcode.Usage, "kserve-service: %s holds no certificate", filepath.Join(dir, "ca.crt"))
	}
	return &KServe{
		client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		}},
		url: "https://" + net.JoinHostPort(host, port), tokenFile: filepath.Join(dir, "token"), namespace: namespace, service: name,
	}, nil
}

// Announce implements Announcer by a JSON merge patch.
func (k *KServe) Announce(ctx context.Context, p Promotion) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{
			"trainyard.dev/model-digest": "sha256:" + p.Version, "trainyard.dev/model": p.Name, "trainyard.dev/run": p.RunID, "trainyard.dev/code-image": p.CodeImage,
		}},
		"spec": map[string]any{"predictor": map[string]any{"model": map[string]string{"storageUri": p.Location}}},
	})
	if err != nil {
		return err
	}
	token, err := os.ReadFile(k.tokenFile)
	if err != nil {
		return fmt.Errorf("service account: %w", err)
	}
	url := fmt.Sprintf("%s/apis/serving.kserve.io/v1beta1/namespaces/%s/inferenceservices/%s", k.url, k.namespace, k.service)
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/merge-patch+json")
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := k.client.Do(req)
	if err != nil {
		return fmt.Errorf("InferenceService %s/%s: %w", k.namespace, k.service, err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // for a message only
	switch resp.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusNotFound:
		return fmt.Errorf("InferenceService %s/%s: not found: is KServe installed, and the service made?", k.namespace, k.service)
	case http.StatusForbidden:
		return fmt.Errorf("InferenceService %s/%s: forbidden: the service account needs the verb patch on inferenceservices", k.namespace, k.service)
	}
	var status struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(answer, &status) // other than JSON: no message
	return fmt.Errorf("InferenceService %s/%s: %s: %.200q", k.namespace, k.service, resp.Status, status.Message)
}
