package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/builder"
	"github.com/trainyard/trainyard/internal/exitcode"
)

func newBuilder(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "builder",
		Short: "Make a builder where Docker Hub is out of reach",
		Args:  noArgs,
		RunE:  group,
	}
	cmd.AddCommand(newBuilderCreate(a))
	return cmd
}

func newBuilderCreate(a *app) *cobra.Command {
	var o builder.Options
	var registries registryFlags
	var lifecycle string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a builder and its run image from Debian packages and this machine's Go",
		Long: `Make a builder and its run image from Debian packages and this machine's Go.

Both are pushed to the repository, under a tag that is a key of what they are made
of; when the builder is there, nothing is done. It needs mmdebstrap, but neither
root's rights nor a container engine. The same inputs give the same digests.`,
		Example: `  yard builder create --repository 172.30.77.200:5000/trainyard \
    --insecure-registry 172.30.77.200:5000 --lifecycle-dir bin/lifecycle --buildpack bin/go-offline`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, f := range []struct{ flag, value string }{{"repository", o.Repository}, {"lifecycle-dir", lifecycle}, {"buildpack", o.Buildpack}} {
				if f.value == "" {
					return exitcode.Errorf(exitcode.Usage, "--%s is not set: see %s --help", f.flag, cmd.CommandPath())
				}
			}
			o.Lifecycle.Lifecycle = filepath.Join(lifecycle, "lifecycle")
			o.Lifecycle.Launcher = filepath.Join(lifecycle, "launcher")
			var err error
			if o.GoRoot == "" {
				if o.GoRoot, err = goRoot(cmd.Context()); err != nil {
					return err
				}
			}
			if o.Cache == "" {
				if o.Cache, err = builderCache(a.Getenv); err != nil {
					return err
				}
			}
			if o.Registry, err = registries.client(a); err != nil {
				return err
			}
			o.Log = a.Err
			r, err := builder.Create(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.print(r, func(w io.Writer) {
				fmt.Fprintf(w, "builder %s\nrun     %s\n%s, lifecycle %s\n", r.Builder, r.Run, r.Go, r.Lifecycle)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Repository, "repository", "", "what the images' names begin with: REPOSITORY/builder and REPOSITORY/run")
	registries.add(cmd)
	f.StringVar(&lifecycle, "lifecycle-dir", "", "`directory` with the programs lifecycle and launcher")
	f.StringVar(&o.Buildpack, "buildpack", "", "`program` of buildpacks/go-offline")
	f.StringVar(&o.GoRoot, "goroot", "", "`directory` of the Go toolchain (default: what go env GOROOT says)")
	f.StringVar(&o.Cache, "cache", "", "`directory` for what takes time to make (default ~/.cache/trainyard/builder, or builder in $TRAINYARD_CACHE)")
	f.StringVar(&o.Suite, "debian-suite", "trixie", "Debian suite")
	f.StringVar(&o.Mirror, "debian-mirror", "http://deb.debian.org/debian", "`URL` of a Debian mirror")
	f.BoolVar(&o.Force, "force", false, "make and push it even when it is there")
	return cmd
}

func goRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find the Go toolchain (--goroot names it): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

func builderCache(getenv func(string) string) (string, error) {
	dir := getenv("TRAINYARD_CACHE")
	if dir == "" {
		user := cmp.Or(getenv("XDG_CACHE_HOME"), filepath.Join(getenv("HOME"), ".cache"))
		if !filepath.IsAbs(user) {
			return "", exitcode.Errorf(exitcode.Usage, "neither HOME nor TRAINYARD_CACHE is set: name a directory with --cache")
		}
		dir = filepath.Join(user, "trainyard")
	}
	return filepath.Join(dir, "builder"), nil
}
