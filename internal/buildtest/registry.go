package buildtest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/trainyard/trainyard/internal/registryclient"
)

// Registry is a registry in memory that counts what was written.
type Registry struct {
	Host   string
	Client *registryclient.Client
	// Intercept may answer a request itself; it tells whether it did.
	Intercept func(w http.ResponseWriter, r *http.Request) bool
	writes    atomic.Int64
}

// NewRegistry starts a registry for the length of a test.
func NewRegistry(t testing.TB) *Registry {
	t.Helper()
	r := &Registry{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.Intercept != nil && r.Intercept(w, req) {
			return
		}
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			r.writes.Add(1)
		}
		inner.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	_, r.Host, _ = strings.Cut(server.URL, "://")
	var err error
	r.Client, err = registryclient.New(registryclient.Options{
		Insecure: []string{r.Host},
		Backoff:  remote.Backoff{Duration: time.Millisecond, Factor: 1, Steps: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Writes is the number of requests so far that were not reads.
func (r *Registry) Writes() int64 { return r.writes.Load() }

// Push writes an image as repository:tag and returns its name by digest.
func (r *Registry) Push(t testing.TB, image string, what remote.Taggable) string {
	t.Helper()
	ref, err := r.Client.Reference(r.Host + "/" + image)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Client.Push(t.Context(), ref, what); err != nil {
		t.Fatal(err)
	}
	d, err := r.Client.Digest(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return ref.Context().Digest(d.String()).Name()
}

// Image returns the image that repository:tag or repository@digest is.
func (r *Registry) Image(t testing.TB, image string) v1.Image {
	t.Helper()
	ref, err := r.Client.Reference(r.Host + "/" + image)
	if err != nil {
		t.Fatal(err)
	}
	d, err := r.Client.Get(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	img, err := d.Image()
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// Digest returns what repository:tag is, or the zero hash when it is not there.
func (r *Registry) Digest(t testing.TB, image string) v1.Hash {
	t.Helper()
	ref, err := r.Client.Reference(r.Host + "/" + image)
	if err != nil {
		t.Fatal(err)
	}
	d, err := r.Client.Digest(t.Context(), ref)
	if err != nil {
		return v1.Hash{}
	}
	return d
}
