package component

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/internal/child"
)

// Builder builds modules into a cache.
type Builder struct {
	// Root is the folder that holds the modules: scripts/components.
	Root string
	// Cache is the folder for what is built, outside the checkout.
	Cache string
	// Go is the go command.
	Go string
	// GoVersion is what `go env GOVERSION` prints.
	GoVersion string
	// Total, if set, is told how many packages a build has before it begins.
	Total func(packages int)
	// Progress, if set, is called with each package that was compiled.
	Progress func(importPath string)
}

// Built is a module's binaries.
type Built struct {
	// Dir holds one binary for each program, by its name.
	Dir string
	// Cached says that nothing had to be compiled.
	Cached bool
}

// Path returns the path of a program's binary.
func (b Built) Path(program string) string { return filepath.Join(b.Dir, program) }

// Build returns the module's binaries, building those that the cache does not
// have. A build that is interrupted leaves whole binaries only and is continued
// by the next: Go keeps the packages that it compiled.
func (b Builder) Build(ctx context.Context, module Module) (Built, error) {
	key, err := module.Key(b.Root, b.GoVersion)
	if err != nil {
		return Built{}, err
	}
	built := Built{Dir: filepath.Join(b.Cache, module.Name+"-"+key), Cached: true}
	flags, err := b.flags(module)
	if err != nil {
		return Built{}, err
	}
	todo := batches(module.Programs, built.Dir)
	if len(todo) > 0 && b.Total != nil {
		b.Total(b.count(ctx, module, todo))
	}
	for _, batch := range todo {
		built.Cached = false
		if err := b.build(ctx, module, batch, flags, built.Dir); err != nil {
			return Built{}, err
		}
	}
	return built, nil
}

// flags of go build. Programs are stripped: their symbols are twice their size.
func (b Builder) flags(module Module) ([]string, error) {
	versions, err := module.Versions(b.Root)
	if err != nil {
		return nil, err
	}
	link := []string{"-s", "-w"}
	for _, stamp := range module.Stamps {
		version := versions[stamp.Module]
		if version == "" {
			return nil, fmt.Errorf("%s/%s/go.mod requires no %s", b.Root, module.Name, stamp.Module)
		}
		if strings.HasPrefix(stamp.Module, "github.com/buildpacks/") || strings.HasPrefix(stamp.Module, "github.com/tektoncd/cli") {
			version = strings.TrimPrefix(version, "v")
		}
		link = append(link, "-X", stamp.Variable+"="+version)
	}
	flags := []string{"-v", "-trimpath", "-buildvcs=false", "-ldflags=" + strings.Join(link, " ")}
	if len(module.Tags) > 0 {
		flags = append(flags, "-tags="+strings.Join(module.Tags, ","))
	}
	return flags, nil
}

// count returns how many packages the programs have, 0 if that cannot be told.
func (b Builder) count(ctx context.Context, module Module, todo [][]Program) int {
	packages := map[string]bool{}
	for _, batch := range todo {
		args := []string{"list", "-deps"}
		for _, program := range batch {
			args = append(args, program.Package)
		}
		cmd := exec.CommandContext(ctx, b.Go, args...)
		cmd.Dir = filepath.Join(b.Root, module.Name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
		out, err := cmd.Output()
		if err != nil {
			return 0 // the build will say why
		}
		for path := range strings.FieldsSeq(string(out)) {
			packages[path] = true
		}
	}
	return len(packages)
}

// build makes one batch of programs in dir.
func (b Builder) build(ctx context.Context, module Module, batch []Program, flags []string, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	unfinished, err := os.MkdirTemp(dir, ".unfinished-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(unfinished)
	args := append([]string{"build"}, flags...)
	args = append(args, "-o", unfinished+"/")
	for _, program := range batch {
		args = append(args, program.Package)
	}
	cmd := exec.CommandContext(ctx, b.Go, args...)
	cmd.Dir = filepath.Join(b.Root, module.Name)
	// GOGC: a compiler is short-lived, and collects less when it may grow. A
	// fixed set of flags, so that a user's own changes nothing.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOGC=400")
	// go's children are stopped with it: an interrupt goes to the whole group.
	child.StopAll(cmd, syscall.SIGINT, 10*time.Second)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run %s: %w", b.Go, err)
	}
	said := b.follow(stderr)
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("build the programs of %s: %w: %s", module.Name, err, said)
	}
	for _, program := range batch {
		if err := os.Rename(filepath.Join(unfinished, program.base()), filepath.Join(dir, program.Name)); err != nil {
			return err
		}
	}
	return nil
}

// follow reads what go build -v says: one import path a line for each package
// that it compiles, and anything else when something is wrong. It returns the
// latter, cut to what a person would read.
func (b Builder) follow(stderr io.Reader) string {
	const lines = 20
	var said []string
	scanner := bufio.NewScanner(stderr)
	for scanner.Scan() {
		line := scanner.Text()
		if isImportPath(line) {
			if b.Progress != nil {
				b.Progress(line)
			}
			continue
		}
		if !strings.HasPrefix(line, "go: downloading ") && len(said) < lines {
			said = append(said, line)
		}
	}
	if err := scanner.Err(); err != nil && !errors.Is(err, os.ErrClosed) {
		said = append(said, err.Error())
	}
	return strings.Join(said, "\n")
}

func isImportPath(line string) bool {
	return line != "" && !strings.ContainsAny(line, " \t:#")
}
