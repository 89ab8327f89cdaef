package gotool

import (
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Compilation is what is to be built.
type Compilation struct {
	Dir      string   // where go runs
	Use      []string // modules to join to a workspace in Dir, may be empty
	Targets  []string // packages, relative to Dir
	Flags    []string // of go build
	Output   string   // directory of the programs
	Env      []string // environment of go
	ModCache string   // directory of downloaded modules
	Cache    string   // directory of compiled packages
}

// Compile builds the targets and returns the paths of their programs in the same
// order. What go says goes to log.
//
// Modules are taken from vendor/ when there is one. Otherwise a single module's
// are downloaded and vendored first, so that a program is the same with and
// without a vendor folder; those of a workspace are downloaded as needed.
func (t Toolchain) Compile(ctx context.Context, c Compilation, log io.Writer) ([]string, error) {
	c.Env = append(c.Env[:len(c.Env):len(c.Env)],
		"GOTOOLCHAIN=local", "GOENV=off", "GOFLAGS="+strings.TrimSpace(last(c.Env, "GOFLAGS")+" -modcacherw"),
		"GOCACHE="+c.Cache, "GOMODCACHE="+c.ModCache)
	run := func(args ...string) error {
		fmt.Fprintf(log, "  go %s\n", quoteAll(args))
		return t.Run(ctx, Call{Dir: c.Dir, Env: c.Env, Args: args, Stdout: log, Stderr: log})
	}

	if len(c.Use) > 0 {
		if err := run("work", "init"); err != nil {
			return nil, err
		}
		if err := run(append([]string{"work", "use"}, c.Use...)...); err != nil {
			return nil, err
		}
	} else if vendored, err := exists(filepath.Join(c.Dir, "vendor")); err != nil {
		return nil, err
	} else if !vendored {
		workspace, err := exists(filepath.Join(c.Dir, "go.work"))
		if err != nil {
			return nil, err
		}
		if !workspace {
			if err := run("mod", "vendor"); err != nil {
				return nil, err
			}
		}
	}

	names, err := t.programs(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Output, 0o755); err != nil {
		return nil, err
	}
	args := append([]string{"build", "-o", c.Output}, c.Flags...)
	if err := run(append(args, c.Targets...)...); err != nil {
		return nil, err
	}
	paths := make([]string, 0, len(names))
	for _, n := range names {
		p := filepath.Join(c.Output, n)
		// The mode must not depend on the umask of the build.
		if err := os.Chmod(p, 0o755); err != nil {
			return nil, fmt.Errorf("go build left no program: %w", err)
		}
		paths = append(paths, p)
	}
	if err := os.Chmod(c.Output, 0o755); err != nil {
		return nil, err
	}
	return paths, trimModules(c.ModCache)
}

// trimModules keeps the archives of modules and removes what was unpacked from
// them: unpacking again is quick, and the cache half as large.
func trimModules(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "cache" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// last returns the value of the last setting of a variable.
func last(env []string, name string) (value string) {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}

// programs returns the file names of the targets' programs.
func (t Toolchain) programs(ctx context.Context, c Compilation) ([]string, error) {
	seen := map[string]string{}
	var names []string
	for _, target := range c.Targets {
		var out strings.Builder
		if err := t.Run(ctx, Call{Dir: c.Dir, Env: c.Env, Args: []string{"list", "-json=ImportPath,Name", target}, Stdout: &out}); err != nil {
			return nil, err
		}
		var p struct{ ImportPath, Name string }
		if err := json.Unmarshal([]byte(out.String()), &p); err != nil {
			return nil, fmt.Errorf("go list %s: %w", target, err)
		}
		if p.Name != "main" {
			return nil, fmt.Errorf("target %s is package %s, want package main", target, p.Name)
		}
		name := programName(p.ImportPath)
		if other, ok := seen[name]; ok {
			return nil, fmt.Errorf("targets %s and %s are both called %s", other, target, name)
		}
		seen[name] = target
		names = append(names, name)
	}
	return names, nil
}

// programName is the name that go build gives a program: the last element of the
// import path that is not a major version.
func programName(importPath string) string {
	name := path.Base(importPath)
	if dir := path.Dir(importPath); dir != "." && regexp.MustCompile(`^v([2-9]|[1-9][0-9]+)$`).MatchString(name) {
		return path.Base(dir)
	}
	return name
}

// Interpreter returns the dynamic linker that a program asks for, empty when it
// is static.
func Interpreter(program string) (string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return "", fmt.Errorf("%s: %w", program, err)
	}
	defer f.Close()
	for _, s := range f.Progs {
		if s.Type == elf.PT_INTERP {
			data, err := io.ReadAll(s.Open())
			return strings.TrimRight(string(data), "\x00"), err
		}
	}
	return "", nil
}

func exists(file string) (bool, error) {
	_, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// quoteAll shows arguments so that their borders can be seen.
func quoteAll(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = a
		if a == "" || strings.ContainsAny(a, " \t\r\n\"") {
			out[i] = strconv.Quote(a)
		}
	}
	return strings.Join(out, " ")
}
