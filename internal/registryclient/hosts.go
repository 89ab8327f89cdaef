package registryclient

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// parseHosts checks the list of hosts that may be plain http. Empty entries, which
// an empty parameter of a Task leaves, are nothing.
func parseHosts(list []string) ([]string, error) {
	var hosts []string
	for _, h := range list {
		h = strings.TrimSpace(h)
		if h == "" {
			continue
		}
		r, err := name.NewRegistry(h)
		if err != nil || strings.ContainsAny(h, "/*@") {
			return nil, exitcode.Errorf(exitcode.Usage, "insecure registry %q is not a host or host:port: write it as in the image's name", h)
		}
		hosts = append(hosts, r.RegistryStr())
	}
	return hosts, nil
}

// guard sends requests on, but plain http only to hosts that are listed (the
// library would guess by names such as localhost and 10.0.0.1), and it refuses web
// pages: a proxy or a wrong port answers them with 200 where a registry would send
// JSON.
type guard struct {
	next     http.RoundTripper
	insecure []string
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !g.allows(req.URL) {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, &plainHTTPError{req.URL.Host}
	}
	resp, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 300 && isPage(resp.Header) && strings.HasPrefix(req.URL.Path, "/v2/") && !strings.Contains(req.URL.Path, "/blobs/") {
		_ = resp.Body.Close()
		return nil, &pageError{req.URL.Host, resp.StatusCode}
	}
	return resp, nil
}

func (g *guard) allows(u *url.URL) bool {
	if slices.Contains(g.insecure, u.Host) {
		return true
	}
	// "registry:80" may be listed for a URL that leaves the port out, and the other
	// way round.
	host, port := u.Hostname(), u.Port()
	if port == "" || port == "80" {
		return slices.Contains(g.insecure, host) || slices.Contains(g.insecure, net.JoinHostPort(host, "80"))
	}
	return false
}

func isPage(h http.Header) bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(h.Get("Content-Type"))), "text/html")
}

// plainHTTPError says that a host would have to be listed.
type plainHTTPError struct{ host string }

// Error names the host and the remedy.
func (e *plainHTTPError) Error() string {
	return fmt.Sprintf("plain http to %s is refused: if it may be insecure, list it as an insecure registry", e.host)
}

// pageError says that a host is no registry.
type pageError struct {
	host   string
	status int
}

// Error names the host and what it said.
func (e *pageError) Error() string {
	return fmt.Sprintf("%s answered %d with a web page (text/html), not as a registry: check host and port, and any proxy between", e.host, e.status)
}
