package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/packbuild"
	"github.com/trainyard/trainyard/internal/pin"
	"github.com/trainyard/trainyard/internal/plan"
	"github.com/trainyard/trainyard/internal/registryclient"
)

func newImage(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "image", Short: "Build images on this machine", Args: noArgs, RunE: group}
	cmd.AddCommand(newImageBuild(a))
	return cmd
}

func newImageBuild(a *app) *cobra.Command {
	var o plan.Options
	var registries registryFlags
	var network, ca string
	cmd := &cobra.Command{
		Use:   "build [NAME=VALUE ...]",
		Short: "Build an image with pack and a container engine, as the task would",
		Long: `Build an image with pack and a container engine, as the task would.

Plans the build, runs the builder's lifecycle with pack's library, verifies what was
pushed and tags it: the same three steps as in a cluster, with the same digest for
the same source, builder and run image. The engine is the one that DOCKER_HOST names.

Arguments NAME=VALUE are variables for the buildpacks, beside the descriptor's.`,
		Example: `  yard image build --workspace . --folder trainer --docker-network host \
    --image 127.0.0.1:5000/trainyard/trainer:dev --insecure-registry 127.0.0.1:5000 \
    --builder 127.0.0.1:5000/trainyard/builder@sha256:…`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			work, err := os.MkdirTemp("", "yard-image-")
			if err != nil {
				return exitcode.New(exitcode.IO, err)
			}
			defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
			o.Env, o.Insecure = args, registries.insecure
			o.Platform = v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
			o.Out = filepath.Join(work, "plan")
			o.Log = func(format string, args ...any) { fmt.Fprintf(a.Err, format+"\n", args...) }
			build := packbuild.Options{Plan: o.Out, Report: work, Network: network, Log: a.Err}
			if ca != "" {
				if build.CAFile, err = filepath.Abs(ca); err != nil {
					return exitcode.New(exitcode.IO, err)
				}
				if _, err := os.Stat(build.CAFile); err != nil {
					return exitcode.Errorf(exitcode.BadInput, "CA file: %w", err)
				}
				build.CAPath = "/trainyard-ca/ca.crt"
				o.Env = append([]string{"SSL_CERT_FILE=" + build.CAPath}, o.Env...)
			}
			c, err := registries.client(a)
			if err != nil {
				return err
			}
			f, err := plan.Make(cmd.Context(), c, o)
			if err != nil {
				return err
			}
			build.Registry = c
			if f.Action != plan.Found {
				if err := packbuild.Build(cmd.Context(), build); err != nil {
					return err
				}
			}
			p, err := pin.Pin(cmd.Context(), pin.Options{Plan: o.Out, Report: filepath.Join(work, "report.toml"), Client: registryclient.Options{UserAgent: "yard/" + cmp.Or(a.Build.Version, "unknown")}, Log: o.Log})
			if err != nil {
				return err
			}
			return a.print(p, func(w io.Writer) {
				fmt.Fprintf(w, "%s\n%s, %.1f MB compressed\nsource %s\n", p.Ref, p.Image, float64(p.Size)/1e6, p.Source)
			})
		},
	}
	f := cmd.Flags()
	registries.add(cmd)
	f.StringVar(&o.Workspace, "workspace", ".", "directory with the checkout; nothing outside of it is read")
	f.StringVar(&o.Path, "path", ".", "checkout in the workspace")
	f.StringVar(&o.Folder, "folder", ".", "folder of the checkout that is built, the application's root")
	f.StringVar(&o.Descriptor, "descriptor", "project.toml", "project descriptor in the checkout")
	f.StringVar(&o.Image, "image", "", "name of the image, with its tag")
	f.StringVar(&o.Builder, "builder", "", "builder by digest, host/repository@sha256:…")
	f.StringVar(&o.RunImage, "run-image", "", "base of the image; empty takes the builder's")
	f.StringVar(&o.CacheImage, "cache-image", "", "image that keeps layers between builds; empty keeps them in volumes of the engine")
	f.StringVar(&o.ProcessType, "process-type", "", "default process; empty leaves it to the buildpacks")
	f.StringVar(&o.Created, "created", "", "time of creation in the image, seconds since 1970; empty is the lifecycle's 1980")
	f.BoolVar(&o.Rebuild, "rebuild", false, "do not look for an image that is there")
	f.StringVar(&network, "docker-network", "", "network of the build's containers, for example host")
	f.StringVar(&ca, "ca-file", "", "certificates that buildpacks shall trust")
	return cmd
}
