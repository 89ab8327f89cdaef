// Command release makes a release of this repository in a folder, and pushes its
// images if asked. `make release` calls it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/registryclient"
	"github.com/trainyard/trainyard/internal/release"
	"github.com/trainyard/trainyard/internal/toolimage"
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
		s := (<-signals).(syscall.Signal)
		signal.Stop(signals) // a second signal ends the program at once
		cancel(exitcode.SignalError{Signal: s})
	}()
	err := newCommand(os.Stderr).ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", strings.TrimPrefix(err.Error(), "release: "))
	}
	os.Exit(exitcode.Of(err))
}

func newCommand(log io.Writer) *cobra.Command {
	o := release.Options{Source: "https://github.com/trainyard/trainyard"}
	var (
		platforms, insecure   []string
		created, certificates string
		push                  bool
	)
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Make a release of this repository",
		Long: `Make a release of this repository.

The folder gets the tool's image and the bundles (images/, an OCI layout), a
release.yaml with every image by digest, the program yard, bills of materials
(CycloneDX) and SHA256SUMS. The same commit, Go version and certificates give
the same bytes.`,
		Example:       "  go run ./cmd/release --version v1.0.0 --to dist/v1.0.0\n  go run ./cmd/release --version v1.0.0 --to dist/v1.0.0 --repository registry.example.com/trainyard --push",
		Args:          cobra.NoArgs,
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			logf := func(format string, args ...any) { fmt.Fprintf(log, format+"\n", args...) }
			if o.Version == "" || o.Folder == "" {
				return exitcode.Errorf(exitcode.Usage, "--version and --to are needed: see --help")
			}
			if push && strings.HasSuffix(o.Version, "-dirty") {
				return exitcode.Errorf(exitcode.Usage, "version %s: commit what was changed before it is pushed", o.Version)
			}
			client, err := registryclient.New(registryclient.Options{Insecure: insecure})
			if err != nil {
				return err
			}
			for _, s := range platforms {
				p, err := v1.ParsePlatform(s)
				if err != nil {
					return exitcode.Errorf(exitcode.Usage, "--platform %q: %w", s, err)
				}
				o.Platforms = append(o.Platforms, *p)
			}
			if created != "" {
				if o.Created, err = time.Parse(time.RFC3339, created); err != nil {
					return exitcode.Errorf(exitcode.Usage, "--created %q: want a time such as 2026-01-31T15:04:05Z", created)
				}
			}
			if o.Certificates, err = toolimage.ReadCertificates(certificates); err != nil {
				return err
			}
			if _, err := release.Make(ctx, o, logf); err != nil {
				return err
			}
			logf("made %s", o.Folder)
			if !push {
				return nil
			}
			return release.Publish(ctx, client, o.Folder, logf)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exitcode.Errorf(exitcode.Usage, "%w: see --help", err) })
	f := cmd.Flags()
	f.StringVar(&o.Version, "version", "", "`version` of the release, and tag of its images")
	f.StringVar(&o.Folder, "to", "", "`folder` to make; it must not exist")
	f.StringVar(&o.Root, "root", ".", "`folder` of the repository")
	f.StringVar(&o.Go, "go", "go", "the go `command`")
	f.StringVar(&o.Commit, "commit", "", "`commit` that is released")
	f.StringVar(&created, "created", "", "`time` of the commit, RFC 3339; without it all is of 1970")
	f.StringVar(&o.Repository, "repository", "ghcr.io/trainyard", "`registry/path` that the images' names begin with")
	f.StringVar(&o.Namespace, "namespace", "trainyard", "`namespace` that release.yaml installs into")
	f.StringSliceVar(&platforms, "platform", []string{"linux/amd64", "linux/arm64"}, "`os/architecture` of the tool's image, may be repeated")
	f.StringVar(&certificates, "certificates", toolimage.DebianCertificates, "PEM `file`, or folder of .crt files, of the authorities that the tool trusts")
	f.BoolVar(&push, "push", false, "push the images too")
	f.StringSliceVar(&insecure, "insecure-registry", nil, "`host:port` of a registry that may be spoken to in plain http, may be repeated")
	return cmd
}
