package source

import (
	"errors"

	ignore "github.com/sabhiram/go-gitignore"
)

// Filter tells which paths belong to a build. The zero Filter takes all.
type Filter struct {
	include, exclude *ignore.GitIgnore
}

// NewFilter makes the filter of a project descriptor's lists, with the library that
// pack uses for them, so that both select the same files. At most one may be set.
func NewFilter(include, exclude []string) (Filter, error) {
	var f Filter
	switch {
	case len(include) > 0 && len(exclude) > 0:
		return f, errors.New("both include and exclude are set: use one")
	case len(include) > 0:
		f.include = ignore.CompileIgnoreLines(include...)
	case len(exclude) > 0:
		f.exclude = ignore.CompileIgnoreLines(exclude...)
	}
	return f, nil
}

// Takes tells whether the path, relative and with slashes, belongs to the build.
func (f Filter) Takes(path string) bool {
	switch {
	case f.include != nil:
		return f.include.MatchesPath(path)
	case f.exclude != nil:
		return !f.exclude.MatchesPath(path)
	}
	return true
}
