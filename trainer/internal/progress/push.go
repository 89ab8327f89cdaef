package progress

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Variables that Kubeflow Trainer sets in a pod when its TrainJobStatus feature
// is on (KEP-2779).
const (
	envURL   = "KUBEFLOW_TRAINER_SERVER_URL"
	envCA    = "KUBEFLOW_TRAINER_SERVER_CA_CERT" // path of a PEM file
	envToken = "KUBEFLOW_TRAINER_SERVER_TOKEN"   // path of a file
)

const (
	pushTimeout = 5 * time.Second  // of one request; the server gives up after 10
	pushEvery   = 5 * time.Second  // as the Kubeflow SDK does
	pushClose   = 10 * time.Second // for the last status
	maxToken    = 64 << 10
)

// Push posts the document to a Kubeflow Trainer status server from a goroutine
// of its own. When the server is slower than the training, only the newest
// status is kept.
type Push struct {
	url, tokenPath string
	client         *http.Client
	throttle       throttle
	trouble        once
	newest         chan Document // of capacity 1
	done           chan struct{}
	cancel         context.CancelFunc
	closeAfter     time.Duration
}

var _ Sink = (*Push)(nil)

// NewPush returns the sink that the environment asks for, or nil when it asks
// for none. getenv is os.Getenv outside of tests.
func NewPush(getenv func(string) string, log *slog.Logger) (*Push, error) {
	target, ca, token := getenv(envURL), getenv(envCA), getenv(envToken)
	if target == "" || ca == "" || token == "" {
		return nil, nil
	}
	u, err := url.Parse(target)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return nil, fmt.Errorf("%s is %q, want an http or https URL", envURL, target)
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", envCA, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: %s holds no PEM certificate", envCA, ca)
	}
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("http.DefaultTransport was replaced")
	}
	transport := base.Clone() // the default one is everybody's
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Push{
		url: target, tokenPath: token,
		client: &http.Client{Transport: transport, Timeout: pushTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the status server redirects: the token stays here")
		}},
		throttle: throttle{every: pushEvery}, trouble: once{log: log},
		newest: make(chan Document, 1), done: make(chan struct{}), cancel: cancel, closeAfter: pushClose,
	}
	go p.loop(ctx)
	return p, nil
}

// Report hands the document to the goroutine and never waits.
func (p *Push) Report(_ context.Context, s Status) {
	if !p.throttle.pass(s) {
		return
	}
	d := s.Document()
	for {
		select {
		case p.newest <- d:
			return
		default:
		}
		select {
		case <-p.newest: // stale
		default:
		}
	}
}

// Close waits for the last status, but not longer than 10 seconds.
func (p *Push) Close() {
	close(p.newest)
	timer := time.AfterFunc(p.closeAfter, p.cancel)
	<-p.done
	timer.Stop()
	p.cancel()
	p.client.CloseIdleConnections()
}

func (p *Push) loop(ctx context.Context) {
	defer close(p.done)
	for d := range p.newest {
		if err := p.post(ctx, d); err != nil {
			p.trouble.warn("progress not pushed", err)
		}
	}
}

func (p *Push) post(ctx context.Context, d Document) error {
	body, err := json.Marshal(map[string]Document{"trainerStatus": d})
	if err != nil {
		return err
	}
	token, err := readToken(p.tokenPath)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s answered %s: %s", p.url, resp.Status, strings.TrimSpace(string(text)))
	}
	return nil
}

// readToken reads the file each time: the kubelet renews it every hour.
func readToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxToken))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" || strings.ContainsAny(token, "\r\n") {
		return "", fmt.Errorf("%s holds no token", path)
	}
	return token, nil
}
