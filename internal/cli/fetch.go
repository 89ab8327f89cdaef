package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/gitsource"
)

const maxCABundle = 8 << 20

func newFetch(a *app) *cobra.Command {
	o := gitsource.Options{Depth: 1}
	var results, bundle string
	cmd := &cobra.Command{
		Use:   "fetch",
		Short: "Check out source code at one commit, or say what lies in the workspace",
		Long: `Check out a git repository below a workspace: aside first, then renamed into its
place, so that what is there is whole. Addresses are https://, http://, ssh:// and
user@host:path, and git:// with a commit in full; everything else is refused. No hook
or filter is run, and no LFS pointer resolved.

Without --url the source has to lie there already, and its commit is read from its
.git: followed by "-modified" where a file differs, "unknown" where there is none.

--results-dir gets url, commit, CHAINS-GIT_URL and CHAINS-GIT_COMMIT on every way out;
the last two only of a source that is exactly its commit.`,
		Example: `  yard fetch --workspace /workspace/shared --path source \
    --url https://github.com/trainyard/trainyard --revision main
  yard fetch --workspace /workspace/shared --path source --url git@example.com:team/llm.git \
    --revision 2c26b46b68ffc68ff99b453c1d30413413422d70 --ssh-directory /workspace/ssh-directory
  yard fetch --workspace /workspace/shared --path source   # it lies there`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Logf = func(format string, args ...any) { fmt.Fprintf(a.Err, format+"\n", args...) }
			err := readBundle(bundle, &o)
			var r gitsource.Result
			if err == nil {
				r, err = gitsource.Fetch(cmd.Context(), o)
			}
			if results != "" {
				if writeErr := r.WriteResults(results); err == nil {
					err = writeErr
				}
			}
			if err != nil {
				return err
			}
			return a.print(r, func(w io.Writer) {
				how := "fetched"
				if !r.Fetched {
					how = "was there already"
				}
				fmt.Fprintf(w, "commit  %s\nurl     %s\npath    %s (%s)\n", r.Commit, r.URL, r.Path, how)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.URL, "url", "", "address of the repository; empty takes what lies in --path")
	f.StringVar(&o.Revision, "revision", "", "commit of 40 digits, branch, tag or refs/…; empty is HEAD")
	f.StringVar(&o.Commit, "commit", "", "commit that it must turn out to be; empty takes any")
	f.StringVar(&o.Workspace, "workspace", "", "root of the workspace; nothing is written outside of it")
	f.StringVar(&o.Path, "path", "source", "of the checkout below the workspace")
	f.BoolVar(&o.Replace, "replace", false, "replace also what is no checkout of the same repository")
	f.IntVar(&o.Depth, "depth", o.Depth, "commits of history; 0 is all")
	f.BoolVar(&o.Submodules, "submodules", false, "check out submodules too")
	f.StringVar(&o.Credentials.SSHDirectory, "ssh-directory", "", "directory with a private key and known_hosts")
	f.StringVar(&o.Credentials.BasicAuth, "basic-auth", "", "directory with .git-credentials, or with username and password")
	f.StringVar(&bundle, "ca-bundle", "", "PEM file of certificates to trust beside the system's")
	f.BoolVar(&o.AllowFile, "allow-file", false, "allow file:// addresses")
	f.StringVar(&results, "results-dir", "", "directory for one file a result, as Tekton reads them")
	return cmd
}

// readBundle reads the file of --ca-bundle.
func readBundle(path string, o *gitsource.Options) error {
	if path == "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return exitcode.Errorf(exitcode.Usage, "ca-bundle: %w", err)
	}
	defer f.Close()
	o.CABundle, err = io.ReadAll(io.LimitReader(f, maxCABundle))
	if err != nil {
		return exitcode.Errorf(exitcode.IO, "ca-bundle: %w", err)
	}
	return nil
}
