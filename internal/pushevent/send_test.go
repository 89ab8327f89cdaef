package pushevent_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/pause"
	"github.com/trainyard/trainyard/internal/pushevent"
	"github.com/trainyard/trainyard/internal/pushrun"
)

func sender() pushevent.Sender {
	return pushevent.Sender{
		Client: pushevent.NewClient(5*time.Second, &http.Transport{}), Attempts: 4, Pause: time.Millisecond, Sleep: pause.For,
	}
}

func address(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := pushevent.Address(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

var delivery = pushevent.Delivery{ID: deliveryID, Event: "push", Header: map[string]string{"X-GitHub-Delivery": deliveryID}, Body: []byte(`{"ref":"refs/heads/main"}`)}

// listener answers with one status after the other and keeps what it got.
type listener struct {
	*httptest.Server
	mu         sync.Mutex
	statuses   []int
	deliveries []string
	bodies     []string
}

func listen(t *testing.T, statuses ...int) *listener {
	t.Helper()
	l := &listener{statuses: statuses}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.deliveries = append(l.deliveries, r.Header.Get("X-GitHub-Delivery"))
		l.bodies = append(l.bodies, string(body))
		status := l.statuses[min(len(l.deliveries), len(l.statuses))-1]
		if status == 0 { // the connection breaks
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
			}
			conn.Close()
			return
		}
		if status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		io.WriteString(w, "what it says\nand more")
	}))
	t.Cleanup(l.Close)
	return l
}

// got are the deliveries so far, and their bodies.
func (l *listener) got() (deliveries, bodies []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.deliveries), slices.Clone(l.bodies)
}

func TestADeliveryIsSentUntilSomebodyTakesIt(t *testing.T) {
	for name, test := range map[string]struct {
		statuses []int
		attempts int
		code     int
	}{
		"at once":                 {[]int{202}, 1, exitcode.OK},
		"another success":         {[]int{200}, 1, exitcode.OK},
		"connections that break":  {[]int{0, 0, 202}, 3, exitcode.OK},
		"a gateway without it":    {[]int{503, 502, 504, 202}, 4, exitcode.OK},
		"never":                   {[]int{0}, 4, exitcode.IO},
		"never, at a gateway":     {[]int{503}, 4, exitcode.IO},
		"a refusal is an answer":  {[]int{400, 202}, 1, exitcode.Failed},
		"so is a broken listener": {[]int{500, 202}, 1, exitcode.Failed},
		"and a redirect":          {[]int{302, 202}, 1, exitcode.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t, test.statuses...)
			answer, err := sender().Send(t.Context(), address(t, l.URL), delivery)
			deliveries, bodies := l.got()
			if exitcode.Of(err) != test.code || answer.Attempts != test.attempts || len(deliveries) != test.attempts {
				t.Errorf("%+v, %v after %d deliveries", answer, err, len(deliveries))
			}
			for i := range deliveries {
				if deliveries[i] != deliveryID || bodies[i] != string(delivery.Body) {
					t.Errorf("attempt %d is %s: %s", i, deliveries[i], bodies[i])
				}
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	l := listen(t, 202)
	l.Close()
	_, err := sender().Send(t.Context(), address(t, l.URL), delivery)
	if exitcode.Of(err) != exitcode.IO || !strings.Contains(err.Error(), "in 4 attempts: ") || !strings.Contains(err.Error(), "connection refused") || strings.Count(err.Error(), l.URL) != 1 {
		t.Errorf("%v", err)
	}
}

func TestAListenerThatSaysNothingHoldsNobodyUp(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	s := sender()
	s.Client.Timeout, s.Attempts = 50*time.Millisecond, 2
	started := time.Now()
	answer, err := s.Send(t.Context(), address(t, "http://"+silent.Addr().String()), delivery)
	if exitcode.Of(err) != exitcode.IO || answer.Attempts != 2 || time.Since(started) > 3*time.Second {
		t.Errorf("%+v, %v after %v", answer, err, time.Since(started))
	}
	s.Client.Timeout, s.Attempts = time.Minute, 100
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Send(ctx, address(t, "http://"+silent.Addr().String()), delivery); !errors.Is(err, context.DeadlineExceeded) || time.Since(started) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(started))
	}
}

func TestPausesDouble(t *testing.T) {
	l := listen(t, 503)
	var pauses []time.Duration
	s := sender()
	s.Pause = 100 * time.Millisecond
	s.Sleep = func(_ context.Context, d time.Duration) error { pauses = append(pauses, d); return nil }
	if _, err := s.Send(t.Context(), address(t, l.URL), delivery); err == nil {
		t.Error("it is taken")
	}
	if len(pauses) != 3 || pauses[0] != 100*time.Millisecond || pauses[2] != 400*time.Millisecond {
		t.Errorf("%v", pauses)
	}
}

func TestAddressesThatAreNoListeners(t *testing.T) {
	for _, s := range []string{"", "localhost:8080", "ftp://host/", "http://", "http://ann:secret@host/", "http://h\x7f"} {
		if _, err := pushevent.Address(s); exitcode.Of(err) != exitcode.Usage || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestNoMoreIsSentWhenNobodyTakesIt(t *testing.T) {
	s := newStory(t)
	opened, err := pushevent.Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	updates := []pushevent.Update{
		{Before: none, After: s.first, Ref: "refs/heads/a"}, {Before: none, After: s.first, Ref: "refs/heads/b"}, {Before: s.first, After: none, Ref: "refs/heads/c"},
	}
	for name, test := range map[string]struct {
		statuses []int
		told     int
		code     int
		say      string
		got      int
	}{
		"all are taken":       {[]int{202}, 3, exitcode.OK, "", 3},
		"one is refused":      {[]int{202, 400, 202}, 2, exitcode.Failed, "refs/heads/b: ", 3},
		"nobody takes any":    {[]int{503}, 0, exitcode.IO, "(2 more were not sent)", 4},
		"nobody the last one": {[]int{202, 202, 503}, 2, exitcode.IO, "refs/heads/c: ", 6},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t, test.statuses...)
			random := strings.NewReader(strings.Repeat("0123456789", 20))
			teller := pushevent.Teller{Repository: opened, Origin: pushevent.Origin{Forge: pushrun.GitHub, Repository: "team/llm"}, Secret: []byte("x"), Random: random, Sender: sender(), URL: address(t, l.URL)}
			told, err := teller.TellAll(t.Context(), updates, "")
			deliveries, _ := l.got()
			if len(told) != test.told || exitcode.Of(err) != test.code || len(deliveries) != test.got {
				t.Errorf("%d told, %v, %d deliveries", len(told), err, len(deliveries))
			}
			if err != nil && !strings.Contains(err.Error(), test.say) {
				t.Errorf("it says %v", err)
			}
		})
	}
}
