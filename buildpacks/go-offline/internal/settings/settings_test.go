package settings

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func env(vars map[string]string) Env {
	return Env{Lookup: func(name string) (string, bool) { v, ok := vars[name]; return v, ok }}
}

func source(names ...string) fstest.MapFS {
	app := fstest.MapFS{}
	for _, n := range names {
		app[n] = &fstest.MapFile{Data: []byte("package main\n")}
	}
	return app
}

func TestRead(t *testing.T) {
	paketoDefaults := []string{"-buildmode", "pie", "-trimpath"}
	for name, c := range map[string]struct {
		vars  map[string]string
		files []string
		want  Settings
	}{
		"nothing set, top level": {
			nil, []string{"main.go", "cmd/x/main.go"},
			Settings{WorkDir: ".", Targets: []string{"."}, Flags: paketoDefaults},
		},
		"nothing set, all below cmd but none below another": {
			nil, []string{"cmd/b/main.go", "cmd/a/main.go", "cmd/a/tool/main.go", "cmd/c/README.md"},
			Settings{WorkDir: ".", Targets: []string{"./cmd/a", "./cmd/b"}, Flags: paketoDefaults},
		},
		"targets in the order they are named": {
			map[string]string{"BP_GO_TARGETS": "./cmd/b:cmd/a/"}, []string{"cmd/a/main.go", "cmd/b/main.go"},
			Settings{WorkDir: ".", Targets: []string{"./cmd/b", "./cmd/a"}, Flags: paketoDefaults},
		},
		"empty target list": {
			map[string]string{"BP_GO_TARGETS": ""}, []string{"main.go"},
			Settings{WorkDir: ".", Targets: []string{"."}, Flags: paketoDefaults},
		},
		"flags, and linker flags that replace theirs": {
			map[string]string{
				"BP_GO_BUILD_FLAGS":   `-buildmode=default -ldflags="-s" -trimpath`,
				"BP_GO_BUILD_LDFLAGS": "-s -w -X main.version=$V -X 'main.name=a b'", "V": "v1=2",
			}, []string{"main.go"},
			Settings{WorkDir: ".", Targets: []string{"."}, Flags: []string{"-buildmode=default", "-ldflags=-s -w -X main.version=v1=2 -X 'main.name=a b'", "-trimpath"}},
		},
		"linker flags alone": {
			map[string]string{"BP_GO_BUILD_LDFLAGS": "-s"}, []string{"main.go"},
			Settings{WorkDir: ".", Targets: []string{"."}, Flags: []string{"-ldflags=-s", "-buildmode", "pie", "-trimpath"}},
		},
		"modules of a workspace": {
			map[string]string{"BP_GO_WORK_USE": "./a:b", "BP_GO_TARGETS": "./a/cmd/x"}, []string{"a/go.mod", "b/go.mod", "a/cmd/x/main.go"},
			Settings{WorkDir: ".", Use: []string{"./a", "./b"}, Targets: []string{"./a/cmd/x"}, Flags: paketoDefaults},
		},
		"work directory": {
			map[string]string{"BP_GO_WORKDIR": "./sub/"}, []string{"sub/cmd/x/main.go", "main.go"},
			Settings{WorkDir: "sub", Targets: []string{"./cmd/x"}, Flags: paketoDefaults},
		},
		"files to keep, version, labels": {
			map[string]string{"BP_KEEP_FILES": "assets/*:LICENSE", "BP_GO_VERSION": "1.26.*", "BP_OCI_REF_NAME": "r", "BP_OCI_TITLE": "t x", "BP_IMAGE_LABELS": `b=1 a="2 3"`}, []string{"main.go"},
			Settings{
				WorkDir: ".", Targets: []string{"."}, Flags: paketoDefaults, Keep: []string{"assets/*", "LICENSE"}, GoVersion: "1.26.*",
				Labels: []Label{{"a", "2 3"}, {"b", "1"}, {"org.opencontainers.image.ref.name", "r"}, {"org.opencontainers.image.title", "t x"}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want.Labels == nil {
				c.want.Labels = []Label{}
			}
			got, err := Read(env(c.vars), source(c.files...))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		vars  map[string]string
		files []string
		says  string
	}{
		"absolute target":           {map[string]string{"BP_GO_TARGETS": "/cmd/x"}, []string{"cmd/x/main.go"}, "absolute path"},
		"target outside":            {map[string]string{"BP_GO_TARGETS": "../x"}, []string{"main.go"}, "outside of the source"},
		"target without Go":         {map[string]string{"BP_GO_TARGETS": "./cmd"}, []string{"cmd/x/main.go"}, `no *.go files in "./cmd"`},
		"target that is not there":  {map[string]string{"BP_GO_TARGETS": "./cmd/y"}, []string{"cmd/x/main.go"}, `no *.go files in "./cmd/y"`},
		"second target missing":     {map[string]string{"BP_GO_TARGETS": ".:y"}, []string{"main.go"}, `no *.go files in "y"`},
		"buildpack.yml":             {nil, []string{"main.go", "buildpack.yml"}, "buildpack.yml"},
		"live reload":               {map[string]string{"BP_LIVE_RELOAD_ENABLED": "true"}, []string{"main.go"}, "not supported"},
		"live reload, no boolean":   {map[string]string{"BP_LIVE_RELOAD_ENABLED": "yes"}, []string{"main.go"}, "want true or false"},
		"work directory, targets":   {map[string]string{"BP_GO_WORKDIR": "a", "BP_GO_TARGETS": "./x"}, []string{"a/x/main.go"}, "use BP_GO_WORK_USE"},
		"work directory outside":    {map[string]string{"BP_GO_WORKDIR": "../a"}, []string{"main.go"}, "not a directory below the source"},
		"work directory is a file":  {map[string]string{"BP_GO_WORKDIR": "main.go"}, []string{"main.go"}, "not a directory"},
		"work directory not there":  {map[string]string{"BP_GO_WORKDIR": "a"}, []string{"main.go"}, "not exist"},
		"module without go.mod":     {map[string]string{"BP_GO_WORK_USE": "a"}, []string{"a/main.go"}, `"a" is not a module`},
		"two linker flags":          {map[string]string{"BP_GO_BUILD_FLAGS": `-ldflags -s`, "BP_GO_BUILD_LDFLAGS": "-w"}, []string{"main.go"}, "leave one of them out"},
		"linker flags close quotes": {map[string]string{"BP_GO_BUILD_LDFLAGS": `-X a="b c"`}, []string{"main.go"}, "end the word"},
		"linker flags of two words": {map[string]string{"BP_GO_BUILD_LDFLAGS": `-s" "-w`}, []string{"main.go"}, `write \"`},
		"output":                    {map[string]string{"BP_GO_BUILD_FLAGS": "-o=/x"}, []string{"main.go"}, "-o=/x: the programs go into a layer"},
		"two dashes":                {map[string]string{"BP_GO_BUILD_FLAGS": "--buildmode=default"}, []string{"main.go"}, "one dash"},
		"other directory":           {map[string]string{"BP_GO_BUILD_FLAGS": "-C x"}, []string{"main.go"}, "BP_GO_WORKDIR"},
		"bad pattern":               {map[string]string{"BP_KEEP_FILES": "[a"}, []string{"main.go"}, "BP_KEEP_FILES"},
		"absolute pattern":          {map[string]string{"BP_KEEP_FILES": "/etc/*"}, []string{"main.go"}, "relative to the source"},
		"bad label":                 {map[string]string{"BP_IMAGE_LABELS": "a"}, []string{"main.go"}, "BP_IMAGE_LABELS"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(env(c.vars), source(c.files...))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %+v, error %v, want %q", got, err, c.says)
			}
			if errors.Is(err, ErrNotGo) {
				t.Error("a wrong setting is taken for source that is not Go")
			}
		})
	}
}

func TestReadSaysWhenThereIsNoGo(t *testing.T) {
	for name, files := range map[string][]string{"empty": nil, "other language": {"main.py"}, "a library below the top": {"lib/a.go"}} {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(env(nil), source(files...)); !errors.Is(err, ErrNotGo) {
				t.Errorf("error %v, want ErrNotGo", err)
			}
		})
	}
}
