package manifest

import (
	"strconv"
	"strings"

	"knative.dev/pkg/apis"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Problem is one thing that is wrong with a document. Its text is one line.
type Problem struct {
	File     string // as it was given
	Document int    // from 1, 0 when the file as a whole is meant
	Object   string // for example "Task train", empty when it cannot be told
	Field    string // for example "spec.steps[0].image", may be empty
	Message  string
}

// Error joins what is known, from the outside to the inside.
func (p Problem) Error() string {
	parts := []string{p.File}
	if p.Document > 0 {
		parts = append(parts, "document "+strconv.Itoa(p.Document))
	}
	for _, s := range []string{p.Object, p.Field, p.Message} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

// Problems is everything that is wrong, in the order of the files.
type Problems []Problem

// Error lists all problems in one line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "; ")
}

// Err is p as an error that carries an exit code, or nil when there is no problem.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return exitcode.New(exitcode.BadInput, p)
}

// At returns a problem of a field of this object.
func (o Object) At(field, message string) Problem {
	return Problem{File: o.File, Document: o.Document, Object: o.String(), Field: field, Message: oneLine(message)}
}

// fieldErrors turns what Knative's validation found into problems.
func (o Object) fieldErrors(errs *apis.FieldError) Problems {
	var all Problems
	for _, e := range errs.Filter(apis.ErrorLevel).WrappedErrors() {
		message := e.Message
		if e.Details != "" {
			message += ": " + e.Details
		}
		paths := e.Paths
		if len(paths) == 0 {
			paths = []string{""}
		}
		for _, path := range paths {
			all = append(all, o.At(path, message))
		}
	}
	return all
}

// oneLine keeps foreign text from breaking the line, and what a terminal would
// obey from reaching one.
func oneLine(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
