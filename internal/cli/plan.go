package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/phase"
	"github.com/trainyard/trainyard/internal/plan"
	"github.com/trainyard/trainyard/internal/result"
)

func newPlan(a *app) *cobra.Command {
	var o plan.Options
	var registries registryFlags
	var install bool
	var results string
	var ifSet []string
	cmd := &cobra.Command{
		Use:   "plan [NAME=VALUE ...]",
		Short: "Prepare the build of an image, or find it built already",
		Long: `Prepare the build of an image, or find it built already.

Reads the project descriptor, inspects the builder by digest, refuses what could not
be built, copies the source that the descriptor selects, and writes all that the
lifecycle's phases need to --out. The checkout is only read.

Arguments NAME=VALUE are variables for the buildpacks, beside the descriptor's.
--env-if-set takes the same and leaves out those without a value.`,
		Example: `  yard plan --workspace . --folder trainer --out /tmp/plan \
    --image 172.30.77.200:5000/trainyard/trainer:dev --insecure-registry 172.30.77.200:5000 \
    --builder 172.30.77.200:5000/trainyard/builder@sha256:…  GOFLAGS=-mod=vendor`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Env = append(withValues(ifSet), args...)
			o.Insecure = registries.insecure
			o.Platform = v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
			o.Log = func(format string, args ...any) { fmt.Fprintf(a.Err, format+"\n", args...) }
			c, err := registries.client(a)
			if err != nil {
				return err
			}
			f, err := plan.Make(cmd.Context(), c, o)
			if err != nil {
				return err
			}
			if install {
				if err := phase.Install(filepath.Join(o.Out, "yard")); err != nil {
					return err
				}
			}
			if results != "" {
				if err := result.Write(filepath.Dir(results), map[string]string{filepath.Base(results): f.Action}); err != nil {
					return err
				}
			}
			return a.print(f, func(w io.Writer) {
				fmt.Fprintf(w, "action    %s\nimage     %s\nbuild     %s\nsource    %s\nbuilder   %s\nrun image %s\nAPI       %s\n",
					f.Action, f.Image, f.Build, f.SourceDigest, f.Builder, f.RunImage, f.PlatformAPI)
			})
		},
	}
	f := cmd.Flags()
	registries.add(cmd)
	f.StringVar(&o.Workspace, "workspace", "", "volume with the checkout; nothing outside of it is read")
	f.StringVar(&o.Path, "path", ".", "checkout on the workspace")
	f.StringVar(&o.Folder, "folder", ".", "folder of the checkout that is built, the application's root")
	f.StringVar(&o.Descriptor, "descriptor", "project.toml", "project descriptor in the checkout")
	f.StringVar(&o.Image, "image", "", "name of the image, with its tag")
	f.StringVar(&o.Builder, "builder", "", "builder by digest, host/repository@sha256:…")
	f.StringVar(&o.RunImage, "run-image", "", "base of the image; empty takes the builder's")
	f.StringVar(&o.CacheImage, "cache-image", "", "image that keeps layers between builds; empty keeps none")
	f.StringVar(&o.CAFile, "ca-file", "", "certificates that buildpacks shall trust, if the file is there")
	f.StringVar(&o.ProcessType, "process-type", "", "default process; empty leaves it to the buildpacks")
	f.BoolVar(&o.Creator, "creator", false, "plan all phases for one step: for a builder that may see the registry's credentials")
	f.BoolVar(&o.Rebuild, "rebuild", false, "do not look for an image that is there")
	f.StringVar(&o.Created, "created", "", "time of creation in the image, seconds since 1970; empty is the lifecycle's 1980")
	f.StringVar(&o.Revision, "revision", "", "commit of the checkout: only told")
	f.StringVar(&o.Out, "out", "", "folder for the plan")
	f.StringArrayVar(&ifSet, "env-if-set", nil, "variable `NAME=VALUE` for the buildpacks, unless the value is empty")
	f.BoolVar(&install, "install", false, "put this program into --out too, as yard")
	f.StringVar(&results, "action-file", "", "file for what is left to do: phases, creator or found")
	return cmd
}

// withValues drops assignments of nothing, which empty parameters of a task leave.
func withValues(assignments []string) []string {
	var out []string
	for _, a := range assignments {
		if _, value, ok := strings.Cut(a, "="); !ok || value != "" { // without "=" it is a mistake to be told
			out = append(out, a)
		}
	}
	return out
}
