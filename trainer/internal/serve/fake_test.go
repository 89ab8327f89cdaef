package serve

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/trainer/internal/generate"
)

// runes are the tokens of the fake encoder.
type runes struct{}

func (runes) Encode(text string) []int32 { return []int32(text) }

// script is an engine that says its words one by one, each a token, up to
// MaxTokens. Before a word it waits for a value of gate, unless gate is nil.
type script struct {
	words []string
	gate  chan struct{}
	err   error
	began chan struct{} // closed when a generation begins, unless nil
	ended chan error    // what each generation returned, unless nil
	got   generate.Options
}

func (e *script) Generate(ctx context.Context, prompt []int32, o generate.Options, emit func(string) error) (res generate.Result, err error) {
	if e.ended != nil {
		defer func() { e.ended <- err }()
	}
	if e.began != nil {
		close(e.began)
	}
	e.got = o
	res = generate.Result{PromptTokens: len(prompt), Reason: generate.ReasonStop}
	if e.err != nil {
		return res, e.err
	}
	for i, w := range e.words {
		if i == o.MaxTokens {
			res.Reason = generate.ReasonLength
			break
		}
		if e.gate != nil {
			select {
			case <-e.gate:
			case <-ctx.Done():
				return res, context.Cause(ctx)
			}
		}
		res.Tokens = append(res.Tokens, int32(i))
		if err := emit(w); err != nil {
			return res, err
		}
	}
	return res, nil
}

func testOptions(e ...Engine) Options {
	return Options{
		Model: "nano", Digest: "sha256:abc", ContextLength: 20, Engines: e, Encoder: runes{},
		MaxBody: 1000, MaxTokens: 100, RequestTimeout: time.Minute, DrainTimeout: time.Minute,
		Now:   func() time.Time { return time.Unix(1700000000, 0) },
		Seed:  func() uint64 { return 42 },
		NewID: func() string { return "7" },
		Log:   slog.New(slog.DiscardHandler),
	}
}

func newServer(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// do sends a request to the handler and returns the answer.
func do(t *testing.T, s *Server, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	return w
}

func complete(t *testing.T, s *Server, body string) *httptest.ResponseRecorder {
	t.Helper()
	return do(t, s, http.MethodPost, "/v1/completions", body)
}

func decode[T any](t *testing.T, r io.Reader) (v T) {
	t.Helper()
	if err := json.NewDecoder(r).Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// wireError is the error as a client sees it.
type wireError struct {
	Error struct {
		Message, Type string
		Param, Code   *string
	}
}
