package progress

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// statusServer is a Kubeflow Trainer status server that answers with a code.
type statusServer struct {
	*httptest.Server
	mu     sync.Mutex
	code   int
	bodies []string
	tokens []string
	got    chan struct{} // one value a request
	hold   chan struct{} // when not nil, requests wait until it is closed
}

func newStatusServer(t *testing.T) *statusServer {
	s := &statusServer{code: http.StatusOK, got: make(chan struct{}, 100)}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.bodies = append(s.bodies, string(b))
		s.tokens = append(s.tokens, r.Method+" "+r.Header.Get("Authorization"))
		code := s.code
		s.mu.Unlock()
		s.got <- struct{}{}
		if s.hold != nil {
			<-s.hold
		}
		w.WriteHeader(code)
	}))
	t.Cleanup(s.Close)
	return s
}

// env writes CA and token and returns the variables of a pod.
func (s *statusServer) env(t *testing.T) (map[string]string, string) {
	t.Helper()
	dir := t.TempDir()
	ca, token := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for path, text := range map[string]string{ca: string(block), token: "first\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]string{envURL: s.URL + "/status", envCA: ca, envToken: token}, token
}

func newPush(t *testing.T, env map[string]string, log io.Writer) *Push {
	t.Helper()
	p, err := NewPush(func(k string) string { return env[k] }, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil || p == nil {
		t.Fatalf("push %v, error %v", p, err)
	}
	return p
}

func TestPushSendsDocumentAndToken(t *testing.T) {
	s := newStatusServer(t)
	env, token := s.env(t)
	var log bytes.Buffer
	p := newPush(t, env, &log)
	p.Report(t.Context(), Status{Step: 10, TotalSteps: 100, Time: start()})
	<-s.got
	if err := os.WriteFile(token, []byte("second"), 0o600); err != nil { // the kubelet renews it
		t.Fatal(err)
	}
	p.Report(t.Context(), Status{Step: 20, TotalSteps: 100, Time: start().Add(time.Second)}) // too soon
	p.Report(t.Context(), Status{Step: 30, TotalSteps: 100, Time: start().Add(5 * time.Second)})
	<-s.got
	p.Report(t.Context(), Status{Step: 100, TotalSteps: 100, Final: true, Time: start().Add(6 * time.Second)})
	p.Close()
	if got := strings.Join(s.tokens, ", "); got != "POST Bearer first, POST Bearer second, POST Bearer second" {
		t.Errorf("tokens %s", got)
	}
	for i, want := range []int{10, 30, 100} {
		var body struct{ TrainerStatus Document }
		if err := json.Unmarshal([]byte(s.bodies[i]), &body); err != nil || body.TrainerStatus.ProgressPercentage != want {
			t.Errorf("body %d: %s, %v; want %d %%", i, s.bodies[i], err, want)
		}
	}
	if log.Len() != 0 {
		t.Errorf("log %s", log.String())
	}
}

func TestPushThatIsRefusedIsSaidOnce(t *testing.T) {
	s := newStatusServer(t)
	s.code = http.StatusForbidden
	env, _ := s.env(t)
	var log bytes.Buffer
	p := newPush(t, env, &log)
	for i := range 3 {
		p.Report(t.Context(), Status{Step: i, TotalSteps: 100, Time: start().Add(time.Duration(i) * time.Minute)})
		<-s.got
	}
	p.Close()
	if n := strings.Count(log.String(), "training goes on"); n != 1 || !strings.Contains(log.String(), "403") {
		t.Errorf("said %d times: %s", n, log.String())
	}
}

func TestPushToASlowServerNeverWaitsAndKeepsTheNewest(t *testing.T) {
	s := newStatusServer(t)
	s.hold = make(chan struct{})
	env, _ := s.env(t)
	p := newPush(t, env, io.Discard)
	p.Report(t.Context(), Status{Step: 0, TotalSteps: 100, Time: start()})
	<-s.got // the server holds the first
	for i := 1; i <= 50; i++ {
		p.Report(t.Context(), Status{Step: i, TotalSteps: 100, Time: start().Add(time.Duration(i) * time.Minute)})
	}
	close(s.hold)
	p.Close()
	if len(s.bodies) != 2 || !strings.Contains(s.bodies[1], `"progressPercentage":50`) {
		t.Errorf("%d bodies, last %s; want 2, the newest last", len(s.bodies), s.bodies[len(s.bodies)-1])
	}
}

func TestCloseGivesUpOnAServerThatHangs(t *testing.T) {
	s := newStatusServer(t)
	s.hold = make(chan struct{})
	env, _ := s.env(t)
	p := newPush(t, env, io.Discard)
	p.closeAfter = time.Millisecond
	p.Report(t.Context(), Status{TotalSteps: 1, Time: start()})
	<-s.got
	p.Close() // returns although nobody answers
	close(s.hold)
}

func TestPushIsOffUnlessAllVariablesAreSet(t *testing.T) {
	s := newStatusServer(t)
	full, _ := s.env(t)
	for _, missing := range []string{envURL, envCA, envToken} {
		p, err := NewPush(func(k string) string {
			if k == missing {
				return ""
			}
			return full[k]
		}, slog.New(slog.DiscardHandler))
		if p != nil || err != nil {
			t.Errorf("without %s: %v, %v", missing, p, err)
		}
	}
	for name, value := range map[string]string{envURL: "ftp://x", envCA: "/missing"} {
		if _, err := NewPush(func(k string) string {
			if k == name {
				return value
			}
			return full[k]
		}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v, want an error that names it", name, value, err)
		}
	}
}
