package base

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/trainyard/trainyard/internal/builder/fileset"
)

// Go is a Go toolchain on this machine.
type Go struct {
	Root    string // GOROOT
	Version string // for example go1.26.8
	Key     string // tells toolchains apart, even of one version
}

// OpenGo looks at the toolchain in a directory, which must be one for this
// architecture of Linux.
func OpenGo(root, arch string) (Go, error) {
	data, err := os.ReadFile(filepath.Join(root, "VERSION"))
	if err != nil {
		return Go{}, fmt.Errorf("%s is no Go toolchain (GOROOT): %w", root, err)
	}
	g := Go{Root: root}
	g.Version, _, _ = strings.Cut(string(data), "\n")
	h := sha256.New()
	h.Write(data)
	for _, name := range append([]string{"bin/go"}, tools(arch)...) {
		f, err := os.Open(filepath.Join(root, name))
		if err != nil {
			return Go{}, fmt.Errorf("the Go toolchain in %s is not one for linux/%s: %w", root, arch, err)
		}
		_, err = io.Copy(h, f)
		_ = f.Close()
		if err != nil {
			return Go{}, err
		}
	}
	g.Key = hex.EncodeToString(h.Sum(nil)[:6])
	return g, nil
}

// tools are what go build runs; the others are built when they are asked for.
func tools(arch string) []string {
	var out []string
	for _, t := range []string{"asm", "cgo", "compile", "link"} {
		out = append(out, "pkg/tool/linux_"+arch+"/"+t)
	}
	return out
}

// Files returns the toolchain's files below usr/local/go, without tests, the
// source of the go command and what it does not need to build programs.
func (g Go) Files(arch string) (fileset.Set, error) {
	const to = "usr/local/go"
	set := fileset.Set{"usr/local/bin/go": fileset.Link("../go/bin/go")}
	for _, name := range append([]string{"VERSION", "LICENSE", "bin/go"}, tools(arch)...) {
		if err := add(set, path.Join(to, name), filepath.Join(g.Root, name)); err != nil {
			return nil, err
		}
	}
	if err := add(set, to+"/go.env", filepath.Join(g.Root, "go.env")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, name := range []string{"lib/fips140", "lib/time", "pkg/include", "src"} {
		// Debian's packages keep some of them elsewhere, behind links.
		dir, err := filepath.EvalSymlinks(filepath.Join(g.Root, name))
		if errors.Is(err, fs.ErrNotExist) && name != "src" {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := addTree(set, path.Join(to, name), dir); err != nil {
			return nil, err
		}
	}
	return set, nil
}

func addTree(set fileset.Set, to, dir string) error {
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "testdata" || (rel == "cmd" && path.Base(to) == "src") {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(d.Name(), "_test.go") {
			return nil
		}
		return add(set, path.Join(to, filepath.ToSlash(rel)), p)
	})
}

// add adds what a path leads to, so that no link points out of the layer.
func add(set fileset.Set, name, source string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no file", source)
	}
	e := fileset.Entry{Mode: 0o644, Source: source}
	if info.Mode()&0o111 != 0 {
		e.Mode = 0o755
	}
	set[name] = e
	return nil
}
