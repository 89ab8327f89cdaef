package store

import (
	"context"
	"errors"
	"io"
)

var (
	// ErrNotFound means that the store answered that there is no such object.
	ErrNotFound = errors.New("object not found")

	// ErrNoBucket means that the bucket, or the directory of a file store, is
	// not there. It is not ErrNotFound: nothing is known about the object.
	ErrNoBucket = errors.New("no such bucket")

	// ErrLost means that a conditional write found another state than the one
	// it expected: somebody else was first. Read again, then decide again.
	ErrLost = errors.New("lost the race for a conditional write")

	// ErrIntegrity means that bytes, size or digest are not what was recorded.
	ErrIntegrity = errors.New("integrity check failed")

	// ErrDenied means that the store refused the credentials or the permission.
	ErrDenied = errors.New("access denied")

	// ErrUnconditional means that the server ignores If-None-Match or If-Match,
	// so that it cannot give a conditional write one winner.
	ErrUnconditional = errors.New("server ignores conditional writes")
)

// Info describes one object.
type Info struct {
	Key    string // relative to the store, slash separated
	Size   int64  // bytes
	SHA256 string // hex; empty when the store has none on record (List, foreign uploads to S3)
	ETag   string // opaque; what PutIf compares; may be empty in List
}

// Store keeps objects under keys. All methods may be called concurrently.
// A key is a relative slash-separated path (see ValidateKey).
type Store interface {
	// Put creates or replaces an object with what r holds, read from its
	// start and more than once, and checks what arrived.
	Put(ctx context.Context, key string, r io.ReadSeeker) (Info, error)

	// PutIf writes a small object if its ETag is still prevETag, or, when
	// prevETag is empty, if it does not exist. Of all writers that expect the
	// same state one succeeds; the others get ErrLost. A body that never
	// repeats (a sequence number in it) rules out that an old ETag returns.
	PutIf(ctx context.Context, key string, body []byte, prevETag string) (Info, error)

	// Get writes an object to w and returns its Info with the SHA-256 of what
	// was read. After an error, what w got must not be used.
	Get(ctx context.Context, key string, w io.Writer) (Info, error)

	// Stat describes an object without reading it.
	Stat(ctx context.Context, key string) (Info, error)

	// List describes all objects whose key begins with prefix, sorted by key.
	// No such object is an empty list, not an error.
	List(ctx context.Context, prefix string) ([]Info, error)

	// URL is what Open made this store from: "file:///dir" or
	// "s3://bucket/prefix". It holds no secret.
	URL() string
}
