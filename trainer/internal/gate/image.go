package gate

import (
	"errors"
	"fmt"
	"regexp"
)

// ErrImage is wrapped by errors about an image that is not pinned.
var ErrImage = errors.New("image is not a digest reference")

// The parts of a reference are those of the OCI distribution specification
// (name components, tag, digest), with an optional registry host and port.
var imagePattern = regexp.MustCompile(
	`^(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::[0-9]{1,5})?/)?` +
		`[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*` +
		`(?::[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127})?@sha256:([0-9a-f]{64})$`)

// ImageDigest returns the SHA-256, in hex, that an image reference is pinned to.
// A tag can be pushed over, so a reference without a digest names no code.
func ImageDigest(ref string) (string, error) {
	if len(ref) > 1024 {
		return "", fmt.Errorf("%w: reference of %d bytes", ErrImage, len(ref))
	}
	m := imagePattern.FindStringSubmatch(ref)
	if m == nil {
		return "", fmt.Errorf("%w: %q: want name@sha256:<64 hex digits>", ErrImage, ref)
	}
	return m[1], nil
}
