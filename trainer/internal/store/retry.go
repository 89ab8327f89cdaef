package store

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	smithy "github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// DefaultDelays returns the waits between attempts: six attempts over half a
// minute, which outlives the restart of a small server.
func DefaultDelays() []time.Duration {
	return []time.Duration{
		200 * time.Millisecond, time.Second, 3 * time.Second, 8 * time.Second, 20 * time.Second,
	}
}

// isRetryable says whether the same request may succeed a little later.
func isRetryable(err error) bool {
	// A deadline may be the caller's or that of a dial; the wait before the next
	// attempt ends at once if it is the caller's.
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	if status := httpStatus(err); status != 0 {
		switch status {
		case http.StatusRequestTimeout, http.StatusTooManyRequests,
			http.StatusInternalServerError, http.StatusBadGateway,
			http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		switch apiCode(err) {
		case "RequestTimeout", "RequestTimeTooSkewed", "SlowDown", "Throttling", "InternalError":
			return true // some servers send these with 400
		case "":
			// An answer that could not be read to its end.
			return status < 300 && errors.Is(err, io.ErrUnexpectedEOF)
		}
		return false
	}
	var cert *tls.CertificateVerificationError
	if errors.As(err, &cert) {
		return false
	}
	var netErr net.Error
	var sendErr *smithyhttp.RequestSendError
	return errors.As(err, &netErr) || errors.As(err, &sendErr) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// httpStatus is the status of the answer inside err, or 0 without an answer.
func httpStatus(err error) int {
	var re *smithyhttp.ResponseError
	if errors.As(err, &re) && re.Response != nil {
		return re.HTTPStatusCode()
	}
	return 0
}

// apiCode is the S3 error code inside err, such as NoSuchKey, or "".
func apiCode(err error) string {
	var ae smithy.APIError
	if errors.As(err, &ae) {
		return ae.ErrorCode()
	}
	return ""
}

// retryer gives the SDK our list of delays. The SDK's own retryer has a bucket
// of tokens that empties when a server is down for a while, and its random
// delays make faults hard to reproduce.
type retryer struct{ delays []time.Duration }

var _ aws.Retryer = retryer{}

func (r retryer) IsErrorRetryable(err error) bool { return isRetryable(err) }

func (r retryer) MaxAttempts() int { return len(r.delays) + 1 }

func (r retryer) RetryDelay(attempt int, _ error) (time.Duration, error) {
	if len(r.delays) == 0 {
		return 0, nil
	}
	return r.delays[min(max(attempt-1, 0), len(r.delays)-1)], nil
}

func (r retryer) GetRetryToken(context.Context, error) (func(error) error, error) {
	return noRelease, nil
}

func (r retryer) GetInitialToken() func(error) error { return noRelease }

func noRelease(error) error { return nil }

// Sleep waits for d, or until ctx ends: its error then. It is the default wherever
// waiting can be replaced.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
