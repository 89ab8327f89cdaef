package plan

import (
	"strconv"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trainyard/trainyard/internal/exitcode"
)

// Options say what to build, from what and with what.
type Options struct {
	// Workspace is a volume, Path the checkout on it. Folder is what is built of the
	// checkout, its app root, and Descriptor the project descriptor; both are relative
	// to the checkout and stay in it, as the checkout stays in the workspace.
	Workspace, Path, Folder, Descriptor string
	// Image is the name that the result gets, with a tag.
	Image string
	// Builder is the builder by digest. RunImage replaces the builder's own run image.
	Builder, RunImage string
	// CacheImage keeps layers between builds; empty means none.
	CacheImage string
	// Insecure lists the registries that may be plain http.
	Insecure []string
	// Env are assignments NAME=VALUE that win over the descriptor.
	Env []string
	// CAFile is a file of certificates that buildpacks shall trust: where the phases
	// see it. It counts when it exists here too.
	CAFile string
	// ProcessType is the default process; empty leaves it to the buildpacks.
	ProcessType string
	// Creator runs all phases in one step.
	Creator bool
	// Rebuild does not look for an image that is there.
	Rebuild bool
	// Created is SOURCE_DATE_EPOCH for the image; empty means the lifecycle's 1980.
	Created string
	// Revision is the commit of the checkout: it is told, not built in.
	Revision string
	// Out is the folder that the plan is written to: it must be empty or not there.
	Out string
	// Platform is that of the machine that builds.
	Platform v1.Platform
	// Log takes one line of progress; nil drops it.
	Log func(format string, args ...any)
}

// platformAPIs are the versions of the platform interface that the phases here are
// written for.
func platformAPIs() []string { return []string{"0.12", "0.13", "0.14", "0.15"} }

// check refuses what needs no look at any file.
func (o *Options) check() error {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	for _, must := range []struct{ name, value string }{
		{"workspace", o.Workspace}, {"image", o.Image}, {"builder", o.Builder}, {"out", o.Out}, {"descriptor", o.Descriptor},
	} {
		if must.value == "" {
			return exitcode.Errorf(exitcode.Usage, "no %s is named", must.name)
		}
	}
	if o.Created != "" {
		if n, err := strconv.ParseInt(o.Created, 10, 64); err != nil || n < 0 {
			return exitcode.Errorf(exitcode.Usage, "creation time %q: want seconds since 1970, or nothing", o.Created)
		}
	}
	return nil
}
