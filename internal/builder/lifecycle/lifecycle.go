package lifecycle

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/buildpacks/lifecycle/api"

	"github.com/trainyard/trainyard/internal/builder/fileset"
	"github.com/trainyard/trainyard/internal/gosbom"
)

// Programs are the files that the archive is made of.
type Programs struct {
	Lifecycle string // all phases in one program
	Launcher  string // what starts a process in an image
}

// phases are the names that the lifecycle is called by.
func phases() []string {
	return []string{"analyzer", "builder", "creator", "detector", "exporter", "extender", "rebaser", "restorer"}
}

// Version asks the lifecycle for its version, such as 0.21.17.
func (p Programs) Version(ctx context.Context) (string, error) {
	file, err := filepath.Abs(p.Lifecycle)
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, file, "-version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", p.Lifecycle, err)
	}
	v := strings.TrimPrefix(strings.TrimSpace(string(out)), "v")
	if !regexp.MustCompile(`^\d+\.\d+\.\d+`).MatchString(v) || v == "0.0.0" {
		return "", fmt.Errorf("%s says its version is %q: build it with -ldflags '-X github.com/buildpacks/lifecycle/cmd.Version=VERSION'", p.Lifecycle, v)
	}
	return v, nil
}

// CheckVersion fails when this program was linked with another version of the
// lifecycle's library. Where that is not recorded, as in tests, it cannot tell.
func CheckVersion(info *debug.BuildInfo, version string) error {
	if info == nil {
		return nil
	}
	for _, d := range info.Deps {
		if d.Path != "github.com/buildpacks/lifecycle" {
			continue
		}
		if d.Replace != nil {
			d = d.Replace
		}
		if have, _, _ := strings.Cut(version, "+"); d.Version != "v"+have {
			return fmt.Errorf("the lifecycle is version %s, this program knows the APIs of %s: build both from one checkout", version, d.Version)
		}
	}
	return nil
}

// Descriptor returns the contents of lifecycle.toml.
func Descriptor(version string) ([]byte, error) {
	type list struct {
		Deprecated []string `toml:"deprecated"`
		Supported  []string `toml:"supported"`
	}
	lists := func(a api.APIs) list {
		l := list{[]string{}, []string{}}
		for _, v := range a.Supported {
			l.Supported = append(l.Supported, v.String())
		}
		for _, v := range a.Deprecated {
			l.Deprecated = append(l.Deprecated, v.String())
		}
		return l
	}
	platform, buildpack := lists(api.Platform), lists(api.Buildpack)
	var d struct {
		APIs struct {
			Buildpack list `toml:"buildpack"`
			Platform  list `toml:"platform"`
		} `toml:"apis"`
		// The least of each, for readers that do not know the lists.
		API struct {
			Buildpack string `toml:"buildpack"`
			Platform  string `toml:"platform"`
		} `toml:"api"`
		Lifecycle struct {
			Version string `toml:"version"`
		} `toml:"lifecycle"`
	}
	d.APIs.Platform, d.APIs.Buildpack = platform, buildpack
	d.API.Platform, d.API.Buildpack = platform.Supported[0], buildpack.Supported[0]
	d.Lifecycle.Version = version
	var out bytes.Buffer
	err := toml.NewEncoder(&out).Encode(d)
	return out.Bytes(), err
}

// Archive writes the archive to a file, in the form of the lifecycle's releases.
func (p Programs) Archive(ctx context.Context, file string) (version string, err error) {
	if version, err = p.Version(ctx); err != nil {
		return "", err
	}
	info, _ := debug.ReadBuildInfo()
	if err := CheckVersion(info, version); err != nil {
		return "", err
	}
	descriptor, err := Descriptor(version)
	if err != nil {
		return "", err
	}
	set := fileset.Set{
		"lifecycle.toml":      fileset.File(descriptor),
		"lifecycle/lifecycle": {Mode: 0o755, Source: p.Lifecycle},
		"lifecycle/launcher":  {Mode: 0o755, Source: p.Launcher},
	}
	for _, name := range phases() {
		set["lifecycle/"+name] = fileset.Link("lifecycle")
	}
	// The launcher becomes part of every image, and so does what it is made of.
	for name, file := range map[string]string{"lifecycle": p.Lifecycle, "launcher": p.Launcher} {
		bom, err := gosbom.Encode(gosbom.Tool{Name: "trainyard"}, []string{file})
		if err != nil {
			return "", err
		}
		set["lifecycle/"+name+".sbom.cdx.json"] = fileset.File(bom)
	}
	return version, set.WriteFile(file)
}
