package pushevent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Sender sends deliveries.
type Sender struct {
	// Client's timeout bounds each attempt.
	Client *http.Client
	// Attempts is how often a delivery is sent at most while nobody takes it, Pause
	// what lies between two; it doubles.
	Attempts int
	Pause    time.Duration
	// Sleep waits; it returns early, with the cause, when the context ends.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Answer is a listener's.
type Answer struct {
	Status   int    `json:"status"`
	Body     string `json:"body"` // what it begins with
	Attempts int    `json:"attempts"`
}

// Address checks the address of a listener.
func Address(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, exitcode.Errorf(exitcode.Usage, "url is no address of a listener: say http://host:port/path, without credentials")
	}
	return u, nil
}

// Send posts a delivery. What reached no listener is sent again, as the same delivery:
// a listener that had taken it after all starts nothing twice. An answer that refuses
// it is an error; of one that takes it, 202, it follows only that it was received.
func (s Sender) Send(ctx context.Context, to *url.URL, d Delivery) (Answer, error) {
	var answer Answer
	for pause := s.Pause; ; pause *= 2 {
		var err error
		answer.Attempts++
		answer.Status, answer.Body, err = s.post(ctx, to, d)
		switch {
		case err == nil && answer.Status/100 == 2:
			return answer, nil
		case err == nil && !gatewayFailed(answer.Status):
			return answer, exitcode.Errorf(exitcode.Failed, "%s refuses delivery %s: status %d: %s", to.Redacted(), d.ID, answer.Status, firstLine(answer.Body))
		case err == nil:
			err = fmt.Errorf("status %d: %s", answer.Status, firstLine(answer.Body))
		}
		if answer.Attempts >= s.Attempts || ctx.Err() != nil {
			return answer, exitcode.Errorf(exitcode.IO, "nobody took delivery %s at %s in %d attempts: %w", d.ID, to.Redacted(), answer.Attempts, err)
		}
		if waitErr := s.Sleep(ctx, pause); waitErr != nil {
			return answer, exitcode.Errorf(exitcode.IO, "nobody took delivery %s at %s in %d attempts: %w", d.ID, to.Redacted(), answer.Attempts, err)
		}
	}
}

// gatewayFailed says that something before the listener answered.
func gatewayFailed(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

func (s Sender) post(ctx context.Context, to *url.URL, d Delivery) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(d.Body))
	if err != nil {
		return 0, "", err
	}
	for name, value := range d.Header {
		request.Header.Set(name, value)
	}
	response, err := s.Client.Do(request)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err // the address is in our message already
		}
		return 0, "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if err != nil {
		return 0, "", err
	}
	return response.StatusCode, string(answer), nil
}

// NewClient returns a client that follows no redirect: forges follow none, and a
// signed event is for one listener.
func NewClient(timeout time.Duration, transport http.RoundTripper) *http.Client {
	return &http.Client{
		Timeout: timeout, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if line == "" {
		return "it says nothing"
	}
	return fmt.Sprintf("%.200q", line)
}
