package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// ErrNotGo says that there is nothing to build: the buildpack stays out of it.
var ErrNotGo = errors.New("no Go files at the top level or below cmd, and BP_GO_TARGETS is not set")

// targets checks the packages that the project names.
func targets(app fs.FS, names []string) ([]string, error) {
	var out []string
	for _, n := range names {
		if path.IsAbs(n) {
			return nil, fmt.Errorf("%q is an absolute path, name it relative to the source", n)
		}
		dir := path.Clean(n)
		if !fs.ValidPath(dir) {
			return nil, fmt.Errorf("%q is outside of the source", n)
		}
		ok, err := hasGoFiles(app, dir)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("no *.go files in %q", n)
		}
		out = append(out, "./"+dir)
	}
	return out, nil
}

// defaultTargets is the top level when there are Go files, else every directory
// below cmd that has some and is not below another such.
func defaultTargets(app fs.FS) ([]string, error) {
	if ok, err := hasGoFiles(app, "."); err != nil || ok {
		return []string{"."}, err
	}
	var out []string
	err := fs.WalkDir(app, "cmd", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		ok, err := hasGoFiles(app, p)
		if err != nil || !ok {
			return err
		}
		out = append(out, "./"+p)
		return fs.SkipDir
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(out) == 0 {
		return nil, ErrNotGo
	}
	return out, nil
}

func hasGoFiles(app fs.FS, dir string) (bool, error) {
	entries, err := fs.ReadDir(app, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".go") {
			return true, nil
		}
	}
	return false, nil
}
