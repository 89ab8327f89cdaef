package store

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	smithy "github.com/aws/smithy-go"
)

// fail gives an error of the SDK its meaning, a place and a remedy.
func (s *s3Store) fail(verb, key string, err error) error {
	return fmt.Errorf("%s %q in bucket %q at %s: %w", verb, *s.name(key), s.bucket, s.endpoint, s.classify(err))
}

func (s *s3Store) classify(err error) error {
	status, code := httpStatus(err), apiCode(err)
	err = brief(err)
	switch {
	case code == "NoSuchBucket":
		return fmt.Errorf("%w: create it or correct its name: %w", ErrNoBucket, err)
	case code == "NoSuchKey" && status == http.StatusNotFound:
		return ErrNotFound
	case status == http.StatusForbidden || status == http.StatusUnauthorized || isCredentialCode(code):
		return fmt.Errorf("%w: check the access key, its secret and the permissions s3:GetObject, s3:PutObject and s3:ListBucket (without the last one a missing object is denied, too): %w", ErrDenied, err)
	case status == http.StatusMovedPermanently || status == http.StatusTemporaryRedirect || code == "PermanentRedirect" || code == "AuthorizationHeaderMalformed":
		return fmt.Errorf("wrong region or addressing: set the region of the bucket and the path style: %w", err)
	case status == http.StatusNotImplemented || code == "XAmzContentSHA256Mismatch":
		return fmt.Errorf("the server does not know this kind of upload: set the checksum mode to when_required: %w", err)
	}
	// The client puts the whole URL into its error. It has no secret in it,
	// but a proxy's may; keep the reason only.
	var ue *url.Error
	if errors.As(err, &ue) && status == 0 {
		return fmt.Errorf("the server cannot be reached or gave no answer: check endpoint, network and certificates: %w", ue.Err)
	}
	return err
}

// briefError prints less than what it wraps.
type briefError struct {
	text string
	error
}

func (e briefError) Error() string { return e.text }

func (e briefError) Unwrap() error { return e.error }

// brief keeps of an answer's error what helps: code, message, status, and the
// request's id for whoever runs the server. The SDK prints two lines' worth of
// ids, and a message may have line breaks.
func brief(err error) error {
	var api smithy.APIError
	if _, whole := err.(*smithy.OperationError); !whole || !errors.As(err, &api) { //nolint:errorlint // a wrapped one has a text of ours around it
		return err
	}
	text := api.ErrorCode()
	if m := strings.Join(strings.Fields(api.ErrorMessage()), " "); m != "" {
		text += ": " + strings.TrimSuffix(m, ".")
	}
	text += fmt.Sprintf(" (status %d", httpStatus(err))
	var answer interface{ ServiceRequestID() string }
	if errors.As(err, &answer) && answer.ServiceRequestID() != "" {
		text += ", request " + answer.ServiceRequestID()
	}
	return briefError{text + ")", err}
}

func isCredentialCode(code string) bool {
	switch code {
	case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired":
		return true
	}
	return false
}

// isLostRace: servers answer a false condition with 412, a concurrent one with
// 409, and some with 304.
func isLostRace(err error) bool {
	switch httpStatus(err) {
	case http.StatusNotModified, http.StatusConflict, http.StatusPreconditionFailed:
		return true
	}
	return false
}
