package serve

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/trainyard/trainyard/trainer/internal/generate"
)

// metrics are the counters of /metrics, in Prometheus' text format 0.0.4.
type metrics struct {
	mu        sync.Mutex
	requests  map[int]int64 // by status
	prompt    int64
	completed int64
	inFlight  int64
	buckets   []int64 // of durations, one more than bounds
	seconds   float64
}

// bounds are the upper ends of the duration buckets, in seconds.
func bounds() []float64 {
	return []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
}

func newMetrics() *metrics {
	return &metrics{requests: map[int]int64{}, buckets: make([]int64, len(bounds())+1)}
}

func (m *metrics) count(r generate.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prompt += int64(r.PromptTokens)
	m.completed += int64(len(r.Tokens))
}

func (m *metrics) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inFlight++
}

func (m *metrics) end(status int, seconds float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inFlight--
	m.requests[status]++
	m.seconds += seconds
	i, _ := slices.BinarySearchFunc(bounds(), seconds, cmp.Compare[float64])
	m.buckets[i]++
}

// statusWriter remembers the status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets a ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (s *Server) measured(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := s.o.Now()
		sw := &statusWriter{ResponseWriter: w}
		s.metrics.begin()
		defer func() {
			status := cmp.Or(sw.status, http.StatusOK)
			s.metrics.end(status, s.o.Now().Sub(start).Seconds())
		}()
		next(sw, r)
	}
}

func (s *Server) writeMetrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	s.metrics.write(w, s.o.Model, s.o.Digest)
}

func (m *metrics) write(w io.Writer, model, digest string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	head := func(name, kind, help string) {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	head("trainer_serve_model_info", "gauge", "The model that is served.")
	fmt.Fprintf(w, "trainer_serve_model_info{model=%q,digest=%q} 1\n", model, digest)
	head("trainer_serve_requests_total", "counter", "Completion requests by HTTP status.")
	for _, status := range slices.Sorted(maps.Keys(m.requests)) {
		fmt.Fprintf(w, "trainer_serve_requests_total{code=\"%d\"} %d\n", status, m.requests[status])
	}
	head("trainer_serve_requests_in_flight", "gauge", "Completion requests being answered.")
	fmt.Fprintf(w, "trainer_serve_requests_in_flight %d\n", m.inFlight)
	head("trainer_serve_prompt_tokens_total", "counter", "Tokens read in prompts.")
	fmt.Fprintf(w, "trainer_serve_prompt_tokens_total %d\n", m.prompt)
	head("trainer_serve_completion_tokens_total", "counter", "Tokens made.")
	fmt.Fprintf(w, "trainer_serve_completion_tokens_total %d\n", m.completed)
	head("trainer_serve_request_duration_seconds", "histogram", "Time of completion requests.")
	total := int64(0)
	for i, b := range bounds() {
		total += m.buckets[i]
		fmt.Fprintf(w, "trainer_serve_request_duration_seconds_bucket{le=%q} %d\n", strconv.FormatFloat(b, 'g', -1, 64), total)
	}
	total += m.buckets[len(m.buckets)-1]
	fmt.Fprintf(w, "trainer_serve_request_duration_seconds_bucket{le=\"+Inf\"} %d\n", total)
	fmt.Fprintf(w, "trainer_serve_request_duration_seconds_sum %g\n", m.seconds)
	fmt.Fprintf(w, "trainer_serve_request_duration_seconds_count %d\n", total)
}
