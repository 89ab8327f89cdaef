package plan

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/builderimage"
	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/project"
)

// goProject is what the plan knows of a Go source, from the files that are built.
type goProject struct {
	is       bool
	version  string // of the go line of go.mod
	modules  bool   // it needs modules of others
	vendored bool
}

// inspectGo looks at the source that was copied.
func inspectGo(dir string) (goProject, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return goProject{}, exitcode.New(exitcode.IO, err)
	}
	defer func() { _ = root.Close() }()
	mod, err := root.ReadFile("go.mod")
	if err != nil {
		return goProject{}, nil // not a Go module, or not at the top: the buildpacks will say
	}
	g := goProject{is: true, version: goLine(string(mod))}
	if sum, err := fs.Stat(root.FS(), "go.sum"); err == nil {
		g.modules = sum.Size() > 0
	}
	_, err = fs.Stat(root.FS(), "vendor/modules.txt")
	g.vendored = err == nil
	return g, nil
}

// goLine returns the version of go.mod's go line.
func goLine(mod string) string {
	for line := range strings.Lines(mod) {
		line, _, _ = strings.Cut(line, "//")
		if f := strings.Fields(line); len(f) == 2 && f[0] == "go" {
			return f[1]
		}
	}
	return ""
}

// check compares the source with the builder's Go versions and with how modules are
// reached.
func (g goProject) check(b *builderimage.Builder, vars []project.Variable) error {
	if !g.is {
		return nil
	}
	if len(b.Go) > 0 && g.version != "" {
		offered := "builder " + b.Name + " (" + b.GoFrom + ") offers " + strings.Join(b.Go, ", ")
		usable := slices.DeleteFunc(slices.Clone(b.Go), func(v string) bool { return builderimage.CompareVersions(v, g.version) < 0 })
		if len(usable) == 0 {
			return exitcode.Errorf(exitcode.BadInput, "go.mod wants Go %s, %s: use a newer builder, or lower the go line", g.version, offered)
		}
		if wish := lookup(vars, "BP_GO_VERSION"); wish != "" && !slices.ContainsFunc(usable, func(v string) bool { return matches(wish, v) }) {
			return exitcode.Errorf(exitcode.BadInput, "BP_GO_VERSION wants %s and go.mod Go %s, %s: change one of them", wish, g.version, offered)
		}
	}
	if g.modules && !g.vendored && lookup(vars, "GOPROXY") == "off" {
		return exitcode.Errorf(exitcode.BadInput, "go.sum names modules, GOPROXY is off and the selected source has no vendor/modules.txt: name a proxy, or vendor the modules and include vendor")
	}
	return nil
}

// matches tells whether a version fits a wish such as 1.26.7, 1.26.* or 1.26. Any
// other form is left to the buildpack: true.
func matches(wish, version string) bool {
	if strings.Trim(wish, "0123456789.*xX") != "" {
		return true
	}
	w, v := strings.Split(wish, "."), strings.Split(version, ".")
	for i, part := range w {
		if part == "*" || strings.EqualFold(part, "x") {
			return true
		}
		if i >= len(v) || v[i] != part {
			return false
		}
	}
	return true
}

// describe tells how modules will be reached.
func (g goProject) describe(vars []project.Variable) string {
	switch {
	case !g.is:
		return "no go.mod at the top of the source"
	case g.vendored:
		return fmt.Sprintf("Go %s, modules of vendor/", g.version)
	case !g.modules:
		return fmt.Sprintf("Go %s, no modules", g.version)
	case lookup(vars, "GOPROXY") == "":
		return fmt.Sprintf("Go %s, modules from Go's default proxy", g.version)
	}
	// Not its value: it may hold a password.
	return fmt.Sprintf("Go %s, modules by GOPROXY", g.version)
}
