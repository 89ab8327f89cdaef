package gotool

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func TestCheckModulesNamesBothVersions(t *testing.T) {
	mod := func(text string) fstest.MapFS { return fstest.MapFS{"m/go.mod": {Data: []byte(text)}} }
	for name, c := range map[string]struct {
		have string
		app  fstest.MapFS
		says string // empty: fits
	}{
		"older":                            {"go1.26.8", mod("module m\ngo 1.25.0\n"), ""},
		"same":                             {"go1.26.8", mod("module m\ngo 1.26.8\n"), ""},
		"no go line":                       {"go1.26.8", mod("module m\n"), ""},
		"no go.mod":                        {"go1.26.8", fstest.MapFS{}, ""},
		"a preferred toolchain is no must": {"go1.26.8", mod("module m\ngo 1.25.0\ntoolchain go1.27.0\n"), ""},
		"newer patch":                      {"go1.26.8", mod("module m\ngo 1.26.9\n"), "m/go.mod needs Go 1.26.9, the builder has go1.26.8"},
		"newer":                            {"go1.26.8", mod("module m\ngo 1.27\n"), "needs Go 1.27, the builder has go1.26.8"},
		"release candidate is too old":     {"go1.26rc1", mod("module m\ngo 1.26.0\n"), "needs Go 1.26.0, the builder has go1.26rc1"},
		"workspace":                        {"go1.26.8", fstest.MapFS{"m/go.work": {Data: []byte("go 1.27.0\n")}}, "m/go.work needs Go 1.27.0"},
		"under development":                {"devel", mod("module m\ngo 1.99\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := Toolchain{Version: c.have}.CheckModules(c.app, []string{"m"})
			if c.says == "" && err != nil {
				t.Error(err)
			}
			if c.says != "" && (!errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want %q", err, c.says)
			}
		})
	}
	if err := (Toolchain{Version: "go1.26.8"}).CheckModules(mod("require (\n"), []string{"m"}); err == nil || errors.Is(err, ErrVersion) {
		t.Errorf("malformed go.mod: %v", err)
	}
}

func TestCheckConstraint(t *testing.T) {
	for _, c := range []struct {
		have, constraint string
		fits             bool
	}{
		{"go1.26.8", "", true},
		{"go1.26.8", "1.26.*", true},
		{"go1.26.8", "1.26", true},
		{"go1.26.8", "1.24 || 1.26", true},
		{"go1.26.8", ">= 1.25, 1", true},
		{"go1.26.8", "~1.26.2", true},
		{"go1.26.8", ">= 1.25", true},
		{"go1.26", "1.26.0", true},
		{"go1.26.8", "1.25.*", false},
		{"go1.26.8", "1.25", false},
		{"go1.26.8", "1.26.7", false},
		{"go1.27rc1", ">= 1.27.0", false},
	} {
		err := Toolchain{Version: c.have}.CheckConstraint(c.constraint)
		if (err == nil) != c.fits || (err != nil && (!errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), c.have))) {
			t.Errorf("%s for %q: %v", c.have, c.constraint, err)
		}
	}
	for _, bad := range []string{"newest", "1.26..*"} {
		if err := (Toolchain{Version: "go1.26.8"}).CheckConstraint(bad); err == nil || errors.Is(err, ErrVersion) {
			t.Errorf("constraint %q: %v", bad, err)
		}
	}
	if err := (Toolchain{Version: "devel"}).CheckConstraint("1.26.*"); err == nil {
		t.Error("a toolchain without a version meets a constraint")
	}
}

func TestFind(t *testing.T) {
	here, err := Find(t.Context(), goEnv(), "/nowhere/go")
	if err != nil || here.Version == "" || !filepath.IsAbs(here.Command) {
		t.Fatalf("%+v, %v", here, err)
	}
	env := append(goEnv(), "PATH=relative:/nowhere")
	if got, err := Find(t.Context(), env, here.Command); err != nil || got != here {
		t.Errorf("not in PATH, but at the usual place: %+v, %v", got, err)
	}
	if got, err := Find(t.Context(), env, "/nowhere/go"); err == nil || !strings.Contains(err.Error(), "no go in PATH and no /nowhere/go") {
		t.Errorf("nowhere: %+v, %v", got, err)
	}
}

// The names are those that go build gave to the programs of such packages.
func TestProgramName(t *testing.T) {
	for path, want := range map[string]string{
		"example.com/a/cmd/x": "x", "example.com/a/v2": "a", "example.com/a/v10": "a", "example.com/a/v1": "v1",
		"example.com/a/v0": "v0", "example.com/a/v2x": "v2x", "v2": "v2", "x": "x",
	} {
		if got := programName(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// goEnv is an environment in which go finds its caches warm and no network.
func goEnv() []string { return append(os.Environ(), "GOPROXY=off", "CGO_ENABLED=0", "GOFLAGS=") }

func goCache(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const mainGo = "package main\n\nfunc main() { println(version) }\n\nvar version string\n"

func TestCompile(t *testing.T) {
	flags := []string{"-buildmode=default", "-trimpath", "-buildvcs=false"}
	for name, c := range map[string]struct {
		files map[string]string
		c     Compilation
		want  []string
		says  string
	}{
		"one module, programs in the order of the targets": {
			files: map[string]string{"go.mod": "module example.com/m\ngo 1.25\n", "cmd/b/main.go": mainGo, "main.go": mainGo},
			c:     Compilation{Targets: []string{"./cmd/b", "."}},
			want:  []string{"b", "m"},
		},
		"major version": {
			files: map[string]string{"go.mod": "module example.com/m/v2\ngo 1.25\n", "main.go": mainGo},
			c:     Compilation{Targets: []string{"."}},
			want:  []string{"m"},
		},
		"module below the top, joined to a workspace": {
			files: map[string]string{"sub/go.mod": "module example.com/m\ngo 1.25\n", "sub/cmd/x/main.go": mainGo},
			c:     Compilation{Use: []string{"./sub"}, Targets: []string{"./sub/cmd/x"}},
			want:  []string{"x"},
		},
		"vendored dependency, no network": {
			files: map[string]string{
				"go.mod":                        "module example.com/m\ngo 1.25\nrequire example.com/dep v1.0.0\n",
				"main.go":                       "package main\n\nimport _ \"example.com/dep\"\n\nfunc main() {}\n",
				"vendor/modules.txt":            "# example.com/dep v1.0.0\n## explicit\nexample.com/dep\n",
				"vendor/example.com/dep/dep.go": "package dep\n",
			},
			c:    Compilation{Targets: []string{"."}},
			want: []string{"m"},
		},
		"dependency, neither vendored nor to be had": {
			files: map[string]string{
				"go.mod":  "module example.com/m\ngo 1.25\nrequire example.com/dep v1.0.0\n",
				"main.go": "package main\n\nimport _ \"example.com/dep\"\n\nfunc main() {}\n",
			},
			c:    Compilation{Targets: []string{"."}},
			says: "go mod: exit status 1",
		},
		"a library": {
			files: map[string]string{"go.mod": "module example.com/m\ngo 1.25\n", "lib/lib.go": "package lib\n"},
			c:     Compilation{Targets: []string{"./lib"}},
			says:  "target ./lib is package lib, want package main",
		},
		"two programs of one name": {
			files: map[string]string{"go.mod": "module example.com/m\ngo 1.25\n", "a/x/main.go": mainGo, "b/x/main.go": mainGo},
			c:     Compilation{Targets: []string{"./a/x", "./b/x"}},
			says:  "targets ./a/x and ./b/x are both called x",
		},
		"does not compile": {
			files: map[string]string{"go.mod": "module example.com/m\ngo 1.25\n", "main.go": "package main\n\nfunc main() { missing() }\n"},
			c:     Compilation{Targets: []string{"."}},
			says:  "go build: exit status 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.c.Dir, c.c.Env, c.c.Flags = t.TempDir(), goEnv(), flags
			c.c.Output, c.c.Cache, c.c.ModCache = filepath.Join(t.TempDir(), "bin"), goCache(t), t.TempDir()
			write(t, c.c.Dir, c.files)
			tool, err := Find(t.Context(), goEnv(), "/nowhere/go")
			if err != nil {
				t.Fatal(err)
			}
			var log strings.Builder
			got, err := tool.Compile(t.Context(), c.c, &log)
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("error %v, want %q; log:\n%s", err, c.says, log.String())
				}
				return
			}
			if err != nil {
				t.Fatalf("%v; log:\n%s", err, log.String())
			}
			if len(got) != len(c.want) {
				t.Fatalf("programs %v, want %v", got, c.want)
			}
			for i, p := range got {
				if filepath.Base(p) != c.want[i] {
					t.Errorf("program %d is %s, want %s", i, p, c.want[i])
				}
				if info, err := os.Stat(p); err != nil || info.Mode().Perm() != 0o755 {
					t.Errorf("%s: mode %v, error %v", p, info.Mode(), err)
				}
				if linker, err := Interpreter(p); err != nil || linker != "" {
					t.Errorf("%s: linker %q, error %v", p, linker, err)
				}
			}
		})
	}
}

func TestInterpreterOfADynamicProgram(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"go.mod": "module example.com/m\ngo 1.25\n", "main.go": mainGo})
	tool, err := Find(t.Context(), goEnv(), "/nowhere/go")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "m")
	if err := tool.Run(t.Context(), Call{Dir: dir, Env: goEnv(), Args: []string{"build", "-buildmode=pie", "-buildvcs=false", "-o", program}}); err != nil {
		t.Fatal(err)
	}
	if linker, err := Interpreter(program); err != nil || !strings.HasPrefix(linker, "/lib") {
		t.Errorf("linker %q, error %v", linker, err)
	}
	if _, err := Interpreter(filepath.Join(dir, "main.go")); err == nil {
		t.Error("a text file is taken for a program")
	}
}

func FuzzCheckConstraint(f *testing.F) {
	f.Add("1.26.* || >= 1.25, < 2")
	f.Fuzz(func(t *testing.T, constraint string) {
		// Whatever the text, both answers are errors that can be told apart.
		err := Toolchain{Version: "go1.26.8"}.CheckConstraint(constraint)
		if err != nil && !errors.Is(err, ErrVersion) && !strings.Contains(err.Error(), "is not a constraint") {
			t.Errorf("%q: %v", constraint, err)
		}
	})
}

// What decides about a build must not come from the builder's home directory, nor
// may a project's go line bring another toolchain.
func TestCompileGivesGoItsEnvironment(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"go.mod": "module m\n", "go": "#!/bin/sh\nenv > " + dir + "/seen\nexit 1\n"})
	command := filepath.Join(dir, "go")
	if err := os.Chmod(command, 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "GOTOOLCHAIN=auto", "GOFLAGS=-mod=mod", "GOPROXY=https://proxy.example"}
	var log strings.Builder
	_, err := Toolchain{Command: command}.Compile(t.Context(), Compilation{Dir: dir, Env: env, Targets: []string{"."}, ModCache: "/m", Cache: "/c"}, &log)
	if err == nil {
		t.Fatal("a go command that fails is no error")
	}
	seen, err := os.ReadFile(filepath.Join(dir, "seen"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"GOTOOLCHAIN=local", "GOENV=off", "GOFLAGS=-mod=mod -modcacherw", "GOPROXY=https://proxy.example", "GOCACHE=/c", "GOMODCACHE=/m"} {
		if !strings.Contains("\n"+string(seen), "\n"+want+"\n") {
			t.Errorf("go was not given %s:\n%s", want, seen)
		}
	}
}

func TestTrimModulesKeepsTheArchives(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"cache/download/a.b/c/@v/v1.0.0.zip": "z", "a.b/c@v1.0.0/c.go": "package c\n", "golang.org/x/y@v1/y.go": "package y\n"})
	if err := trimModules(dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "cache" {
		t.Errorf("left: %v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "cache/download/a.b/c/@v/v1.0.0.zip")); err != nil {
		t.Error(err)
	}
	if err := trimModules(filepath.Join(dir, "nowhere")); err != nil {
		t.Errorf("nothing was downloaded: %v", err)
	}
}
