package serve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestOtherEndpoints(t *testing.T) {
	s := newServer(t, testOptions(&script{}))
	for _, c := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/healthz", 200, `{"status":"ok"}`},
		{"GET", "/readyz", 200, `{"status":"ready"}`},
		{"GET", "/v1/models", 200, `{"data":[{"id":"nano","object":"model","created":0,"owned_by":"trainyard","digest":"sha256:abc"}],"object":"list"}`},
		{"GET", "/v1/models/nano", 200, `{"id":"nano","object":"model","created":0,"owned_by":"trainyard","digest":"sha256:abc"}`},
		{"GET", "/v1/models/other", 404, `"code":"model_not_found"`},
		{"GET", "/v1/completions", 405, `"code":"method_not_allowed"`},
		{"POST", "/v1/chat/completions", 404, `"code":"unknown_url"`},
	} {
		w := do(t, s, c.method, c.path, "")
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.body) {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, w.Code, w.Body, c.status, c.body)
		}
		if w.Header().Get("X-Model-Digest") == "" {
			t.Errorf("%s %s: no X-Model-Digest", c.method, c.path)
		}
	}
}

func TestMetricsCount(t *testing.T) {
	o := testOptions(&script{words: []string{"a", "b"}})
	now := time.Unix(0, 0)
	o.Now = func() time.Time { now = now.Add(50 * time.Millisecond); return now }
	s := newServer(t, o)
	complete(t, s, `{"prompt":"abc"}`)
	complete(t, s, `{"prompt":"abc","stream":true}`)
	complete(t, s, `{"n":2}`)
	w := do(t, s, "GET", "/metrics", "")
	for _, line := range []string{
		`trainer_serve_model_info{model="nano",digest="sha256:abc"} 1`,
		`trainer_serve_requests_total{code="200"} 2`,
		`trainer_serve_requests_total{code="400"} 1`,
		`trainer_serve_requests_in_flight 0`,
		`trainer_serve_prompt_tokens_total 6`,
		`trainer_serve_completion_tokens_total 4`,
		`trainer_serve_request_duration_seconds_bucket{le="0.025"} 0`,
		`trainer_serve_request_duration_seconds_bucket{le="0.05"} 1`,
		`trainer_serve_request_duration_seconds_bucket{le="0.1"} 3`,
		`trainer_serve_request_duration_seconds_bucket{le="+Inf"} 3`,
		`trainer_serve_request_duration_seconds_count 3`,
	} {
		if !strings.Contains(w.Body.String(), line+"\n") {
			t.Errorf("no line %q in\n%s", line, w.Body)
		}
	}
}

// running starts Serve and returns its address, its end and the stop.
func running(t *testing.T, s *Server) (string, <-chan error, context.CancelFunc) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	return "http://" + l.Addr().String(), ended, stop
}

func TestShutdownLetsAnAnswerEnd(t *testing.T) {
	e := &script{words: []string{"a"}, gate: make(chan struct{}), began: make(chan struct{})}
	s := newServer(t, testOptions(e))
	url, ended, stop := running(t, s)
	code := make(chan int)
	go func() {
		resp, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"a"}`))
		if err != nil {
			code <- 0
			return
		}
		resp.Body.Close()
		code <- resp.StatusCode
	}()
	<-e.began
	stop()
	select {
	case err := <-ended:
		t.Fatalf("ended with an answer under way: %v", err)
	case e.gate <- struct{}{}:
	}
	if got := <-code; got != http.StatusOK {
		t.Errorf("the answer under way: %d", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if w := do(t, s, "GET", "/readyz", ""); w.Code != http.StatusServiceUnavailable {
		t.Errorf("ready after shutdown: %d", w.Code)
	}
}

func TestShutdownCutsAnAnswerThatDoesNotEnd(t *testing.T) {
	e := &script{words: []string{"a"}, gate: make(chan struct{}), began: make(chan struct{}), ended: make(chan error, 1)}
	o := testOptions(e)
	o.DrainTimeout = time.Millisecond
	url, ended, stop := running(t, newServer(t, o))
	go func() {
		resp, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"a"}`))
		if err == nil {
			resp.Body.Close()
		}
	}()
	<-e.began
	stop()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "answers were cut") {
		t.Errorf("Serve: %v", err)
	}
	if err := <-e.ended; !errors.Is(err, errShutdown) {
		t.Errorf("the model ended with %v", err)
	}
}

func TestOptionsThatMakeNoServer(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"no model":    func(o *Options) { o.Model = "" },
		"no engine":   func(o *Options) { o.Engines = nil },
		"no context":  func(o *Options) { o.ContextLength = 0 },
		"no body":     func(o *Options) { o.MaxBody = 0 },
		"no tokens":   func(o *Options) { o.MaxTokens = 0 },
		"no time":     func(o *Options) { o.RequestTimeout = 0 },
		"no patience": func(o *Options) { o.DrainTimeout = -1 },
	} {
		o := testOptions(&script{})
		change(&o)
		if _, err := New(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
