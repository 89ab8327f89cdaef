package gotool

import (
	"errors"
	"fmt"
	"go/version"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/Masterminds/semver"
	"golang.org/x/mod/modfile"
)

// ErrVersion says that the toolchain is not one that the source can use.
var ErrVersion = errors.New("the builder's Go toolchain does not fit")

// CheckModules fails when go.mod or go.work of one of the directories asks for a
// newer Go than the toolchain. The message names both versions.
func (t Toolchain) CheckModules(app fs.FS, dirs []string) error {
	if !version.IsValid(t.Version) {
		return nil // under development: newer than all that could be asked for
	}
	for _, dir := range dirs {
		for _, name := range []string{path.Join(dir, "go.mod"), path.Join(dir, "go.work")} {
			wants, err := goLine(app, name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			if wants != "" && version.Compare("go"+wants, t.Version) > 0 {
				return fmt.Errorf("%w: %s needs Go %s, the builder has %s: use a newer builder or lower the go line", ErrVersion, name, wants, t.Version)
			}
		}
	}
	return nil
}

// goLine returns the version of the go line, empty when there is none.
func goLine(app fs.FS, name string) (string, error) {
	data, err := fs.ReadFile(app, name)
	if err != nil {
		return "", err
	}
	if path.Base(name) == "go.work" {
		f, err := modfile.ParseWork(name, data, nil)
		if err != nil {
			return "", err
		}
		if f.Go == nil {
			return "", nil
		}
		return f.Go.Version, nil
	}
	f, err := modfile.ParseLax(name, data, nil)
	if err != nil {
		return "", err
	}
	if f.Go == nil {
		return "", nil
	}
	return f.Go.Version, nil
}

// CheckConstraint fails when the toolchain does not meet the constraint, such as
// "1.26.*" or ">= 1.25". An empty constraint is met.
func (t Toolchain) CheckConstraint(constraint string) error {
	if constraint == "" {
		return nil
	}
	c, err := semver.NewConstraint(wildcards(constraint))
	if err != nil {
		return fmt.Errorf("%q is not a constraint on versions, such as 1.26.* or >= 1.25: %w", constraint, err)
	}
	v, err := toSemver(t.Version)
	if err != nil {
		return err
	}
	if !c.Check(v) {
		return fmt.Errorf("%w: BP_GO_VERSION asks for Go %s, the builder has %s", ErrVersion, constraint, t.Version)
	}
	return nil
}

// wildcards writes 1.26 as 1.26.*, which is how Paketo reads it.
func wildcards(constraint string) string {
	alternatives := strings.Split(constraint, "||")
	for i, alternative := range alternatives {
		parts := strings.Split(alternative, ",")
		for j, part := range parts {
			if v := strings.TrimSpace(part); regexp.MustCompile(`^\d+(\.\d+)?$`).MatchString(v) {
				parts[j] = v + ".*"
			}
		}
		alternatives[i] = strings.Join(parts, ",")
	}
	return strings.Join(alternatives, "||")
}

// toSemver turns go1.26, go1.26.8 or go1.27rc1 into a semantic version.
func toSemver(goVersion string) (*semver.Version, error) {
	m := regexp.MustCompile(`^go(\d+)\.(\d+)(?:\.(\d+))?(?:(rc|beta)(\d+))?`).FindStringSubmatch(goVersion)
	if m == nil {
		return nil, fmt.Errorf("the builder's Go toolchain calls itself %q, which is not a version that BP_GO_VERSION could choose", goVersion)
	}
	text := m[1] + "." + m[2] + "." + or(m[3], "0")
	if m[4] != "" {
		text += "-" + m[4] + "." + m[5]
	}
	return semver.NewVersion(text)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
