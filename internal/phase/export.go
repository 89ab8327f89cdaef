package phase

import (
	"context"
	"errors"
	"fmt"

	"github.com/buildpacks/lifecycle/platform"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/export"
	"github.com/trainyard/trainyard/internal/plan"
)

// exportAsAnother exports without the builder's exporter, which would write the user
// of this step into the image.
func exportAsAnother(ctx context.Context, f *plan.File, o Options) error {
	if o.LayersFrom == "" {
		return exitcode.Errorf(exitcode.Usage, "the layers are in %s, and the builder's own folder must be seen there: mount them elsewhere, and give --layers-from", o.Layers)
	}
	start := o.Now()
	err := export.Run(ctx, export.Options{
		From: o.LayersFrom, Layers: o.Layers, App: o.App, Report: o.Report, Bin: o.Bin,
		UID: f.UID, GID: f.GID, PlatformAPI: f.PlatformAPI, Image: f.Build, CacheImage: f.CacheImage,
		Insecure: f.Insecure, ProcessType: f.ProcessType, Created: f.Created, Log: o.Out,
	})
	fmt.Fprintf(o.Err, "%s took %.1f s\n", o.Name, o.Now().Sub(start).Seconds())
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", o.Name, context.Cause(ctx))
	case exitcode.Of(err) != exitcode.Failed:
		return fmt.Errorf("%s: %w", o.Name, err) // ours says what helps
	}
	fmt.Fprintln(o.Err, err)
	code := platform.NewExiter(f.PlatformAPI).CodeFor(platform.ExportError)
	return exitcode.New(code, errors.New(explain(o.Name, code, err.Error())))
}
