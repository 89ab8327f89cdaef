package cli

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/internal/commitstatus"
	"github.com/trainyard/trainyard/internal/exitcode"
	"github.com/trainyard/trainyard/internal/kubeclient"
	"github.com/trainyard/trainyard/internal/pushrun"
)

func newCommitStatus(a *app) *cobra.Command {
	o := &commitStatusOptions{addresses: map[pushrun.Forge]*string{}}
	cmd := &cobra.Command{
		Use:   "commit-status",
		Short: "Tell the forge how the runs of pushes fare",
		Long: `Tell the forge how the runs of pushes fare.

It watches the PipelineRuns of a namespace that a git push started and sets the
commit status at the commit that was pushed:

  pending   the run waits for its turn, or runs
  success   it succeeded, and the gate blocked nothing
  failure   the gate blocked the model (its reasons are in the description), or a
            task failed (it says which)
  error     it was cancelled or superseded, timed out, or could not start

The folder --tokens has a file for each forge that is to be told, github, gitlab and
gitea (also for Forgejo), with a token; it is read at each use. Runs of a forge
without one are left alone. A token goes to its forge's own host only, over TLS unless
--insecure-http names the host. SSL_CERT_FILE names the authorities to trust.

What a forge knows of a run is in the run's annotation trainyard.dev/reported, so
nothing is told twice. Limits and outages of a forge are waited for; a refusal is
logged, and an event at the run, with what the token lacks.

With --link the status links somewhere. A template has {namespace}, {run}, {commit},
{report} (the address of the report page), {bucket} and {key} (the same, of
s3://bucket/key). The first of several whose values are all known is taken.

It works until SIGINT or SIGTERM and then ends with 0. Only one should run in a
namespace.`,
		Example: `  yard commit-status --namespace trainyard --tokens /etc/trainyard/tokens
  yard commit-status --tokens tokens --github-url https://github.example.com/api/v3 \
    --link 'https://reports.example.com/{bucket}/{key}' \
    --link 'https://tekton.example.com/#/namespaces/{namespace}/pipelineruns/{run}'`,
		Args: noArgs,
	}
	choice := clusterFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.tokens, "tokens", "", "folder with the files github, gitlab and gitea, a token in each that is to be told")
	for _, forge := range []struct {
		kind         pushrun.Forge
		usual, usage string
	}{
		{pushrun.GitHub, "https://api.github.com", "address of GitHub's API; of GitHub Enterprise it is https://HOST/api/v3"},
		{pushrun.GitLab, "https://gitlab.com", "address of GitLab, without /api/v4"},
		{pushrun.Gitea, "", "address of Gitea or Forgejo, without /api/v1; empty tells none"},
	} {
		o.addresses[forge.kind] = f.String(string(forge.kind)+"-url", forge.usual, forge.usage)
	}
	f.StringSliceVar(&o.insecure, "insecure-http", nil, "`host[:port]` of a forge that may be spoken to in plain http, token included; may be repeated")
	f.StringVar(&o.context, "context-name", "trainyard", "what tells the status from those of others at the same commit")
	f.StringArrayVar(&o.links, "link", nil, "`template` of the address that the status links to; may be repeated, none links nowhere")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r, err := o.reporter()
		if err != nil {
			return err
		}
		r.Log = a.log()
		if forge, _ := os.Stat(filepath.Join(o.tokens, string(pushrun.Gitea))); forge != nil && *o.addresses[pushrun.Gitea] == "" {
			r.Log.Warn("there is a token for gitea and no address: give --gitea-url")
		}
		cluster, err := kubeclient.Connect(*choice)
		if err != nil {
			return err
		}
		if _, err := cluster.Ping(cmd.Context()); err != nil {
			return err
		}
		if r.Tekton, err = cluster.Watching(); err != nil {
			return err
		}
		events, stop := commitstatus.NewEvents(cluster.Kube, cluster.Namespace)
		defer stop()
		r.Namespace, r.Events = cluster.Namespace, events
		return r.Run(cmd.Context())
	}
	return cmd
}

type commitStatusOptions struct {
	tokens, context string
	addresses       map[pushrun.Forge]*string
	insecure, links []string
}

// reporter checks the options and makes what does not depend on a cluster.
func (o *commitStatusOptions) reporter() (*commitstatus.Reporter, error) {
	if o.tokens == "" {
		return nil, exitcode.Errorf(exitcode.Usage, "which forges, with which tokens? give --tokens, a folder")
	}
	if info, err := os.Stat(o.tokens); err != nil || !info.IsDir() {
		return nil, exitcode.Errorf(exitcode.Usage, "tokens %s is no folder", o.tokens)
	}
	if o.context == "" || len(o.context) > 100 || commitstatus.Cut(o.context, 100) != o.context {
		return nil, exitcode.Errorf(exitcode.Usage, "context-name %q is not a line of at most 100 characters", o.context)
	}
	r := &commitstatus.Reporter{Forges: map[pushrun.Forge]*commitstatus.Client{}, Telling: commitstatus.Telling{Context: o.context}}
	for forge, address := range o.addresses {
		if *address == "" {
			continue
		}
		c, err := commitstatus.NewClient(forge, *address, filepath.Join(o.tokens, string(forge)), o.insecure)
		if err != nil {
			return nil, err
		}
		r.Forges[forge] = c
	}
	for _, template := range o.links {
		l, err := commitstatus.ParseLink(template)
		if err != nil {
			return nil, err
		}
		r.Telling.Links = append(r.Telling.Links, l)
	}
	return r, nil
}
