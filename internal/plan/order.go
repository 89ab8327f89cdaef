package plan

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/trainyard/trainyard/internal/builderimage"
	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/project"
)

// order returns the order of buildpacks when the project has wishes: its own group,
// or buildpacks before and after those of the builder. Nil means the builder's own.
func order(p *project.Project, b *builderimage.Builder) ([]builderimage.Group, error) {
	if len(p.Group) > 0 {
		group, err := refs(p.Group, b)
		if err != nil {
			return nil, err
		}
		return []builderimage.Group{{Group: group}}, nil
	}
	if len(p.Pre) == 0 && len(p.Post) == 0 {
		return nil, nil
	}
	pre, err := refs(p.Pre, b)
	if err != nil {
		return nil, err
	}
	post, err := refs(p.Post, b)
	if err != nil {
		return nil, err
	}
	var groups []builderimage.Group
	for _, g := range b.Order {
		var all []builderimage.Ref
		all = append(append(append(all, pre...), g.Group...), post...)
		groups = append(groups, builderimage.Group{Group: all})
	}
	return groups, nil
}

// refs finds the buildpacks in the builder; one without a version must be there in
// one version only.
func refs(wanted []project.Buildpack, b *builderimage.Builder) ([]builderimage.Ref, error) {
	var out []builderimage.Ref
	for _, w := range wanted {
		var versions []string
		found := false
		for _, has := range b.Buildpacks {
			if has.ID == w.ID {
				versions = append(versions, has.Version)
				found = found || has.Version == w.Version
			}
		}
		switch {
		case len(versions) == 0:
			return nil, exitcode.Errorf(exitcode.BadInput, "the project wants buildpack %s, builder %s has only %s: add it to the builder", w.ID, b.Name, names(b.Buildpacks))
		case w.Version == "" && len(versions) > 1:
			return nil, exitcode.Errorf(exitcode.BadInput, "the project wants buildpack %s, builder %s has it in versions %s: name one", w.ID, b.Name, strings.Join(versions, ", "))
		case w.Version == "":
			w.Version = versions[0]
		case !found:
			return nil, exitcode.Errorf(exitcode.BadInput, "the project wants buildpack %s %s, builder %s has %s", w.ID, w.Version, b.Name, strings.Join(versions, ", "))
		}
		out = append(out, builderimage.Ref{ID: w.ID, Version: w.Version})
	}
	return out, nil
}

func names(buildpacks []builderimage.Buildpack) string {
	var all []string
	for _, b := range buildpacks {
		all = append(all, b.ID+" "+b.Version)
	}
	return strings.Join(all, ", ")
}

func writeOrder(dir string, groups []builderimage.Group) error {
	var b bytes.Buffer
	if err := toml.NewEncoder(&b).Encode(struct {
		Order []builderimage.Group `toml:"order"`
	}{groups}); err != nil {
		return err
	}
	return exitcode.New(exitcode.IO, os.WriteFile(filepath.Join(dir, OrderFile), b.Bytes(), 0o644))
}
