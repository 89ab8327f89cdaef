package registryclient

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/trainyard/trainyard/internal/exitcode"
)

var (
	fast     = remote.Backoff{Duration: time.Millisecond, Factor: 1, Steps: 2}
	platform = v1.Platform{OS: "linux", Architecture: "amd64"}
)

func inMemory() http.Handler { return registry.New(registry.Logger(log.New(io.Discard, "", 0))) }

func host(s *httptest.Server) string {
	_, h, _ := strings.Cut(s.URL, "://")
	return h
}

func client(t *testing.T, insecure ...string) *Client {
	t.Helper()
	c, err := New(Options{Insecure: insecure, Backoff: fast})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func push(t *testing.T, c *Client, image string) v1.Image {
	t.Helper()
	img, err := random.Image(64, 2)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := c.Reference(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Push(t.Context(), ref, img); err != nil {
		t.Fatal(err)
	}
	return img
}

// wantLine checks that an error is one printable line with these parts and code.
func wantLine(t *testing.T, err error, code int, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if got := exitcode.Of(err); got != code {
		t.Errorf("exit code %d, want %d: %v", got, code, err)
	}
	if strings.ContainsAny(err.Error(), "\n\r\x00") || len(err.Error()) > 600 {
		t.Errorf("not one short line: %q", err)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%q does not name %q", err, p)
		}
	}
}

// I-09, I-66, I-71: plain http only where a host is listed, not because its name
// looks local. httptest listens on 127.0.0.1, which the library would trust.
func TestPlainHTTPOnlyForListedHosts(t *testing.T) {
	server := httptest.NewServer(inMemory())
	defer server.Close()
	img := push(t, client(t, host(server)), host(server)+"/app:1")
	want, _ := img.Digest()

	listed := client(t, "other.example", host(server))
	ref, err := listed.Reference(host(server) + "/app:1")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := listed.Digest(t.Context(), ref); err != nil || got != want {
		t.Errorf("a listed host: digest %v, want %v: %v", got, want, err)
	}

	_, port, _ := strings.Cut(host(server), ":")
	for name, list := range map[string][]string{
		"no list":                   nil,
		"empty entries":             {"", " "},
		"another host":              {"other.example"},
		"the host without its port": {"127.0.0.1"},
		"the name of the address":   {"localhost:" + port},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t, list...)
			ref, err := c.Reference(host(server) + "/app:1")
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Digest(t.Context(), ref)
			wantLine(t, err, exitcode.Usage, host(server)+"/app:1", "list it as an insecure registry")
			err = c.Push(t.Context(), ref, img)
			wantLine(t, err, exitcode.Usage, host(server)+"/app:1", "list it as an insecure registry")
		})
	}
}

// I-66: a registry with TLS must not send us on to plain http elsewhere.
func TestRedirectToPlainHTTPIsRefused(t *testing.T) {
	plain := httptest.NewServer(inMemory())
	defer plain.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/" {
			return
		}
		http.Redirect(w, r, plain.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer secure.Close()
	c, err := New(Options{Backoff: fast, Transport: secure.Client().Transport.(*http.Transport)})
	if err != nil {
		t.Fatal(err)
	}
	ref, _ := c.Reference(host(secure) + "/app:1")
	_, err = c.Digest(t.Context(), ref)
	wantLine(t, err, exitcode.Usage, "plain http to "+host(plain))
}

// I-71: what one client allows must not reach the rest of the process.
func TestSharedTransportsStayAsTheyAre(t *testing.T) {
	before, beforeRemote := http.DefaultTransport, remote.DefaultTransport
	own := &http.Transport{}
	server := httptest.NewServer(inMemory())
	defer server.Close()
	c, err := New(Options{Insecure: []string{host(server)}, Transport: own})
	if err != nil {
		t.Fatal(err)
	}
	push(t, c, host(server)+"/app:1")
	if http.DefaultTransport != before || remote.DefaultTransport != beforeRemote {
		t.Error("a default transport was replaced")
	}
	for name, shared := range map[string]http.RoundTripper{"own": own, "default": before, "remote's": beforeRemote} {
		if c.guard.next == shared {
			t.Errorf("the %s transport is used itself, not its clone", name)
		}
		if tls := shared.(*http.Transport).TLSClientConfig; tls != nil && tls.InsecureSkipVerify {
			t.Errorf("the %s transport no longer verifies certificates", name)
		}
	}
}

// I-70: what a registry, or something that is none, answers becomes one clear line.
func TestAnswersBecomeOneLine(t *testing.T) {
	const page = "<!DOCTYPE html>\n<html>\x00<h1>Welcome to\n\tnginx</h1></html>"
	answer := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v2/" && status != http.StatusOK {
				return
			}
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		code    int
		parts   []string
		is      error
	}{
		"401 in JSON": {answer(401, "application/json", `{"errors":[{"code":"UNAUTHORIZED","message":"authentication\nrequired"}]}`), exitcode.IO, []string{"401 Unauthorized: UNAUTHORIZED authentication required", "docker configuration"}, ErrDenied},
		"403":         {answer(403, "application/json", `{"errors":[{"code":"DENIED"}]}`), exitcode.IO, []string{"403 Forbidden: DENIED"}, ErrDenied},
		"404 in JSON": {answer(404, "application/json", `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"unknown"}]}`), exitcode.BadInput, []string{"404 Not Found: MANIFEST_UNKNOWN unknown", "check repository, tag and digest"}, ErrNotFound},
		"404 page":    {answer(404, "text/html", page), exitcode.BadInput, []string{"(404 Not Found)"}, ErrNotFound},
		"429":         {answer(429, "application/json", `{"errors":[{"code":"TOOMANYREQUESTS"}]}`), exitcode.IO, []string{"429", "try later"}, nil},
		"500 page":    {answer(500, "text/html; charset=utf-8", page), exitcode.IO, []string{"(500 Internal Server Error)", "a retry can help"}, nil},
		"502 empty":   {answer(502, "", ""), exitcode.IO, []string{"(502 Bad Gateway)"}, nil},
		"200 page":    {answer(200, "text/HTML; charset=utf-8", page), exitcode.BadInput, []string{"answered 200 with a web page", "not as a registry"}, nil},
		"long words":  {answer(400, "application/json", `{"errors":[{"code":"UNKNOWN","message":"`+strings.Repeat("x", 5000)+`"}]}`), exitcode.IO, []string{"400 Bad Request", "…"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.handler)
			defer server.Close()
			cl := client(t, host(server))
			ref, err := cl.Reference(host(server) + "/team/app:v1")
			if err != nil {
				t.Fatal(err)
			}
			_, err = cl.Digest(t.Context(), ref)
			wantLine(t, err, c.code, append(c.parts, "read "+host(server)+"/team/app:v1: ")...)
			if strings.Contains(err.Error(), "<") || strings.Contains(err.Error(), "nginx") {
				t.Errorf("the page is in the message: %q", err)
			}
			for _, sentinel := range []error{ErrNotFound, ErrDenied} {
				if errors.Is(err, sentinel) != errors.Is(c.is, sentinel) {
					t.Errorf("errors.Is(%v, %v) is %v", err, sentinel, !errors.Is(c.is, sentinel))
				}
			}
		})
	}
}

func TestTransportFailuresNameTheRemedy(t *testing.T) {
	dead := httptest.NewServer(inMemory())
	address := host(dead)
	dead.Close()
	c := client(t, address)
	ref, _ := c.Reference(address + "/app:1")
	_, err := c.Digest(t.Context(), ref)
	wantLine(t, err, exitcode.IO, address, "connection refused")

	untrusted := httptest.NewUnstartedServer(inMemory())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	defer untrusted.Close()
	c = client(t)
	ref, _ = c.Reference(strings.Replace(host(untrusted), "127.0.0.1", "[::ffff:127.0.0.1]", 1) + "/app:1")
	_, err = c.Digest(t.Context(), ref)
	wantLine(t, err, exitcode.IO, "certificate is not trusted", "SSL_CERT_FILE")
}

func TestCredentialsComeFromDockersConfiguration(t *testing.T) {
	inner := inMemory()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, ok := r.BasicAuth(); !ok || u != "jane" || p != "s=cret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	defer server.Close()
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	write := func(password string) {
		auth := base64.StdEncoding.EncodeToString([]byte("jane:" + password))
		config := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host(server), auth)
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := client(t, host(server))
	ref, _ := c.Reference(host(server) + "/app:1")
	img, _ := random.Image(8, 1)

	wantLine(t, c.Push(t.Context(), ref, img), exitcode.IO, "401", "docker configuration")
	write("wrong")
	err := c.Push(t.Context(), ref, img)
	wantLine(t, err, exitcode.IO, "401")
	write("s=cret")
	if err := c.Push(t.Context(), ref, img); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = c.Digest(t.Context(), ref)
	wantLine(t, err, exitcode.IO, dir)
}

func TestPushedImageIsReadBack(t *testing.T) {
	server := httptest.NewServer(inMemory())
	defer server.Close()
	c := client(t, host(server))
	img := push(t, c, host(server)+"/app:1")
	ref, _ := c.Reference(host(server) + "/app:1")
	_, config, err := c.Config(t.Context(), ref, platform)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := img.ConfigFile()
	if len(config.RootFS.DiffIDs) != 2 || config.RootFS.DiffIDs[0] != want.RootFS.DiffIDs[0] {
		t.Errorf("layers %v, want %v", config.RootFS.DiffIDs, want.RootFS.DiffIDs)
	}
	if err := c.Tag(t.Context(), ref.Context().Tag("2"), img); err != nil {
		t.Fatal(err)
	}
	again, _ := c.Reference(host(server) + "/app:2")
	d1, _ := img.Digest()
	if d2, err := c.Digest(t.Context(), again); err != nil || d1 != d2 {
		t.Errorf("tag 2 is %v, want %v: %v", d2, d1, err)
	}
}

func TestBadListsAndNames(t *testing.T) {
	for _, list := range []string{"http://registry:5000", "registry/path", "*.example", "a b", "user@host"} {
		_, err := New(Options{Insecure: []string{list}})
		wantLine(t, err, exitcode.Usage, fmt.Sprintf("%q", list))
	}
	c := client(t)
	for _, image := range []string{"", "Upper/Case", "a@sha256:12", "a:b:c", "host/a b", "\x00"} {
		_, err := c.Reference(image)
		wantLine(t, err, exitcode.BadInput, fmt.Sprintf("%q", image))
	}
}

func FuzzReference(f *testing.F) {
	f.Add("registry.example:5000/a/b:1", "registry.example:5000")
	f.Add("a@sha256:"+strings.Repeat("0", 64), "")
	f.Fuzz(func(t *testing.T, image, insecure string) {
		c, err := New(Options{Insecure: []string{insecure}})
		if err != nil {
			return
		}
		ref, err := c.Reference(image)
		if err == nil && c.listed(ref) && ref.Context().Scheme() != "http" {
			t.Errorf("%q is listed and %q of it is %s", insecure, image, ref.Context().Scheme())
		}
	})
}

func FuzzLine(f *testing.F) {
	f.Add([]byte("a\nb\x00c"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got := line(string(b)); bytes.ContainsAny([]byte(got), "\n\r\x00\x1b") || len([]rune(got)) > maxQuote+1 {
			t.Errorf("%q", got)
		}
	})
}
