package component

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
)

// Module is a Go module that pins components, and what is built from it.
type Module struct {
	// Name is the module's folder below scripts/components.
	Name string
	// Tags are build tags for every package.
	Tags []string
	// Stamps tell programs their version.
	Stamps []Stamp
	// Programs of the module, in the order in which they are built.
	Programs []Program
}

// Program is one main package.
type Program struct {
	// Package is its import path.
	Package string
	// Name is the file name that its binary gets: unique in its module, which
	// the base names of packages (controller, webhook) are not.
	Name string
	// Alone keeps it out of a go build with others: import paths of theirs and its
	// own differ in case alone, which go refuses.
	Alone bool
}

// Stamp is a variable that the linker sets to the version of a module, as that
// project's own release does.
type Stamp struct {
	Variable string
	Module   string
}

// Key names the build of the module under root by everything that its binaries
// depend on: pins, our own sources beside them, flags, toolchain and platform.
// Which of its programs are built is no part of it.
func (m Module) Key(root, goVersion string) (string, error) {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s %s/%s\ntags %q\nstamps %q\n",
		goVersion, runtime.GOOS, runtime.GOARCH, m.Tags, m.Stamps)
	for _, folder := range []string{m.Name, replacements} {
		if err := hashFiles(hash, filepath.Join(root, folder)); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:12], nil
}

// replacements is the folder of the modules that replace what no proxy serves.
const replacements = "kaniko-stub"

func hashFiles(w io.Writer, folder string) error {
	var files []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read the pins of the cluster's components: %w", err)
	}
	sort.Strings(files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(file, folder)
		fmt.Fprintf(w, "%s %d\n", name, len(data))
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}
