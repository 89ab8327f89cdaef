package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/generate"
)

// errClientGone is an answer that could not be sent.
var errClientGone = errors.New("the client is gone")

// errTimeout is the cause of an answer that took longer than allowed.
var errTimeout = errors.New("the answer took too long")

func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	j, bad := s.parse(http.MaxBytesReader(w, r.Body, s.o.MaxBody))
	if bad != nil {
		bad.write(w)
		return
	}
	engine, err := s.engines.take()
	if err != nil {
		(&apiError{http.StatusTooManyRequests, kindLimit, "", "rate_limit_exceeded",
			fmt.Sprintf("%d requests are being answered, this server takes no more at once: try again later", len(s.o.Engines))}).write(w)
		return
	}
	defer s.engines.giveBack(engine)
	ctx, cancel := context.WithTimeoutCause(r.Context(), s.o.RequestTimeout, errTimeout)
	defer cancel()
	head := completion{
		ID: "cmpl-" + s.o.NewID(), Object: "text_completion", Created: s.o.Now().Unix(),
		Model: s.o.Model, SystemFingerprint: s.o.Digest,
	}
	if j.stream {
		s.stream(ctx, w, engine, j, head)
		return
	}
	s.whole(ctx, w, engine, j, head)
}

// whole answers at once.
func (s *Server) whole(ctx context.Context, w http.ResponseWriter, e Engine, j job, answer completion) {
	var text strings.Builder
	if j.echo {
		text.WriteString(j.prompt)
	}
	res, err := e.Generate(ctx, j.tokens, j.opts, func(t string) error {
		text.WriteString(t)
		return nil
	})
	s.metrics.count(res)
	if err != nil {
		s.failure(ctx, err).write(w)
		return
	}
	answer.Choices = []choice{{Text: text.String(), FinishReason: &res.Reason}}
	answer.Usage = usageOf(res)
	writeJSON(w, http.StatusOK, answer)
}

// stream answers piece by piece, as server-sent events that end with [DONE].
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, e Engine, j job, head completion) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	events := eventWriter{w, http.NewResponseController(w)}
	piece := func(text string, reason *generate.Reason) error {
		c := head
		c.Choices = []choice{{Text: text, FinishReason: reason}}
		if err := events.send(c); err != nil {
			return fmt.Errorf("%w: %w", errClientGone, err)
		}
		return nil
	}
	var res generate.Result
	err := func() (err error) {
		if j.echo {
			if err := piece(j.prompt, nil); err != nil {
				return err
			}
		}
		res, err = e.Generate(ctx, j.tokens, j.opts, func(text string) error { return piece(text, nil) })
		if err != nil {
			return err
		}
		return piece("", &res.Reason)
	}()
	s.metrics.count(res)
	if err != nil {
		// The status is sent: the error can only follow as an event.
		if events.send(s.failure(ctx, err).body()) == nil {
			_ = events.done()
		}
		return
	}
	if j.usage {
		c := head
		c.Choices, c.Usage = []choice{}, usageOf(res)
		if events.send(c) != nil {
			return
		}
	}
	_ = events.done() // a client that is gone needs no end
}

// failure says what went wrong in a way that shows no inner detail.
func (s *Server) failure(ctx context.Context, err error) *apiError {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeout):
		return &apiError{http.StatusGatewayTimeout, kindServer, "", "timeout", fmt.Sprintf("the answer took longer than %v", s.o.RequestTimeout)}
	case errors.Is(cause, errShutdown):
		return &apiError{http.StatusServiceUnavailable, kindServer, "", "shutting_down", errShutdown.Error()}
	case cause != nil, errors.Is(err, errClientGone):
		// The client went away and reads this no more; the status is for metrics.
		return &apiError{statusClientGone, kindServer, "", "client_gone", "the request was cancelled"}
	}
	if errors.Is(err, generate.ErrOptions) {
		return invalid("prompt", err.Error())
	}
	s.o.Log.Error("generation failed", "error", err)
	return &apiError{http.StatusInternalServerError, kindServer, "", "", "the model failed to answer; the server's log says why"}
}

// statusClientGone is nginx's code for a request that its client gave up.
const statusClientGone = 499

// eventWriter writes server-sent events and flushes each.
type eventWriter struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

func (e eventWriter) send(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return e.event(b)
}

func (e eventWriter) done() error { return e.event([]byte("[DONE]")) }

func (e eventWriter) event(data []byte) error {
	if _, err := fmt.Fprintf(e.w, "data: %s\n\n", data); err != nil {
		return err
	}
	return e.rc.Flush()
}
