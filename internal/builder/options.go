package builder

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/trainyard/trainyard/internal/builder/lifecycle"
	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/registryclient"
)

// Options says what a builder is made of and where it goes.
type Options struct {
	// Repository is what the images' names begin with: REPOSITORY/builder and
	// REPOSITORY/run.
	Repository string
	// Registry is how the repository is reached.
	Registry *registryclient.Client
	// Lifecycle are its programs, for Linux and this architecture.
	Lifecycle lifecycle.Programs
	// Buildpack is the program of buildpacks/go-offline, for Linux.
	Buildpack string
	// GoRoot is the directory of the Go toolchain that builds programs.
	GoRoot string
	// Cache is a directory for what takes time to make; it is created.
	Cache string

	// Suite of Debian, its mirror, and mmdebstrap; trixie, deb.debian.org and the
	// one in PATH when empty.
	Suite, Mirror, Mmdebstrap string
	// Arch is the architecture of the images; amd64 when empty.
	Arch string
	// Force makes and pushes a builder even when it is there.
	Force bool
	// Log is told what is done; it may be nil.
	Log io.Writer
}

func (o Options) withDefaults() Options {
	o.Suite = cmp.Or(o.Suite, "trixie")
	o.Mirror = cmp.Or(o.Mirror, "http://deb.debian.org/debian")
	o.Mmdebstrap = cmp.Or(o.Mmdebstrap, "mmdebstrap")
	o.Arch = cmp.Or(o.Arch, "amd64")
	if o.Log == nil {
		o.Log = io.Discard
	}
	return o
}

// check finds out before any work what would make it fail.
func (o Options) check() error {
	if o.Registry == nil {
		return errors.New("no registry client")
	}
	if _, err := name.NewRepository(o.Repository + "/builder"); err != nil {
		return exitcode.Errorf(exitcode.Usage, "repository: %w", err)
	}
	for _, f := range []struct{ what, file string }{
		{"lifecycle", o.Lifecycle.Lifecycle}, {"launcher", o.Lifecycle.Launcher}, {"buildpack program", o.Buildpack},
	} {
		info, err := os.Stat(f.file)
		if err != nil {
			return exitcode.Errorf(exitcode.BadInput, "%s: %w", f.what, err)
		}
		if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			return exitcode.Errorf(exitcode.BadInput, "%s: %s is no program", f.what, f.file)
		}
	}
	if o.Cache == "" {
		return exitcode.Errorf(exitcode.Usage, "no directory for the cache")
	}
	return os.MkdirAll(o.Cache, 0o755)
}

// Result is the builder that is in the registry.
type Result struct {
	Builder   string `json:"builder"`   // REPOSITORY/builder@sha256:…
	Run       string `json:"run"`       // REPOSITORY/run@sha256:…
	Key       string `json:"key"`       // of the inputs, also the tag of both
	Go        string `json:"go"`        // version of the toolchain
	Lifecycle string `json:"lifecycle"` // version
	Cached    bool   `json:"cached"`    // it was there
}

func (o Options) logf(format string, args ...any) { fmt.Fprintf(o.Log, format+"\n", args...) }
