package registryclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"unicode"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Kinds of failure that callers act on.
var (
	ErrNotFound = errors.New("not found")
	ErrDenied   = errors.New("denied")
)

// maxQuote bounds what is repeated of a server's own words.
const maxQuote = 200

// Explain makes one line of an error of a registry: what was done (a verb such as
// "read"), to which image, why it failed and what helps. It carries an exit code.
// A nil error stays nil.
func Explain(verb, image string, err error) error {
	if err == nil {
		return nil
	}
	code, reason := explain(err)
	return exitcode.New(code, &failure{fmt.Sprintf("%s %s: %s", verb, image, reason), kind(err), err})
}

// failure prints its sentence alone, while errors.Is and As see the cause.
type failure struct {
	sentence string
	kind     error
	cause    error
}

func (f *failure) Error() string { return f.sentence }

func (f *failure) Unwrap() []error {
	if f.kind == nil {
		return []error{f.cause}
	}
	return []error{f.kind, f.cause}
}

func kind(err error) error {
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return nil
	}
	switch answer.StatusCode {
	case http.StatusNotFound:
		return ErrNotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return ErrDenied
	}
	return nil
}

func explain(err error) (code int, reason string) {
	var (
		answer  *transport.Error
		plain   *plainHTTPError
		page    *pageError
		record  tls.RecordHeaderError
		unknown x509.UnknownAuthorityError
		badHost x509.HostnameError
		syntax  *json.SyntaxError
		network net.Error
	)
	switch {
	case errors.Is(err, context.Canceled):
		return exitcode.IO, "stopped"
	case errors.As(err, &page):
		return exitcode.BadInput, page.Error()
	case errors.As(err, &answer):
		return explainAnswer(answer)
	case errors.As(err, &unknown), errors.As(err, &badHost):
		return exitcode.IO, "its certificate is not trusted: " + line(err.Error()) + ": add the authority's certificate (SSL_CERT_FILE)"
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return exitcode.Usage, "the registry speaks plain http: if it may be insecure, list it as an insecure registry"
	case errors.As(err, &plain):
		return exitcode.Usage, "the registry does not answer with TLS: " + line(err.Error())
	case errors.As(err, &syntax):
		return exitcode.IO, "the answer is not JSON: check host and port, and any proxy between: " + line(err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return exitcode.IO, "no answer in time: " + line(err.Error())
	case errors.As(err, &network):
		return exitcode.IO, "cannot be reached: " + line(err.Error())
	}
	return exitcode.IO, line(err.Error())
}

// explainAnswer tells what a status means. The server's own words are quoted only
// when they are its JSON: a page is no reason.
func explainAnswer(e *transport.Error) (code int, reason string) {
	said := fmt.Sprintf("%d %s", e.StatusCode, http.StatusText(e.StatusCode))
	if len(e.Errors) > 0 {
		var words []string
		for _, d := range e.Errors {
			words = append(words, strings.TrimSuffix(strings.TrimSpace(string(d.Code)+" "+d.Message), ":"))
		}
		said += ": " + line(strings.Join(words, "; "))
	}
	switch {
	case e.StatusCode == http.StatusUnauthorized:
		return exitcode.IO, "the registry wants other credentials (" + said + "): check the docker configuration for this host"
	case e.StatusCode == http.StatusForbidden:
		return exitcode.IO, "the registry refuses this user (" + said + "): ask for the right to read or write this repository"
	case e.StatusCode == http.StatusNotFound:
		return exitcode.BadInput, "not there (" + said + "): check repository, tag and digest"
	case e.StatusCode == http.StatusTooManyRequests:
		return exitcode.IO, "the registry asks for fewer requests (" + said + "): try later, or log in"
	case e.StatusCode >= 500:
		return exitcode.IO, "the registry, or a proxy before it, failed (" + said + "): a retry can help"
	}
	return exitcode.IO, "the registry answered " + said
}

func badName(s string, err error) error {
	return exitcode.Errorf(exitcode.BadInput, "image name %q: %s: want host/repository:tag or …@sha256:…", s, line(err.Error()))
}

// line makes one printable line of what somebody else wrote.
func line(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if runes := []rune(s); len(runes) > maxQuote {
		s = string(runes[:maxQuote]) + "…"
	}
	return s
}
