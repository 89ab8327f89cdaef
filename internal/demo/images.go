package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainyard/trainyard/internal/demo/component"
)

// binaries are paths of programs for this machine, by their names.
type binaries map[string]string

func (b binaries) program(name string) (string, error) {
	if path := b[name]; path != "" {
		return path, nil
	}
	return "", fmt.Errorf("no program %s was built", name)
}

// add takes up what was built of a module.
func (b binaries) add(module component.Module, built component.Built) {
	for _, program := range module.Programs {
		b[program.Name] = built.Path(program.Name)
	}
}

// componentBuilder builds the programs that the modules of components pin.
func (d *Demo) componentBuilder(ctx context.Context) (component.Builder, error) {
	version, err := run(ctx, d.Checkout, nil, d.Go, "env", "GOVERSION")
	return component.Builder{
		Root: d.components(), Cache: filepath.Join(d.Cache, "components"),
		Go: d.Go, GoVersion: strings.TrimSpace(version),
	}, err
}

// load puts an image into the Docker engine: the archive that write writes.
func (d *Demo) load(ctx context.Context, write func(io.Writer) error) error {
	file, err := os.CreateTemp(d.Cache, ".image-*.tar")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := write(file); err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = d.docker.Pipe(ctx, file, "load", "--quiet")
	return err
}
