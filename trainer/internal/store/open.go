package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// Options are the settings of Open. The zero value is right for a directory
// and for AWS; everything but Create is for s3:// alone. Credentials come from
// the standard AWS places (environment, shared files, web identity) and are
// never part of the options.
type Options struct {
	// Create makes the directory of a file:// store when it is missing.
	// Without it a missing directory, such as a volume that is not mounted,
	// is ErrNoBucket and not an empty store.
	Create bool

	// Endpoint is the URL of a server that is not AWS. Empty means
	// AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or AWS.
	Endpoint string

	// Region is empty for AWS_REGION; with an endpoint us-east-1 is the default.
	Region string

	// PathStyle is "true" (http://host/bucket/key), "false"
	// (http://bucket.host/key) or empty: true with an endpoint.
	PathStyle string

	// CABundle is a PEM file of certificates to trust beside the system's.
	// Empty means AWS_CA_BUNDLE or only the system's.
	CABundle string

	// ChecksumMode is "when_supported" (CRC32 with every upload, as a trailer,
	// which several servers refuse), "when_required" (none, but the SHA-256 of
	// every request is signed), or empty: AWS_REQUEST_CHECKSUM_CALCULATION if
	// set, else when_required with an endpoint and when_supported for AWS.
	ChecksumMode string

	// PartSize is the size in bytes of a part of a multipart upload, and the
	// size from which there is one: at least 5 MiB, 0 means 8 MiB. It grows
	// by itself for objects of more than 10000 parts.
	PartSize int64

	// Concurrency is the number of parts on the way at once; 0 means 4. An
	// upload holds about (Concurrency+2) × PartSize bytes.
	Concurrency int

	// StallTimeout is how long a connection may make no progress; 0 means 2
	// minutes.
	StallTimeout time.Duration

	// Delays are the waits before the second, third, … attempt of a request
	// that failed in a way that may pass. Nil means DefaultDelays; an empty
	// list means one attempt.
	Delays []time.Duration

	// Sleep waits between attempts to continue a download; nil means a timer.
	Sleep func(context.Context, time.Duration) error
}

// ErrOptions is wrapped by errors about a URL or an option that no store can
// have, as opposed to a store that does not answer.
var ErrOptions = errors.New("invalid store URL or option")

type optionError struct{ error }

func (e optionError) Unwrap() error { return e.error }

func (optionError) Is(target error) bool { return target == ErrOptions }

func badOption(format string, args ...any) error { return optionError{fmt.Errorf(format, args...)} }

// Open opens the store that rawURL names: file:///dir or s3://bucket/prefix.
// A directory is looked for at once (ErrNoBucket); a bucket at the first use.
func Open(ctx context.Context, rawURL string, opts Options) (Store, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, badOption("store URL %q: not a URL: write file:///dir or s3://bucket/prefix", rawURL)
	}
	if u.User != nil {
		return nil, badOption("store URL %q: credentials do not belong into a URL: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", u.Redacted())
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, badOption("store URL %q: must not have a query or a fragment", rawURL)
	}
	switch u.Scheme {
	case "file":
		if (u.Host != "" && u.Host != "localhost") || !filepath.IsAbs(u.Path) {
			return nil, badOption("store URL %q: a file store needs an absolute path and three slashes: file:///dir", rawURL)
		}
		return openFile(filepath.Clean(u.Path), opts.Create)
	case "s3":
		prefix := strings.Trim(u.Path, "/")
		if u.Host == "" {
			return nil, badOption("store URL %q: no bucket: write s3://bucket/prefix", rawURL)
		}
		if prefix != "" {
			if err := ValidateKey(prefix); err != nil {
				return nil, badOption("store URL %q: %w", rawURL, err)
			}
		}
		return openS3(ctx, u.Host, prefix, opts)
	}
	return nil, badOption("store URL %q: scheme %q is unknown: write file:///dir or s3://bucket/prefix", rawURL, u.Scheme)
}

// FileURL is the file:// URL of a directory, absolute or relative to the
// working directory.
func FileURL(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("directory %s: %w", dir, err)
	}
	return (&url.URL{Scheme: "file", Path: abs}).String(), nil
}
