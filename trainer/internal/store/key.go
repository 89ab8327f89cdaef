package store

import (
	"fmt"
	"io/fs"
	"strings"
)

// reserved is the folder in which a file store keeps its own files.
const reserved = ".trainyard"

const (
	maxKey     = 900 // bytes; S3 allows 1024 with the store's prefix
	maxSegment = 200 // bytes; file systems allow 255, records add an ending
)

// ValidateKey says whether key may name an object in every kind of store: a
// relative, clean, slash-separated path of printable characters. What one
// store would take and another not is refused by all, so that a run that
// works on a laptop works in a cluster.
func ValidateKey(key string) error {
	switch {
	case key == "" || key == ".":
		return fmt.Errorf("object key %q: empty: name an object such as models/demo/manifest.json", key)
	case len(key) > maxKey:
		return fmt.Errorf("object key %.40q…: %d bytes: at most %d are allowed", key, len(key), maxKey)
	case !fs.ValidPath(key):
		return fmt.Errorf("object key %q: must be a relative path without empty, \".\" or \"..\" segments", key)
	}
	for i, segment := range strings.Split(key, "/") {
		if len(segment) > maxSegment {
			return fmt.Errorf("object key %q: segment of %d bytes: at most %d are allowed", key, len(segment), maxSegment)
		}
		if i == 0 && segment == reserved {
			return fmt.Errorf("object key %q: %s is kept for the store itself", key, reserved)
		}
	}
	for _, r := range key {
		if r < 0x20 || r == 0x7f || r == '\\' {
			return fmt.Errorf("object key %q: control characters and backslashes are not allowed", key)
		}
	}
	return nil
}

// validatePrefix is ValidateKey for List: the prefix may be empty and may end
// in the middle of a segment or with a slash.
func validatePrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	return ValidateKey(strings.TrimSuffix(prefix, "/"))
}
