package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/render"
)

func newRender(a *app) *cobra.Command {
	var o render.Options
	var to string
	cmd := &cobra.Command{
		Use:   "render [flags] FILE|FOLDER...",
		Short: "Make applicable YAML of tasks, pipelines and runs",
		Long: `Make applicable YAML of tasks, pipelines and runs.

Puts the tool's image, by digest, where the YAML has the placeholder
` + manifest.Placeholder + `, and turns references to tasks and pipelines by name into
references to bundles by digest if bundles are given. The result is checked as
an API server would: no unknown field, Tekton's own validation, every image
pinned or one documented parameter. The same input gives the same bytes.`,
		Example: `  yard render --tool-image ghcr.io/trainyard/yard@sha256:… tasks/ pipelines/ | kubectl apply -f -
  yard render --tool-image ghcr.io/trainyard/yard@sha256:… --task-bundle ghcr.io/trainyard/tasks@sha256:… pipelines/`,
		Args: someArgs("FILE|FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := manifest.NewDecoder()
			if err != nil {
				return err
			}
			objects, err := d.Read(args...)
			if err != nil {
				return err
			}
			if objects, err = render.Objects(cmd.Context(), d, objects, o); err != nil {
				return err
			}
			form := render.YAML
			if a.output == "json" {
				form = render.JSON
			}
			text, err := form(objects)
			if err != nil {
				return err
			}
			return writeTo(a.Out, to, text)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.ToolImage, "tool-image", "", "the tool's `image`@sha256:… for the placeholder")
	f.StringVar(&o.TaskBundle, "task-bundle", "", "`image`@sha256:… of the bundle that holds the tasks; without it they are found by name")
	f.StringVar(&o.PipelineBundle, "pipeline-bundle", "", "`image`@sha256:… of the bundle that holds the pipelines of runs; without it they are found by name")
	f.StringVar(&o.Namespace, "namespace", "", "put everything into this namespace")
	f.StringVar(&to, "to", "", "write to this `file` instead of standard output")
	return cmd
}

// someArgs asks for one or more arguments, as a usage error.
func someArgs(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return exitcode.Errorf(exitcode.Usage, "no %s given: see %s --help", name, cmd.CommandPath())
		}
		return nil
	}
}

// writeTo writes text to a file, whole or not at all, or to w where no file is named.
func writeTo(w io.Writer, file string, text []byte) error {
	if file == "" {
		_, err := io.Copy(w, bytes.NewReader(text))
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone already when all went well
	_, err = tmp.Write(text)
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		return exitcode.Errorf(exitcode.IO, "write %s: %w", file, err)
	}
	return nil
}
