package packbuild

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/buildpacks/pack/pkg/cache"
	pack "github.com/buildpacks/pack/pkg/client"
	"github.com/buildpacks/pack/pkg/image"
	"github.com/buildpacks/pack/pkg/logging"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/daemon"
	"github.com/moby/moby/client"

	"github.com/trainyard/trainyard/internal/builderimage"
	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/plan"
	"github.com/trainyard/trainyard/internal/registryclient"
)

// Options says what to build and how the engine is used.
type Options struct {
	Plan string // folder of a plan whose image is not there yet
	// Report is the folder that gets the lifecycle's report.toml.
	Report   string
	Registry *registryclient.Client
	Keychain authn.Keychain // for the lifecycle, which pushes; nil is docker's own
	// Network is the engine's network for the build; empty is its default, host is
	// needed for a registry on a loopback address.
	Network string
	// CAFile is a file of this machine that the build finds at CAPath, when set.
	CAFile, CAPath string
	// Engine is the engine's API; nil is the one that DOCKER_HOST names.
	Engine Engine
	Log    io.Writer
}

// Engine is the part of the container engine's API that is used.
type Engine interface {
	pack.DockerClient
	daemon.Client
}

// Build builds the image of the plan and pushes it under the plan's build tag.
func Build(ctx context.Context, o Options) error {
	f, err := plan.Read(o.Plan)
	if err != nil {
		return err
	}
	if o.Engine == nil {
		engine, err := client.New(client.FromEnv)
		if err != nil {
			return exitcode.Errorf(exitcode.Usage, "container engine: %w", err)
		}
		defer func() { _ = engine.Close() }()
		o.Engine = engine
	}
	if err := o.build(ctx, f); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("build with pack: %w", err)
	}
	return nil
}

func (o Options) build(ctx context.Context, f *plan.File) error {
	env, err := environment(filepath.Join(o.Plan, plan.PlatformDir, "env"))
	if err != nil {
		return err
	}
	buildpacks, err := o.buildpacks(f)
	if err != nil {
		return err
	}
	builder, err := o.load(ctx, f)
	if err != nil {
		return err
	}
	opts := pack.BuildOptions{
		Image: f.Build, Builder: builder, RunImage: f.RunImage, AppPath: filepath.Join(o.Plan, plan.SourceDir),
		Env: env, Buildpacks: buildpacks, DefaultProcessType: f.ProcessType, CacheImage: f.CacheImage,
		Cache:   caches(f.Image),
		Publish: true, TrustBuilder: func(string) bool { return true }, PullPolicy: image.PullNever,
		// Negative: those of the builder.
		UserID: -1, GroupID: -1,
		Platform:             f.OS + "/" + f.Arch,
		ReportDestinationDir: o.Report,
		InsecureRegistries:   f.Insecure,
		ContainerConfig:      pack.ContainerConfig{Network: o.Network},
	}
	if o.CAFile != "" {
		opts.ContainerConfig.Volumes = []string{o.CAFile + ":" + o.CAPath + ":ro"}
	}
	if f.Created != "" {
		seconds, err := strconv.ParseInt(f.Created, 10, 64)
		if err != nil {
			return exitcode.Errorf(exitcode.BadInput, "plan: time of creation: %w", err)
		}
		created := time.Unix(seconds, 0).UTC()
		opts.CreationTime = &created
	}
	keychain := o.Keychain
	if keychain == nil {
		keychain = authn.DefaultKeychain
	}
	log := logging.NewLogWithWriters(o.Log, o.Log)
	p, err := pack.NewClient(
		pack.WithLogger(log), pack.WithDockerClient(o.Engine), pack.WithKeychain(keychain),
		pack.WithFetcher(fetcher{engine: o.Engine, registry: o.Registry, platform: v1.Platform{OS: f.OS, Architecture: f.Arch}}),
		// Called for lists of images only.
		pack.WithIndexFactory(struct{ pack.IndexFactory }{}),
	)
	if err != nil {
		return err
	}
	return p.Build(ctx, opts)
}

// caches names the engine's volumes after the repository. Pack would name them after
// the build's tag, and so find nothing when the source has changed.
func caches(image string) cache.CacheOpts {
	repository, _, _ := strings.Cut(path.Base(image), ":")
	sum := sha256.Sum256([]byte(path.Join(path.Dir(image), repository)))
	volume := func(kind string) cache.CacheInfo {
		return cache.CacheInfo{Format: cache.CacheVolume, Source: "trainyard-" + hex.EncodeToString(sum[:6]) + "." + kind}
	}
	return cache.CacheOpts{Build: volume("build"), Launch: volume("launch")}
}

// load gives the engine the builder, unless it has it, and returns its name there.
func (o Options) load(ctx context.Context, f *plan.File) (string, error) {
	ref, err := o.Registry.Reference(f.Builder)
	if err != nil {
		return "", err
	}
	img, err := o.Registry.Image(ctx, ref, v1.Platform{OS: f.OS, Architecture: f.Arch})
	if err != nil {
		return "", err
	}
	_, digest, _ := strings.Cut(f.BuilderDigest, ":")
	tag, err := name.NewTag("trainyard.local/builder:" + digest)
	if err != nil {
		return "", err
	}
	if _, err := daemon.Write(tag, img, daemon.WithClient(o.Engine), daemon.WithContext(ctx)); err != nil {
		return "", exitcode.Errorf(exitcode.IO, "give the builder to the container engine (is it running?): %w", err)
	}
	return tag.Name(), nil
}

// environment reads the variables that the plan wrote: one file each.
func environment(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "plan: %w", err)
	}
	env := map[string]string{}
	for _, e := range entries {
		value, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, exitcode.Errorf(exitcode.BadInput, "plan: %w", err)
		}
		env[e.Name()] = string(value)
	}
	return env, nil
}

// buildpacks are those of the plan's own order, which pack takes as one group.
func (o Options) buildpacks(f *plan.File) ([]string, error) {
	if !f.Order {
		return nil, nil
	}
	var order struct {
		Order []builderimage.Group `toml:"order"`
	}
	file := filepath.Join(o.Plan, plan.OrderFile)
	if _, err := toml.DecodeFile(file, &order); err != nil {
		return nil, exitcode.Errorf(exitcode.BadInput, "plan: %w", err)
	}
	if len(order.Order) != 1 {
		return nil, exitcode.Errorf(exitcode.BadInput, "%s has %d groups of buildpacks, pack takes one: set io.buildpacks.group alone", file, len(order.Order))
	}
	var names []string
	for _, b := range order.Order[0].Group {
		if b.Optional {
			return nil, exitcode.Errorf(exitcode.BadInput, "%s: buildpack %s is optional, which pack cannot be told: leave it out", file, b.ID)
		}
		if b.Version != "" {
			b.ID += "@" + b.Version
		}
		names = append(names, b.ID)
	}
	return names, nil
}
