// Package gomodule finds a module that a go.mod pins: its version, and the folder
// with its files, which is downloaded when it is missing. It changes no go.mod.
package gomodule

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
)

// Module is a module at a version.
type Module struct {
	Path    string
	Version string
	// Dir is the read-only folder of its files in Go's module cache.
	Dir string
}

// FS returns the module's files.
func (m Module) FS() fs.FS { return os.DirFS(m.Dir) }

func (m Module) String() string { return m.Path + "@" + m.Version }

// Find returns the module with this path as the go.mod in folder pins it. command
// is the go command.
func Find(ctx context.Context, command, folder, path string) (Module, error) {
	run := exec.CommandContext(ctx, command, "mod", "download", "-json", path)
	run.Dir = folder
	// A workspace around the checkout would choose other versions.
	run.Env = append(os.Environ(), "GOWORK=off")
	var output, complaints bytes.Buffer
	run.Stdout, run.Stderr = &output, &complaints
	runErr := run.Run()

	var found struct {
		Path, Version, Dir, Error string
	}
	if err := json.Unmarshal(output.Bytes(), &found); err != nil && runErr == nil {
		runErr = err
	}
	if found.Error != "" { // go has exited with 1 too, and said no more
		runErr = errors.New(found.Error)
	}
	if runErr != nil {
		return Module{}, fmt.Errorf("find module %s of %s/go.mod (go mod download): %w%s", path, folder, runErr, after(complaints.String()))
	}
	if found.Path != path || found.Dir == "" {
		return Module{}, fmt.Errorf("find module %s of %s/go.mod: go mod download names %q in folder %q", path, folder, found.Path, found.Dir)
	}
	return Module{found.Path, found.Version, found.Dir}, nil
}

// after appends what go said, on the error's own line.
func after(complaints string) string {
	if complaints = strings.Join(strings.Fields(complaints), " "); complaints == "" {
		return ""
	}
	return ": " + complaints
}
