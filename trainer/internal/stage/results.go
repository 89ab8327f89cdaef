package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/trainer/internal/atomicfile"
	"github.com/trainyard/trainyard/trainer/internal/exitcode"
)

// MaxResults is how many bytes all results of a step may have, names and values
// together. Tekton has about 12 KB for all containers of a pod and says only
// "exited with code 1" when that is not enough.
const MaxResults = 1024

// ErrResult is wrapped by every error about a result that cannot be written.
var ErrResult = errors.New("result cannot be written")

var resultName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$`)

// Results are the small values that a step hands to what comes after it: one
// file for each in the directory that Tekton reads. Every declared result is
// written on every path, with an empty value where the stage got no further:
// one that is missing would make later tasks be skipped in silence.
type Results struct {
	dir      string
	declared []string
	values   map[string]string
}

// NewResults declares the results of a step. An empty dir keeps them unwritten.
func NewResults(dir string, declared ...string) (*Results, error) {
	r := &Results{dir: dir, values: map[string]string{}}
	for _, name := range declared {
		if !resultName.MatchString(name) {
			return nil, fmt.Errorf("%w: %q is no name of a result", ErrResult, name)
		}
		if slices.Contains(r.declared, name) {
			return nil, fmt.Errorf("%w: %s is declared twice", ErrResult, name)
		}
		r.declared = append(r.declared, name)
	}
	return r, nil
}

// Set gives a declared result its value. A value with a line break, which would
// end up in the middle of a reference, and one that does not fit are errors.
func (r *Results) Set(name, value string) error {
	if !slices.Contains(r.declared, name) {
		return fmt.Errorf("%w: %s is not declared", ErrResult, name)
	}
	if i := strings.IndexAny(value, "\n\r\x00"); i >= 0 {
		return fmt.Errorf("%w: %s has a line break or zero byte at byte %d of %d", ErrResult, name, i, len(value))
	}
	old, had := r.values[name]
	r.values[name] = value
	if size := r.size(); size > MaxResults {
		if delete(r.values, name); had {
			r.values[name] = old
		}
		return fmt.Errorf("%w: %s has %d bytes, which makes %d for all results of this step, more than %d", ErrResult, name, len(value), size, MaxResults)
	}
	return nil
}

// setAll sets several results.
func (r *Results) setAll(values map[string]string) error {
	for name, value := range values {
		if err := r.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}

func (r *Results) size() int {
	n := 0
	for _, name := range r.declared {
		n += len(name) + len(r.values[name])
	}
	return n
}

// Write writes all declared results. Call it on every way out.
func (r *Results) Write() error {
	if r.dir == "" {
		return nil
	}
	err := atomicfile.MkdirAll(r.dir)
	for _, name := range r.declared {
		if err != nil {
			break
		}
		err = atomicfile.WriteFile(filepath.Join(r.dir, name), func(w io.Writer) error {
			_, err := io.WriteString(w, r.values[name])
			return err
		})
	}
	if err != nil {
		return exitcode.Errorf(exitcode.IO, "results: %w", err)
	}
	return nil
}

// artifactOutputs is an object result that Tekton Chains takes for a product of the
// task by its name and keys.
const artifactOutputs = "MODEL_ARTIFACT_OUTPUTS"

// artifact is the value of artifactOutputs. It is an object with its keys even when
// there is no product: Tekton would report the type of an empty value as the cause
// of a failure, in place of the cause.
func artifact(uri, digest string) string {
	// Strings always marshal, and a map does so in the order of its keys.
	b, _ := json.Marshal(map[string]string{"uri": uri, "digest": digest})
	return string(b)
}
