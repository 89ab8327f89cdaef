package export

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/buildpacks/imgutil"
	"github.com/buildpacks/imgutil/remote"
	"github.com/buildpacks/lifecycle/auth"
	"github.com/buildpacks/lifecycle/cache"
	"github.com/buildpacks/lifecycle/image"
	"github.com/buildpacks/lifecycle/layers"
	"github.com/buildpacks/lifecycle/log"
	"github.com/buildpacks/lifecycle/phase"
	"github.com/buildpacks/lifecycle/platform"
	"github.com/buildpacks/lifecycle/platform/files"
	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Options say what to export, and as whose.
type Options struct {
	From   string // folder of the layers; it is written to
	Layers string // the builder's own folder of layers, which the image has them in
	App    string
	Report string // file to leave
	Bin    string // folder of the builder's lifecycle

	UID, GID    int // user that the builder is made for
	PlatformAPI string
	Image       string // name with tag
	CacheImage  string
	Insecure    []string // registries that may be spoken to in plain http
	ProcessType string
	Created     string // seconds since 1970; empty is the lifecycle's fixed time
	Log         io.Writer
}

// Run exports an image and writes the report of it.
func Run(ctx context.Context, o Options) error {
	meta, err := launcher(ctx, o.Bin, o.PlatformAPI)
	if err != nil {
		return err
	}
	root, err := os.Stat(o.Layers)
	if err != nil {
		return exitcode.Errorf(exitcode.BadInput, "the builder has no layers folder: %w: use a builder that pack or yard made", err)
	}
	logger := log.NewDefaultLogger(o.Log)
	if err := logger.SetLevel("info"); err != nil {
		return err
	}
	e := exporter{Options: o, logger: logger}
	if err := e.inputs(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "export-")
	if err != nil {
		return exitcode.New(exitcode.IO, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	over := filepath.Join(dir, "over")
	if err := os.Mkdir(over, 0o700); err != nil {
		return exitcode.New(exitcode.IO, err)
	}
	made := &factory{
		Factory: &layers.Factory{ArtifactsDir: dir, UID: o.UID, GID: o.GID, Logger: e.logger, Ctx: ctx},
		from:    o.From, to: o.Layers, root: root, dir: over, made: map[string]layers.Layer{},
	}
	// The lifecycle's code takes no context.
	done := make(chan error, 1)
	go func() { done <- e.export(made, meta) }()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-done:
		return err
	}
}

// exporter is what the lifecycle's exporter knows when it starts.
type exporter struct {
	Options
	logger   log.Logger
	in       *platform.LifecycleInputs
	analyzed files.Analyzed
	keychain authn.Keychain
}

func (e *exporter) inputs() (err error) {
	e.in = platform.NewPlatformFor(e.PlatformAPI).LifecycleInputs
	e.in.LayersDir, e.in.AppDir, e.in.ReportPath = e.From, e.App, e.Report
	e.in.OutputImageRef, e.in.CacheImageRef, e.in.InsecureRegistries = e.Image, e.CacheImage, e.Insecure
	e.in.LauncherPath = filepath.Join(e.Bin, "launcher")
	if err := platform.UpdatePlaceholderPaths(e.in, e.logger); err != nil {
		return err
	}
	if e.analyzed, err = files.Handler.ReadAnalyzed(e.in.AnalyzedPath, e.logger); err != nil {
		return err
	}
	switch {
	case e.analyzed.RunImage == nil || e.analyzed.RunImage.Reference == "":
		return fmt.Errorf("%s names no run image", e.in.AnalyzedPath)
	case e.analyzed.RunImage.Extend:
		return exitcode.Errorf(exitcode.BadInput, "an image extension changes the run image: use a builder without extensions")
	}
	if err := platform.ResolveInputs(platform.Export, e.in, e.logger); err != nil {
		return fmt.Errorf("resolve inputs: %w", err)
	}
	images := append(e.in.RegistryImages(), e.analyzed.PreviousImageRef())
	if e.keychain, err = auth.DefaultKeychain(images...); err != nil {
		return fmt.Errorf("credentials of the registries: %w", err)
	}
	return nil
}

func (e *exporter) export(made *factory, launcher files.LauncherMetadata) error {
	group, err := files.Handler.ReadGroup(e.in.GroupPath)
	if err != nil {
		return err
	}
	project, err := files.Handler.ReadProjectMetadata(e.in.ProjectMetadataPath, e.logger)
	if err != nil {
		return err
	}
	runImage, err := platform.GetRunImageForExport(*e.in)
	if err != nil {
		return err
	}
	app, runID, err := e.images()
	if err != nil {
		return err
	}
	exporter := &phase.Exporter{Buildpacks: group.Group, LayerFactory: made, Logger: e.logger, PlatformAPI: e.in.PlatformAPI}
	report, err := exporter.Export(phase.ExportOptions{
		AppDir: e.in.AppDir, DefaultProcessType: e.ProcessType, ExecEnv: e.in.ExecEnv,
		LauncherConfig: phase.LauncherConfig{Path: e.in.LauncherPath, SBOMDir: e.in.LauncherSBOMDir, Metadata: launcher},
		LayersDir:      e.in.LayersDir, OrigMetadata: e.analyzed.LayersMetadata, Project: project,
		RunImageRef: runID, RunImageForExport: runImage, WorkingImage: placed{app, e.Layers},
	})
	if err != nil {
		return fmt.Errorf("failed to export: %w", err)
	}
	if err := files.Handler.WriteReport(e.in.ReportPath, &report); err != nil {
		return fmt.Errorf("write the report of the export: %w", err)
	}
	e.cache(exporter)
	return nil
}

// cache keeps layers for the next build. An image without a cache is an image.
func (e *exporter) cache(exporter *phase.Exporter) {
	if e.CacheImage == "" {
		return
	}
	deleter := cache.NewImageDeleter(cache.NewImageComparer(), e.logger, e.in.PlatformAPI.LessThan("0.13"))
	store, err := cache.NewImageCacheFromName(e.CacheImage, e.keychain, e.logger, deleter, e.Insecure...)
	if err == nil {
		err = exporter.Cache(e.in.LayersDir, store)
	}
	if err != nil {
		e.logger.Warnf("Failed to export cache: %v", err)
	}
}

// images opens the image that is to be made, on its base, and names the base.
func (e *exporter) images() (app imgutil.Image, runID string, err error) {
	insecure := image.GetInsecureOptions(e.Insecure)
	open := func(name string, options ...imgutil.ImageOption) (imgutil.Image, error) {
		return phase.OpenRemoteImage(e.logger, func() (imgutil.Image, error) {
			return remote.NewImage(name, e.keychain, append(options, insecure...)...)
		})
	}
	options := []imgutil.ImageOption{remote.FromBaseImage(e.in.RunImageRef)}
	if e.in.PlatformAPI.AtLeast("0.12") {
		options = append(options, remote.WithHistory())
	}
	if previous := e.analyzed.PreviousImageRef(); previous != "" {
		options = append(options, remote.WithPreviousImage(previous))
	}
	if e.Created != "" && e.in.PlatformAPI.AtLeast("0.9") {
		seconds, err := strconv.ParseInt(e.Created, 10, 64)
		if err != nil {
			return nil, "", exitcode.Errorf(exitcode.BadInput, "created is %q, want seconds since 1970", e.Created)
		}
		options = append(options, remote.WithCreatedAt(time.Unix(seconds, 0)))
	}
	if app, err = open(e.Image, options...); err != nil {
		return nil, "", fmt.Errorf("open image %s on run image %s: %w", e.Image, e.in.RunImageRef, err)
	}
	run, err := open(e.in.RunImageRef, remote.FromBaseImage(e.in.RunImageRef))
	if err != nil {
		return nil, "", fmt.Errorf("open run image %s: %w", e.in.RunImageRef, err)
	}
	id, err := run.Identifier()
	if err != nil {
		return nil, "", fmt.Errorf("digest of run image %s: %w", e.in.RunImageRef, err)
	}
	return app, id.String(), nil
}

// placed is an image whose layers are elsewhere than on disk.
type placed struct {
	imgutil.Image
	layers string
}

// SetEnv implements imgutil.Image.
func (p placed) SetEnv(name, value string) error {
	if name == platform.EnvLayersDir {
		value = p.layers
	}
	return p.Image.SetEnv(name, value)
}
