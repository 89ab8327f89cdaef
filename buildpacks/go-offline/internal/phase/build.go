package phase

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/trainyard/trainyard/buildpacks/go-offline/internal/gotool"
	"github.com/trainyard/trainyard/buildpacks/go-offline/internal/prune"
	"github.com/trainyard/trainyard/internal/gosbom"
)

// Layers of the buildpack. The names of the first two are go-build's, that of the
// third is go-mod-vendor's: where a program lies is part of how an image is used.
const (
	targetsLayer = "targets"
	cacheLayer   = "gocache"
	modulesLayer = "mod-cache"
)

// Build compiles the programs and returns the exit code of the executable.
func Build(ctx context.Context, c Context) int {
	if err := build(ctx, c); err != nil {
		fmt.Fprintln(c.Out, "error:", err)
		return ExitError
	}
	return ExitOK
}

func build(ctx context.Context, c Context) error {
	self, err := c.identity()
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "%s %s\n", self.Name, self.Version)
	root, ok := c.lookup("CNB_LAYERS_DIR")
	if !ok || !filepath.IsAbs(root) {
		return fmt.Errorf("CNB_LAYERS_DIR is %q: this has to be started by a lifecycle with buildpack API 0.8 or later", root)
	}
	p, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	l := layers{root}
	for _, name := range []string{cacheLayer, modulesLayer, targetsLayer} {
		if err := os.MkdirAll(l.dir(name), 0o755); err != nil {
			return err
		}
	}
	// Kubernetes' volumes pass a set-group-ID bit on to what is made in them, which
	// would make another layer of the same program.
	if err := os.Chmod(l.dir(targetsLayer), 0o755); err != nil {
		return err
	}

	fmt.Fprintf(c.Out, "%s (%s)\n", p.toolchain.Version, p.toolchain.Command)
	programs, err := p.toolchain.Compile(ctx, gotool.Compilation{
		Dir: filepath.Join(c.AppDir, p.WorkDir), Use: p.Use, Targets: p.Targets, Flags: p.Flags,
		Output: filepath.Join(l.dir(targetsLayer), "bin"), Env: c.Env,
		ModCache: l.dir(modulesLayer), Cache: l.dir(cacheLayer),
	}, c.Out)
	if err != nil {
		return err
	}
	for _, program := range programs {
		if err := c.describe(program); err != nil {
			return err
		}
	}

	bom, err := gosbom.Encode(gosbom.Tool{Name: self.ID, Version: self.Version}, programs)
	if err != nil {
		return err
	}
	removed, err := prune.Clear(c.AppDir, p.Keep)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "removed %d files and directories of the source, kept what BP_KEEP_FILES names (%d patterns)\n", removed, len(p.Keep))
	return l.write(programs, p.Labels, bom)
}

// describe says what was built, and warns of a program that needs more of the run
// image than an empty one has.
func (c Context) describe(program string) error {
	info, err := os.Stat(program)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "built %s, %.1f MB\n", program, float64(info.Size())/1e6)
	linker, err := gotool.Interpreter(program)
	if err != nil {
		return err
	}
	if linker != "" {
		fmt.Fprintf(c.Out, "warning: %s needs %s in the run image; for a static program set CGO_ENABLED=0 and BP_GO_BUILD_FLAGS=-buildmode=default\n", filepath.Base(program), linker)
	}
	return nil
}
