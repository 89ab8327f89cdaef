package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Env are the environment variables of the build.
type Env struct {
	Lookup func(name string) (string, bool)
}

func (e Env) get(name string) string {
	v, _ := e.Lookup(name)
	return v
}

// list splits a list of paths at its colons. An empty value is an empty list.
func (e Env) list(name string) []string {
	if v := e.get(name); v != "" {
		return strings.Split(v, ":")
	}
	return nil
}

// Settings is what a project asks for. Paths are relative to the source.
type Settings struct {
	GoVersion string   // constraint on the version of Go, may be empty
	WorkDir   string   // where go runs: "." or the directory of a module
	Use       []string // modules that are joined to a workspace, may be empty
	Targets   []string // packages, relative to WorkDir, the default process first
	Flags     []string // of go build
	Keep      []string // patterns of files that stay in the image
	Labels    []Label  // of the image
}

// Read reads the settings. It returns ErrNotGo when there is nothing to build.
func Read(e Env, app fs.FS) (Settings, error) {
	if err := refuse(e, app); err != nil {
		return Settings{}, err
	}
	s := Settings{GoVersion: e.get("BP_GO_VERSION"), WorkDir: ".", Keep: e.list("BP_KEEP_FILES")}
	var err error
	if s.WorkDir, err = workDir(e, app); err != nil {
		return Settings{}, fmt.Errorf("BP_GO_WORKDIR: %w", err)
	}
	if s.Use, err = modules(app, e.list("BP_GO_WORK_USE")); err != nil {
		return Settings{}, fmt.Errorf("BP_GO_WORK_USE: %w", err)
	}
	work, err := fs.Sub(app, s.WorkDir)
	if err != nil {
		return Settings{}, err
	}
	if names := e.list("BP_GO_TARGETS"); len(names) > 0 {
		if s.Targets, err = targets(work, names); err != nil {
			return Settings{}, fmt.Errorf("BP_GO_TARGETS: %w", err)
		}
	} else if s.Targets, err = defaultTargets(work); err != nil {
		return Settings{}, err
	}
	for _, p := range s.Keep {
		if _, err := path.Match(p, ""); err != nil || path.IsAbs(p) {
			return Settings{}, fmt.Errorf("BP_KEEP_FILES: %q is not a pattern relative to the source", p)
		}
	}
	if s.Flags, err = buildFlags(e); err != nil {
		return Settings{}, err
	}
	if s.Labels, err = labels(e); err != nil {
		return Settings{}, err
	}
	return s, nil
}

// refuse names what this buildpack, or Paketo's, cannot do.
func refuse(e Env, app fs.FS) error {
	if _, err := fs.Stat(app, "buildpack.yml"); err == nil {
		return errors.New("buildpack.yml is no longer read, Paketo's included: set BP_GO_* variables")
	}
	if v, ok := e.Lookup("BP_LIVE_RELOAD_ENABLED"); ok {
		on, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("BP_LIVE_RELOAD_ENABLED is %q, want true or false", v)
		}
		if on {
			return errors.New("BP_LIVE_RELOAD_ENABLED: reloading is not supported, unset it")
		}
	}
	_, workDir := e.Lookup("BP_GO_WORKDIR")
	if _, targets := e.Lookup("BP_GO_TARGETS"); workDir && targets {
		return errors.New("BP_GO_WORKDIR and BP_GO_TARGETS: Paketo looks for the targets outside of the work directory, use BP_GO_WORK_USE instead of BP_GO_WORKDIR")
	}
	return nil
}

func workDir(e Env, app fs.FS) (string, error) {
	v, ok := e.Lookup("BP_GO_WORKDIR")
	if !ok {
		return ".", nil
	}
	dir := path.Clean(v)
	if path.IsAbs(v) || !fs.ValidPath(dir) {
		return "", fmt.Errorf("%q is not a directory below the source", v)
	}
	if info, err := fs.Stat(app, dir); err != nil {
		return "", err
	} else if !info.IsDir() {
		return "", fmt.Errorf("%q is not a directory", v)
	}
	return dir, nil
}

// modules checks that every directory holds a module.
func modules(app fs.FS, dirs []string) ([]string, error) {
	var out []string
	for _, d := range dirs {
		dir := path.Clean(d)
		if path.IsAbs(d) || !fs.ValidPath(dir) {
			return nil, fmt.Errorf("%q is not a directory below the source", d)
		}
		if _, err := fs.Stat(app, path.Join(dir, "go.mod")); err != nil {
			return nil, fmt.Errorf("%q is not a module: %w", d, err)
		}
		out = append(out, "./"+dir)
	}
	return out, nil
}
