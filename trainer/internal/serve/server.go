package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Server answers requests; see Handler and Serve.
type Server struct {
	o        Options
	engines  engines
	metrics  *metrics
	draining atomic.Bool
}

// New returns a server.
func New(o Options) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	return &Server{o: o, engines: newEngines(o.Engines), metrics: newMetrics()}, nil
}

// Handler returns the HTTP interface.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/completions", s.measured(s.completions))
	mux.HandleFunc("/v1/completions", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", http.MethodPost)
		(&apiError{http.StatusMethodNotAllowed, kindInvalid, "", "method_not_allowed", "use POST"}).write(w)
	})
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("GET /v1/models/{id}", s.model)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("GET /metrics", s.writeMetrics)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		(&apiError{http.StatusNotFound, kindInvalid, "", "unknown_url", fmt.Sprintf("unknown request: %s %s", r.Method, r.URL.Path)}).write(w)
	})
	return s.withDigest(mux)
}

func (s *Server) withDigest(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Model-Digest", s.o.Digest)
		next.ServeHTTP(w, r)
	})
}

type modelInfo struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	Digest  string `json:"digest"`
}

func (s *Server) info() modelInfo {
	return modelInfo{s.o.Model, "model", 0, "trainyard", s.o.Digest}
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []modelInfo{s.info()}})
}

func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	if id := r.PathValue("id"); id != s.o.Model {
		(&apiError{http.StatusNotFound, kindInvalid, "model", "model_not_found", fmt.Sprintf("the model %q does not exist here, %q does", id, s.o.Model)}).write(w)
		return
	}
	writeJSON(w, http.StatusOK, s.info())
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	if s.draining.Load() {
		writeJSON(w, http.StatusServiceUnavailable, map[string]string{"status": "shutting down"})
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

// errShutdown is why answers that outlive the drain time are cut.
var errShutdown = errors.New("the server is shutting down")

// Serve answers on l until ctx ends. Then it says not ready, takes no new
// connection, and gives running answers DrainTimeout to end. It returns nil
// after an orderly end, and an error when answers had to be cut.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	work, cut := context.WithCancelCause(context.Background())
	defer cut(nil)
	server := &http.Server{
		Handler:           s.Handler(),
		BaseContext:       func(net.Listener) context.Context { return work },
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second, // a body is small
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		// A client that does not read is cut a little after its answer was due.
		WriteTimeout: s.o.RequestTimeout + 30*time.Second,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	s.o.Log.Info("shutting down", "cause", context.Cause(ctx), "drain", s.o.DrainTimeout)
	patience, cancel := context.WithTimeout(context.Background(), s.o.DrainTimeout)
	defer cancel()
	if err := server.Shutdown(patience); err != nil {
		cut(errShutdown)
		return errors.Join(fmt.Errorf("answers were cut after %v", s.o.DrainTimeout), server.Close())
	}
	return nil
}
