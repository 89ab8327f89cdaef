package gosbom

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// MediaType is the media type of what Encode writes, as buildpack.toml declares it.
const MediaType = "application/vnd.cyclonedx+json"

// Tool is what makes the bill of materials.
type Tool struct{ Name, Version string }

// Encode returns the bill of materials of the programs, which are files.
func Encode(tool Tool, programs []string) ([]byte, error) {
	libraries := map[string]cdx.Component{} // by bom-ref
	var applications []cdx.Component
	var dependencies []cdx.Dependency
	for _, p := range programs {
		app, modules, err := describe(p)
		if err != nil {
			return nil, fmt.Errorf("bill of materials: %w", err)
		}
		refs := make([]string, 0, len(modules))
		for _, m := range modules {
			libraries[m.BOMRef] = m
			refs = append(refs, m.BOMRef)
		}
		slices.Sort(refs)
		applications = append(applications, app)
		dependencies = append(dependencies, cdx.Dependency{Ref: app.BOMRef, Dependencies: &refs})
	}
	byRef := func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) }
	components := slices.SortedFunc(maps.Values(libraries), byRef)
	slices.SortFunc(applications, byRef)
	components = append(applications, components...)
	slices.SortFunc(dependencies, func(a, b cdx.Dependency) int { return cmp.Compare(a.Ref, b.Ref) })

	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Tools: &cdx.ToolsChoice{Components: &[]cdx.Component{{
		Type: cdx.ComponentTypeApplication, Name: tool.Name, Version: tool.Version,
	}}}}
	bom.Components, bom.Dependencies = &components, &dependencies

	var out bytes.Buffer
	// 1.5 is the first version that describes tools as components, and read widely.
	e := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
	if err := e.EncodeVersion(bom, cdx.SpecVersion1_5); err != nil {
		return nil, fmt.Errorf("bill of materials: %w", err)
	}
	return out.Bytes(), nil
}

// describe returns a program and the modules in it.
func describe(program string) (cdx.Component, []cdx.Component, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return cdx.Component{}, nil, err
	}
	sum, err := fileSum(program)
	if err != nil {
		return cdx.Component{}, nil, err
	}
	name := filepath.Base(program)
	app := cdx.Component{
		BOMRef: "program:" + name, Type: cdx.ComponentTypeApplication, Name: name,
		Version: released(info.Main.Version), Description: info.Path,
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}},
	}
	modules := []cdx.Component{library("stdlib", strings.TrimPrefix(info.GoVersion, "go"))}
	if info.Main.Path != "" {
		modules = append(modules, library(info.Main.Path, released(info.Main.Version)))
	}
	for _, m := range info.Deps {
		modules = append(modules, module(m))
	}
	return app, modules, nil
}

// module describes what was compiled in: where a module is replaced, by which.
func module(m *debug.Module) cdx.Component {
	if r := m.Replace; r != nil {
		if strings.HasPrefix(r.Path, ".") || filepath.IsAbs(r.Path) {
			// A directory of the source has no name of its own.
			return library(m.Path, "")
		}
		return library(r.Path, released(r.Version))
	}
	return library(m.Path, released(m.Version))
}

func library(path, version string) cdx.Component {
	// https://github.com/package-url/purl-spec: lower case for Go, + is escaped.
	purl := "pkg:golang/" + strings.ToLower(path)
	if version != "" {
		purl += "@" + strings.ReplaceAll(version, "+", "%2B")
	}
	return cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl}
}

// released drops what Go writes for a module that is built from its source.
func released(version string) string {
	if version == "(devel)" {
		return ""
	}
	return version
}

func fileSum(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
