package phase

import (
	"context"
	"errors"
	"fmt"

	"github.com/trainyard/trainyard/buildpacks/go-offline/internal/settings"
)

// The lifecycle's exit codes of detect.
const (
	ExitOK    = 0
	ExitError = 1   // the source is ours, but something is wrong
	ExitPass  = 100 // the source is not ours
)

// Detect says by its exit code whether the buildpack takes part in the build. It
// asks for nothing from other buildpacks, so there is no build plan.
//
// A setting that is wrong, or a toolchain that is too old, is an error and no mere
// refusal: the lifecycle shows what an executable says only then.
func Detect(ctx context.Context, c Context) int {
	p, err := c.prepare(ctx)
	switch {
	case errors.Is(err, settings.ErrNotGo):
		fmt.Fprintln(c.Out, err)
		return ExitPass
	case err != nil:
		fmt.Fprintln(c.Out, "error:", err)
		return ExitError
	}
	fmt.Fprintf(c.Out, "%s builds %v\n", p.toolchain.Version, p.Targets)
	return ExitOK
}
