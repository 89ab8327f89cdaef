package project

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	packproject "github.com/buildpacks/pack/pkg/project"
	"github.com/buildpacks/pack/pkg/project/types"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// maxSize bounds what is read: a descriptor is a page of text.
const maxSize = 1 << 20

// Project is what a descriptor says about a build.
type Project struct {
	Builder          string   // image name, or empty
	Include, Exclude []string // patterns of .gitignore; at most one of both is set
	Env              []Variable
	// Group replaces the builder's order of buildpacks; Pre and Post go around it.
	Group, Pre, Post []Buildpack
	// Warnings are pack's: keys that the schema does not know, for example.
	Warnings []string
}

// Variable is one variable of the build's environment. The value is any text.
type Variable struct{ Name, Value string }

// Buildpack names a buildpack of the builder. Version may be empty.
type Buildpack struct{ ID, Version string }

// Parse reads a descriptor; name is what errors call it. Errors are bad input.
func Parse(content []byte, name string) (*Project, error) {
	d, warnings, err := parse(content)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "%s: %w", name, err)
	}
	p := &Project{Builder: d.Build.Builder, Include: d.Build.Include, Exclude: d.Build.Exclude, Warnings: warnings}
	for _, v := range d.Build.Env {
		if err := CheckName(v.Name); err != nil {
			return nil, exitcode.Errorf(exitcode.BadInput, "%s: %w", name, err)
		}
		p.Env = append(p.Env, Variable{v.Name, v.Value})
	}
	for _, g := range []struct {
		table string
		from  []types.Buildpack
		to    *[]Buildpack
	}{
		{"group", d.Build.Buildpacks, &p.Group}, {"pre.group", d.Build.Pre.Buildpacks, &p.Pre}, {"post.group", d.Build.Post.Buildpacks, &p.Post},
	} {
		for _, b := range g.from {
			if b.URI != "" || b.Script.Inline != "" {
				// They would run code that is not part of the builder's digest.
				return nil, exitcode.Errorf(exitcode.BadInput,
					"%s: buildpack %s of io.buildpacks.%s has a uri or a script: only buildpacks of the builder are used: put it into the builder (yard builder create) and name its id",
					name, quoteFirst(b.ID, b.URI, b.Script.Shell), g.table)
			}
			*g.to = append(*g.to, Buildpack{b.ID, b.Version})
		}
	}
	return p, nil
}

// CheckName refuses what cannot be the name of a variable, and so of a file in the
// platform's env directory.
func CheckName(name string) error {
	if name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name, "=/\x00\n") {
		return fmt.Errorf("%q is not a name for a build variable", name)
	}
	return nil
}

func quoteFirst(names ...string) string {
	for _, n := range names {
		if n != "" {
			return fmt.Sprintf("%q", n)
		}
	}
	return "without id"
}

// parse calls pack's parser, which reads files only.
func parse(content []byte) (types.Descriptor, []string, error) {
	if len(content) > maxSize {
		return types.Descriptor{}, nil, fmt.Errorf("%d bytes are no project descriptor", len(content))
	}
	if bytes.IndexByte(content, 0) >= 0 {
		return types.Descriptor{}, nil, fmt.Errorf("a zero byte: not a text file")
	}
	f, err := os.CreateTemp("", "project-*.toml")
	if err != nil {
		return types.Descriptor{}, nil, exitcode.New(exitcode.IO, err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(content)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return types.Descriptor{}, nil, exitcode.New(exitcode.IO, err)
	}
	log := &warningLog{}
	d, err := packproject.ReadProjectDescriptor(f.Name(), log)
	if err != nil {
		return types.Descriptor{}, nil, fmt.Errorf("%s", oneLine(err.Error()))
	}
	return d, log.lines, nil
}

// oneLine joins what the TOML parser spreads over lines.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
