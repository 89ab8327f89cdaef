package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/project"
)

// Labels that a build asks the builder's buildpacks to give the image. They depend
// on source and builder alone, so that equal inputs keep giving an equal digest: a
// commit, a branch or a time among them would change it for the same source.
const (
	SourceLabel  = "io.trainyard.source.digest"
	BuilderLabel = "io.trainyard.builder.digest"
)

// labelsVariable is how Paketo's image-labels and our own buildpack are told labels.
// Of the other way, one variable a label (BP_OCI_TITLE …), Paketo writes the labels
// in random order into the image: two of them, and no two builds are equal.
const labelsVariable = "BP_IMAGE_LABELS"

// Labels are the labels of an image built from this source by this builder.
func Labels(sourceDigest, builderDigest string) map[string]string {
	return map[string]string{SourceLabel: sourceDigest, BuilderLabel: builderDigest}
}

// Environment is the environment of the buildpacks: that of the project, changed by
// assignments NAME=VALUE, with the labels added. Later ones win.
func Environment(p *project.Project, assignments []string, labels map[string]string) ([]project.Variable, error) {
	all := map[string]string{}
	for _, v := range p.Env {
		all[v.Name] = v.Value
	}
	for _, a := range assignments {
		name, value, ok := strings.Cut(a, "=")
		if err := project.CheckName(name); err != nil || !ok {
			return nil, exitcode.Errorf(exitcode.Usage, "build variable %q: want NAME=VALUE", a)
		}
		all[name] = value
	}
	words := strings.TrimSpace(all[labelsVariable])
	for _, k := range sortedNames(labels) {
		words = strings.TrimSpace(words + " " + k + "=" + labels[k])
	}
	all[labelsVariable] = words
	var vars []project.Variable
	for _, name := range sortedNames(all) {
		vars = append(vars, project.Variable{Name: name, Value: all[name]})
	}
	return vars, nil
}

// writeEnvironment writes one file a variable; its content is the value, byte for
// byte: with "=", spaces, newlines, or nothing at all.
func writeEnvironment(platform string, vars []project.Variable) error {
	dir := filepath.Join(platform, "env")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return exitcode.New(exitcode.IO, err)
	}
	for _, v := range vars {
		if err := os.WriteFile(filepath.Join(dir, v.Name), []byte(v.Value), 0o644); err != nil {
			return exitcode.New(exitcode.IO, err)
		}
	}
	return nil
}

func lookup(vars []project.Variable, name string) string {
	for _, v := range vars {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

func sortedNames(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
