package cli

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/trainer/internal/exitcode"
	"github.com/trainyard/trainyard/trainer/internal/stage"
	"github.com/trainyard/trainyard/trainer/internal/store"
	"github.com/trainyard/trainyard/trainer/internal/train"
)

// runFlags name a run directory and its candidate.
type runFlags struct {
	dir, id, checkpoint string
}

func (r *runFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.dir, "run-dir", "", "run directory")
	f.StringVar(&r.id, "run-id", "", "name of the run; empty is that of the run directory. A directory of another run is refused")
	f.StringVar(&r.checkpoint, "checkpoint", stage.DefaultCheckpoint, "the candidate: "+train.BestDir+" or "+train.LastDir)
}

// targetFlags name a model's place in a registry, and the store that holds it.
type targetFlags struct {
	url, bucket, name, alias string
	options                  store.Options
}

func (t *targetFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.url, "store", "", "store of the registry: file:///dir or s3://bucket/prefix")
	f.StringVar(&t.bucket, "s3-bucket", "", "bucket of the store where --store names none: s3://BUCKET, as a platform's configuration gives it")
	f.StringVar(&t.name, "name", "llm", "name of the model in the registry")
	f.StringVar(&t.alias, "alias", stage.DefaultAlias, "alias that promotion moves; what it points to is the baseline")
	f.StringVar(&t.options.Endpoint, "s3-endpoint", "", "URL of an S3 server that is not AWS")
	f.StringVar(&t.options.Region, "s3-region", "", "region; empty is AWS_REGION, or us-east-1 with an endpoint")
	f.StringVar(&t.options.PathStyle, "s3-path-style", "", "true or false; empty is true with an endpoint")
	f.StringVar(&t.options.CABundle, "s3-ca-bundle", "", "PEM file of certificates to trust beside the system's")
	f.StringVar(&t.options.ChecksumMode, "s3-checksums", "", "when_supported or when_required; empty is when_required with an endpoint")
}

// open opens the store, if one is named.
func (t *targetFlags) open(ctx context.Context) (stage.Target, error) {
	target := stage.Target{Name: t.name, Alias: t.alias}
	url := t.url
	if url == "" && t.bucket != "" {
		url = "s3://" + t.bucket
	}
	if url == "" {
		return target, nil
	}
	s, err := store.Open(ctx, url, t.options)
	if err != nil {
		code := exitcode.IO
		if errors.Is(err, store.ErrOptions) {
			code = exitcode.Usage
		}
		return target, exitcode.Errorf(code, "store: %w", err)
	}
	target.Store = s
	return target, nil
}

// people is where lines for people go: not between the lines of a JSON report.
func (a *App) people() io.Writer {
	if a.output == "json" {
		return a.Err
	}
	return a.Out
}

// imageFlag is the code image; its variable is envImage.
func addImage(cmd *cobra.Command, image *string) {
	cmd.Flags().StringVar(image, "image", "", "container image of this program, by digest (name@sha256:...), for records and gate")
}

// resultsFlag is where the small results of a step go.
func addResults(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "results-dir", "", "directory for one file a result, as Tekton reads them")
}

// openFile opens a file that a flag names.
func openFile(what, path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.Usage, "%s: %w", what, err)
	}
	return f, nil
}

// usageError is an error about a flag.
func usageError(format string, args ...any) error {
	return exitcode.Errorf(exitcode.Usage, format, args...)
}
