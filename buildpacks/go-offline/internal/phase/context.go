package phase

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/BurntSushi/toml"

	"github.com/trainyard/trainyard/buildpacks/go-offline/internal/gotool"
	"github.com/trainyard/trainyard/buildpacks/go-offline/internal/settings"
)

// usualGo is where a toolchain usually is when PATH does not tell.
const usualGo = "/usr/local/go/bin/go"

// Context is what an executable takes from the lifecycle.
type Context struct {
	AppDir     string   // the source; the directory that it is started in
	Env        []string // NAME=value
	Descriptor string   // contents of buildpack.toml
	Out        io.Writer
}

// lookup returns the value of a variable. As in a process, the last setting wins.
func (c Context) lookup(name string) (string, bool) {
	for i := len(c.Env) - 1; i >= 0; i-- {
		if v, ok := cut(c.Env[i], name); ok {
			return v, true
		}
	}
	return "", false
}

func cut(entry, name string) (string, bool) {
	if len(entry) > len(name) && entry[len(name)] == '=' && entry[:len(name)] == name {
		return entry[len(name)+1:], true
	}
	return "", false
}

// identity is what the executables say about themselves.
type identity struct {
	ID, Name, Version string
}

func (c Context) identity() (identity, error) {
	var d struct{ Buildpack identity }
	if _, err := toml.Decode(c.Descriptor, &d); err != nil {
		return identity{}, fmt.Errorf("buildpack.toml: %w", err)
	}
	return d.Buildpack, nil
}

// plan is what both executables find out first.
type plan struct {
	settings.Settings
	toolchain gotool.Toolchain
}

// prepare reads the settings and checks that the toolchain fits. It fails before
// anything is compiled.
func (c Context) prepare(ctx context.Context) (plan, error) {
	app := os.DirFS(c.AppDir)
	s, err := settings.Read(settings.Env{Lookup: c.lookup}, app)
	if err != nil {
		return plan{}, err
	}
	dirs := append([]string{"."}, s.Use...)
	if s.WorkDir != "." {
		dirs = append(dirs, s.WorkDir)
	}
	if len(s.Use) == 0 {
		if err := hasModule(app, s.WorkDir); err != nil {
			return plan{}, err
		}
	}
	t, err := gotool.Find(ctx, c.Env, usualGo)
	if err != nil {
		return plan{}, err
	}
	if err := t.CheckConstraint(s.GoVersion); err != nil {
		return plan{}, err
	}
	if err := t.CheckModules(app, dirs); err != nil {
		return plan{}, err
	}
	return plan{s, t}, nil
}

// hasModule refuses source that only builds below a GOPATH.
func hasModule(app fs.FS, dir string) error {
	for _, name := range []string{"go.mod", "go.work"} {
		sub, err := fs.Sub(app, dir)
		if err != nil {
			return err
		}
		if _, err := fs.Stat(sub, name); err == nil {
			return nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fmt.Errorf("no go.mod in %q: name the directory of the module in BP_GO_WORK_USE", dir)
}
