// Command go-offline is both executables of the buildpack, bin/detect and
// bin/build: it is the one that it is called by.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	gooffline "github.com/trainyard/trainyard/buildpacks/go-offline"
	"github.com/trainyard/trainyard/buildpacks/go-offline/internal/phase"
)

func main() { os.Exit(run(filepath.Base(os.Args[0]))) }

func run(name string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return phase.ExitError
	}
	c := phase.Context{AppDir: dir, Env: os.Environ(), Descriptor: gooffline.Descriptor(), Out: os.Stdout}
	switch name {
	case "detect":
		return phase.Detect(ctx, c)
	case "build":
		return phase.Build(ctx, c)
	}
	fmt.Fprintf(os.Stderr, "error: called as %q: the lifecycle calls this program as detect or build\n", name)
	return phase.ExitError
}
